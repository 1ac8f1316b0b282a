package conformance

import (
	"fmt"
	"time"

	limits "github.com/sluice-go/sluice/generated"
	"github.com/sluice-go/sluice/runtime/bucket"
	"github.com/sluice-go/sluice/runtime/store"
)

// windows are the calendars of tpm, nil where it refills. Either all kinds that have the limit have one, or
// none.
type windows struct{ user, project *bucket.Calendar }

// any reports whether a kind has one.
func (w windows) any() bool { return w.user != nil || w.project != nil }

// calendars returns the calendars of a kind, by limit, of which tpm has this one.
func calendars(tpm *bucket.Calendar) []*bucket.Calendar {
	if tpm == nil {
		return nil
	}
	return []*bucket.Calendar{nil, tpm}
}

// Zones of behaviours: Berlin has a day of 23 hours on 2027-03-28, and one of 25 on 2027-10-31.
var (
	berlin  = bucket.MustZone("Europe/Berlin")
	newYork = bucket.MustZone("America/New_York")
	tokyo   = bucket.MustZone("Asia/Tokyo")
)

// calendar returns windows of a unit that start at a time of day in a zone, months on a date.
func calendar(unit bucket.Unit, zone *time.Location, date int, at time.Duration) *bucket.Calendar {
	return &bucket.Calendar{
		Unit: unit, Length: unit.Nominal(), Zone: zone, At: at,
		Date: date, Month: time.January, Weekday: time.Monday,
	}
}

// firstUse returns windows that last for d from the first call.
func firstUse(d time.Duration) *bucket.Calendar {
	return &bucket.Calendar{Unit: bucket.FirstUse, Length: d.Milliseconds()}
}

// own returns c as each entity's own, in start and zone; c is the default.
func own(c *bucket.Calendar) *bucket.Calendar {
	c.OwnStarts, c.OwnZone = true, true
	return c
}

// The schemas of behaviours with windows. Windows of users and projects end at different instants, but for
// those of months.
var (
	dated = plain.inWindows(calendar(bucket.Day, berlin, 1, 30*time.Minute),
		calendar(bucket.Month, time.UTC, 31, 0))
	days   = roomy.inWindows(dated.windows.user, dated.windows.project)
	months = plain.inWindows(calendar(bucket.Month, berlin, 1, 0), calendar(bucket.Month, berlin, 1, 0))
	weeks  = roomy.inWindows(calendar(bucket.Week, newYork, 1, 0), calendar(bucket.Day, newYork, 1, 0))
	// a day begins in the hour that is skipped, or comes twice
	gap = roomy.inWindows(calendar(bucket.Day, berlin, 1, 150*time.Minute),
		calendar(bucket.Day, berlin, 1, 0))
	sessions = plain.inWindows(firstUse(5*time.Hour), firstUse(7*time.Hour))
	owned    = roomy.inWindows(own(calendar(bucket.Month, time.UTC, 1, 0)),
		own(calendar(bucket.Month, time.UTC, 1, 0)))
	quotas    = roomy.inWindows(calendar(bucket.Month, time.UTC, 1, 0), calendar(bucket.Month, time.UTC, 1, 0))
	daysApart = apart.inWindows(nil, calendar(bucket.Day, tokyo, 1, 0))
	crowdedBy = schema{
		user:    []bucket.Limit{per(1_000_000, 1, time.Second), per(150, 1, time.Second)},
		project: []bucket.Limit{per(1_000_000, 1, time.Second), per(400, 1, time.Second)},
	}.inWindows(calendar(bucket.Day, berlin, 1, 0), calendar(bucket.Day, berlin, 1, 0))
)

// inWindows returns s with tpm in windows of the same burst.
func (s schema) inWindows(user, project *bucket.Calendar) schema {
	s.windows = windows{user, project}
	s.user, s.project = s.windowed(s.user, user), s.windowed(s.project, project)
	return s
}

// windowed returns limits with tpm in windows by c, unless that is nil.
func (schema) windowed(limits []bucket.Limit, c *bucket.Calendar) []bucket.Limit {
	if c == nil {
		return limits
	}
	tpm := limits[1]
	return []bucket.Limit{limits[0], {Capacity: tpm.Burst, Burst: tpm.Burst, Period: c.Length}}
}

// again returns the behaviours of these names with other limits.
func again(s schema, how string, names ...string) (all []behaviour) {
	for _, name := range names {
		for _, b := range behaviours {
			if b.name == name {
				all = append(all, behaviour{name + ", " + how, s.with(b.schema.cascade), b.run})
			}
		}
	}
	return all
}

// end returns when the window of tpm ends that the model has open for an entity, or had last.
func (w *world) end(entity string) time.Time { return time.UnixMilli(w.bucket(entity).ends[1]).UTC() }

// reach lets time pass until d after the window of an entity ends.
func (w *world) reach(entity string, d time.Duration) {
	w.store.Advance(w.end(entity).Add(d).Sub(w.store.Clock.Now()).Truncate(time.Millisecond))
}

// at lets time pass until an instant, in RFC 3339.
func (w *world) at(instant string) {
	w.Helper()
	w.store.Advance(w.instant(instant).Sub(w.store.Clock.Now()))
}

// instant is that of a text, in RFC 3339.
func (w *world) instant(text string) time.Time {
	w.Helper()
	at, err := time.Parse(time.RFC3339, text)
	if err != nil {
		w.Fatalf("%v", err)
	}
	return at
}

// endsAt holds when a denial says that the window ends.
func (w *world) endsAt(denied store.DeniedError, instant string) {
	w.Helper()
	if want := w.instant(instant); !denied.Resets.Equal(want) {
		w.Errorf("%s of %s resets at %v, want %v", denied.Limit, denied.Entity, denied.Resets.UTC(), want.UTC())
	}
}

// numbered returns the n-th of users that have no bucket yet, of the project.
func numbered(n int) limits.User { return limits.User{ID: fmt.Sprint("u", n), Project: project} }
