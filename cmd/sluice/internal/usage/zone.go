package usage

import (
	"fmt"
	"slices"
	"time"
	_ "time/tzdata" // so that a zone is the same wherever the command runs

	"github.com/sluice-go/sluice/cmd/sluice/internal/program"
	"github.com/sluice-go/sluice/cmd/sluice/internal/term"

	"github.com/sluice-go/sluice/runtime/bucket"
	"github.com/sluice-go/sluice/runtime/usage"
)

// month is the span of a calendar month, which has no windows of its own.
const month usage.Span = "month"

// location returns the zone of --zone, or UTC without it. Unlike time.LoadLocation, it does not take the
// empty name or the machine's own zone, which are no names of the tz database.
func (c Command) location() (*time.Location, error) {
	if c.Zone == nil {
		return time.UTC, nil
	}
	name := *c.Zone
	if usage.Span(c.By) == usage.Hour {
		return nil, program.Usagef("--zone is for --by day, month and window: leave it out for hours")
	}
	zone, err := time.LoadLocation(name)
	if err != nil || name == "" || name == "Local" {
		return nil, program.Usagef("--zone %s is no zone of the tz database: pass one such as Europe/Berlin",
			term.Quote(name))
	}
	return zone, nil
}

// checkHours returns an error if the zone's offset from UTC is not whole hours at some instant of a range:
// hours in UTC do not add up to its days.
func checkHours(zone *time.Location, from, to time.Time) error {
	for at := from.In(zone); ; {
		_, offset := at.Zone()
		begins, ends := at.ZoneBounds()
		if offset%3600 != 0 || begins.After(from) && begins.Unix()%3600 != 0 {
			return program.Usagef("--zone %s is %s from UTC on %s: usage is stored by hours in UTC, which do not "+
				"add up to days of this zone: leave --zone out for days in UTC, or pass a zone that is whole hours "+
				"from UTC", zone, at.Format("-07:00"), at.Format(time.DateOnly))
		}
		if ends.IsZero() || ends.After(to) {
			return nil
		}
		at = ends
	}
}

// midnight returns when a date begins in a zone: midnight, or where a clock is put forward over midnight,
// what follows. time.Date does not find the latter. The zone is whole hours from UTC.
func midnight(year int, of time.Month, day int, zone *time.Location) time.Time {
	begins := time.Date(year, of, day, 12, 0, 0, 0, zone)
	for before := begins; before.Day() == begins.Day(); before = before.Add(-time.Hour) {
		begins = before
	}
	return begins
}

// windowStart returns the start of the day or month that holds an instant, in its zone. An hour is one of
// UTC.
func windowStart(span usage.Span, at time.Time) time.Time {
	year, of, day := at.Date()
	switch span {
	case usage.Day:
		return midnight(year, of, day, at.Location())
	case month:
		return midnight(year, of, 1, at.Location())
	}
	return at.Truncate(time.Hour)
}

// windowEnd returns the end of a window that begins at start, in its zone.
func windowEnd(span usage.Span, start time.Time) time.Time {
	year, of, day := start.Date()
	switch span {
	case usage.Day:
		return midnight(year, of, day+1, start.Location())
	case month:
		return midnight(year, of+1, 1, start.Location())
	}
	return start.Add(time.Hour)
}

// place names a window of an entity: its resource and its start, in s.
type place struct {
	resource string
	start    int64
}

func placeOf(resource string, start time.Time) place { return place{resource, start.Unix()} }

// regroup adds windows up in longer ones of a zone, by start and resource.
func regroup(all []usage.Usage, span usage.Span, zone *time.Location) []usage.Usage {
	longer := map[place]*usage.Usage{}
	for _, u := range all {
		start := windowStart(span, u.Start.In(zone))
		at := placeOf(u.Resource, start)
		if longer[at] == nil {
			longer[at] = &usage.Usage{
				Window: usage.Window{Entity: u.Entity, Resource: u.Resource, Span: span, Start: start},
			}
		}
		addTo(longer[at], u)
	}
	var sums []usage.Usage
	for _, u := range longer {
		slices.SortFunc(u.Limits, byLimit)
		sums = append(sums, *u)
	}
	slices.SortFunc(sums, byStart)
	return sums
}

// addTo adds the consumption of more to sum.
func addTo(sum *usage.Usage, more usage.Usage) {
	sum.Writes = bucket.Add(sum.Writes, more.Writes)
	for _, l := range more.Limits {
		i := slices.IndexFunc(sum.Limits, func(have usage.Spent) bool { return have.Limit == l.Limit })
		if i < 0 {
			sum.Limits = append(sum.Limits, l)
			continue
		}
		sum.Limits[i].Millitokens = bucket.Add(sum.Limits[i].Millitokens, l.Millitokens)
	}
}

// checkComplete returns an error if hours were deleted that a day in UTC has, since they are kept for less
// long: sums of what is left would be too small. The hours of the last day are not deleted yet.
func (c Command) checkComplete(hours, days []usage.Usage, zone *time.Location, now time.Time) error {
	left := map[place]usage.Usage{}
	for _, u := range regroup(hours, usage.Day, time.UTC) {
		left[placeOf(u.Resource, u.Start)] = u
	}
	var last time.Time // day of which hours are gone
	for _, day := range days {
		same := func(a usage.Usage) bool { return a.Writes == day.Writes && slices.Equal(a.Limits, day.Limits) }
		if end := day.Start.Add(day.Span.Length()); !same(left[placeOf(day.Resource, day.Start)]) &&
			end.After(last) && !end.After(now.Add(-usage.LeastKeep)) {
			last = end
		}
	}
	if last.IsZero() {
		return nil
	}
	span := usage.Span(c.By)
	first := windowStart(span, last.In(zone))
	if first.Before(last) {
		first = windowEnd(span, first)
	}
	cure := "keep them longer with --keep-hours of `sluice aggregate`"
	if first.Before(now) {
		cure = fmt.Sprintf("pass --since %s, or %s", first.Format(time.DateOnly), cure)
	}
	return fmt.Errorf("%s: hours before %s UTC are not stored any more, and a %s in %s is made of hours: %s",
		term.Quote(c.Entity), last.Format("2006-01-02 15:04"), c.By, zone, cure)
}
