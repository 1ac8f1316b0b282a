package conformance

import (
	"slices"
	"time"

	limits "github.com/sluice-go/sluice/generated"
	"github.com/sluice-go/sluice/runtime"
	"github.com/sluice-go/sluice/runtime/bucket"
	"github.com/sluice-go/sluice/runtime/store"
)

// windowMonths: a call takes from the user's month and the project's, or from neither. If the project
// refuses, the user gets back what the call took.
func windowMonths(w *world) {
	w.admitted(alice, 1, 100)
	w.left(w.admitted(bob, 1, 150), 9, 0)
	w.admitted(project, 1, 140)
	denied := w.denied(alice, 1, 20) // 50 are left of alice's, and 10 of the project's
	if denied.Entity != "project-p" || len(denied.Refusals) != 1 {
		w.Errorf("%v", &denied)
	}
	w.endsAt(denied, "2027-02-01T00:00:00+01:00")
	w.peek(alice)
	carol := numbered(1) // whose window is not open
	w.denied(carol, 1, 11)
	w.peek(carol)
	w.left(w.admitted(carol, 1, 10), 9, 0)
	w.denied(alice, 1, 51)
	w.reach("project-p", -time.Millisecond)
	w.denied(carol, 1, 1)
	w.reach("project-p", 0)
	lease := w.admitted(alice, 1, 150)
	w.settle(lease, 1, 120)
	w.left(w.admitted(carol, 1, 150), 9, 0)
	w.endsAt(w.denied(carol, 1, 1), "2027-03-01T00:00:00+01:00")
	w.peek(project)
}

// windowAll: claims of several resources, and claims that meet in a bucket, are taken from open windows or
// not at all.
func windowAll(w *world) {
	for range 2 {
		if err := w.all(cost(1, 60), 5, alice, bob); err != nil {
			w.Fatalf("%v", err)
		}
		failed[*store.DeniedError](w, "too much for both", w.all(cost(1, 91), 1, alice, bob))
		failed[*store.DeniedError](w, "too much for the project", w.all(cost(1, 90), 1, alice, bob, numbered(1),
			project))
		w.peek(numbered(1))
		if err := w.all(cost(1, 70), 0, alice, bob, project); err != nil {
			w.Fatalf("%v", err)
		}
		failed[*store.CostTooLargeError](w, "too much for rps", w.all(cost(1, 1), 21, alice))
		denied := as[*store.DeniedError](w, "the month", w.all(cost(1, 40), 1, alice, bob))
		if denied.Resets.IsZero() || len(denied.Refusals) != 3 {
			w.Errorf("%+v", denied)
		}
		w.peek(alice)
		w.peek(bob)
		w.reach("project-p", 0)
	}
}

// windowDays: weeks and days follow the wall clock of their zone. One day has 23 hours, and one has 25.
func windowDays(w *world) {
	for _, test := range []struct{ at, end string }{
		{"2027-03-13T12:00:00-05:00", "2027-03-15T00:00:00-04:00"}, // a week with the short day
		{"2027-03-15T00:00:00-04:00", "2027-03-22T00:00:00-04:00"},
		{"2027-11-03T12:00:00-04:00", "2027-11-08T00:00:00-05:00"},
		{"2027-12-31T23:59:59-05:00", "2028-01-03T00:00:00-05:00"},
	} {
		w.at(test.at)
		w.admitted(alice, 1, 150)
		w.endsAt(w.denied(alice, 1, 1), test.end)
	}
	for _, test := range []struct {
		at    string
		hours int
	}{{"2028-03-11", 24}, {"2028-03-12", 23}, {"2028-03-13", 24}, {"2028-11-05", 25}, {"2028-11-06", 24}} {
		midnight, err := time.ParseInLocation(time.DateOnly, test.at, newYork)
		if err != nil {
			w.Fatalf("%v", err)
		}
		w.at(midnight.Format(time.RFC3339))
		w.admitted(project, 1, 10_000)
		denied := w.denied(project, 1, 1)
		if denied.RetryAfter != time.Duration(test.hours)*time.Hour {
			w.Errorf("on %s: %v, want %d h", test.at, &denied, test.hours)
		}
	}
}

// windowGap: where the wall clock skips the time at which a window starts, it starts then. It starts at
// the first if the clock shows it twice.
func windowGap(w *world) {
	w.at("2027-03-27T12:00:00+01:00")
	for _, end := range []string{
		"2027-03-28T03:00:00+02:00", "2027-03-29T02:30:00+02:00", "2027-03-30T02:30:00+02:00",
	} {
		w.admitted(alice, 1, 150)
		w.endsAt(w.denied(alice, 1, 1), end)
		w.reach("user-alice", -time.Millisecond)
		w.denied(alice, 1, 1)
		w.reach("user-alice", 0)
	}
	w.at("2027-10-30T12:00:00+02:00")
	for _, end := range []string{"2027-10-31T02:30:00+02:00", "2027-11-01T02:30:00+01:00"} {
		w.admitted(alice, 1, 150)
		w.endsAt(w.denied(alice, 1, 1), end)
		w.reach("user-alice", 0)
	}
}

// since stores the calendar of an entity, and has the model and a new process go by it.
func (w *world) since(who limits.GPT4Entity, since time.Time, buckets ...string) {
	w.Helper()
	if err := w.Entities().SetCalendar(w.Context(), who, since); err != nil {
		w.Fatalf("set the calendar: %v", err)
	}
	w.Limiter = w.process()
	w.follows(since, buckets...)
}

// follows has the model of buckets go by the calendar of entities whose billing began at since, or by the
// default.
func (w *world) follows(since time.Time, buckets ...string) {
	for _, entity := range buckets {
		c := w.schema.windows.user
		if !since.IsZero() {
			c = c.Of(since)
		}
		w.bucket(entity).windows = calendars(c)
	}
}

// windowOwned: windows follow what is stored of the entity, else of its nearest ancestor, else the default.
func windowOwned(w *world) {
	if err := w.Entities().Put(w.Context(), alice); err != nil {
		w.Fatalf("put: %v", err)
	}
	for _, test := range []struct {
		who        limits.GPT4Entity
		since      time.Time
		buckets    []string
		own, above string
	}{
		{own: "2027-02-01T00:00:00Z", above: "2027-02-01T00:00:00Z"},
		{
			project, time.Date(2026, 12, 31, 9, 30, 59, 1, tokyo), []string{"user-alice", "project-p"},
			"2027-02-28T09:30:00+09:00", "2027-02-28T09:30:00+09:00",
		},
		{
			alice, time.Date(2026, 5, 10, 12, 0, 0, 0, newYork), []string{"user-alice"},
			"2027-04-10T12:00:00-04:00", "2027-03-31T09:30:00+09:00",
		},
	} {
		if test.who != nil {
			w.since(test.who, test.since, test.buckets...)
		}
		w.admitted(alice, 1, 150)
		w.endsAt(w.denied(alice, 1, 1), test.own)
		w.admitted(project, 1, 10_000-150)
		w.endsAt(w.denied(project, 1, 1), test.above)
		w.store.Advance(w.end("project-p").Sub(w.store.Clock.Now()).Truncate(time.Millisecond))
		if w.end("user-alice").After(w.end("project-p")) {
			w.reach("user-alice", 0)
		}
	}
	_, err := w.GPT4.Acquire(w.Context(), limits.UserByID("alice"), cost(1, 150)) // its parent is looked up
	if err != nil {
		w.Errorf("looked up: %v", err)
	}
	nameless := time.Date(2026, 5, 10, 12, 0, 0, 0, time.FixedZone("x", 60))
	err = w.Entities().SetCalendar(w.Context(), alice, nameless)
	failed[*store.InvalidError](w, "a zone without a name", err)
}

// windowMoves: a calendar that changes does not shorten the open window, and the next one is half to one and
// a half times as long.
func windowMoves(w *world) {
	old := w.process(runtime.WithCacheTTL(time.Minute))
	w.admitted(alice, 1, 100)
	w.since(alice, time.Date(2026, 1, 20, 0, 0, 0, 0, time.UTC), "user-alice")
	w.endsAt(w.denied(alice, 1, 51), "2027-02-01T00:00:00Z")
	w.at("2027-01-20T00:00:00Z")
	w.denied(alice, 1, 51)
	w.reach("user-alice", 0)
	w.admitted(alice, 1, 150)
	w.endsAt(w.denied(alice, 1, 1), "2027-02-20T00:00:00Z")
	w.since(alice, time.Date(2026, 1, 25, 0, 0, 0, 0, time.UTC), "user-alice")
	w.reach("user-alice", 0)
	if _, err := w.acquireIn(old, alice, cost(1, 150)); err != nil { // it has noticed: the 25th is too near
		w.Fatalf("%v", err)
	}
	w.endsAt(w.denied(alice, 1, 1), "2027-03-25T00:00:00Z")
	w.peek(project)
}

// windowKeeps: who belongs to whom may change, and the calendar stays.
func windowKeeps(w *world) {
	ctx, entities := w.Context(), w.Entities()
	since := time.Date(2026, 12, 15, 6, 0, 0, 0, berlin)
	w.since(alice, since, "user-alice")
	change := []func() error{
		func() error { return entities.Put(ctx, alice) },
		func() error { return entities.Put(ctx, alice, runtime.NoCascade()) },
		func() error { return entities.Delete(ctx, limits.UserByID("alice")) },
		func() error { return nil },
	}
	ends := []string{"2027-02-15T06:00:00+01:00", "2027-03-15T06:00:00+01:00", "2027-04-15T06:00:00+02:00",
		"2027-05-15T06:00:00+02:00"}
	for i, f := range change {
		if err := f(); err != nil {
			w.Fatalf("change %d: %v", i, err)
		}
		m, _, err := entities.Get(ctx, alice)
		if err != nil || !m.Since.Equal(since) || m.Since.Location().String() != "Europe/Berlin" {
			w.Errorf("change %d leaves %v in %v, %v", i, m.Since, m.Since.Location(), err)
		}
		w.Limiter = w.process()
		w.admitted(alice, 1, 150)
		w.endsAt(w.denied(alice, 1, 1), ends[i])
		w.reach("user-alice", 0)
	}
}

// windowShorter: where months become days, what was used of the month is used of the day that follows it.
func windowShorter(w *world) {
	lease := w.admitted(alice, 1, 100)
	w.schema = roomy.inWindows(calendar(bucket.Day, time.UTC, 1, 0), calendar(bucket.Day, time.UTC, 1, 0))
	w.schema.revision = 1
	w.Limiter = w.process()
	for _, entity := range []string{"user-alice", "project-p"} {
		b := w.bucket(entity)
		b.windows = calendars(w.schema.windows.user)
		b.limits = slices.Clone(b.limits)
		b.limits[1].Period = w.schema.user[1].Period
		b.ends[1] = b.windows[1].End(w.store.Clock.Now().UnixMilli(), 0)
	}
	w.left(w.admitted(alice, 1, 20), 8, 30)
	w.endsAt(w.denied(alice, 1, 31), "2027-01-16T00:00:00Z")
	w.settle(lease, 1, 30) // of a window that is not open any more
	w.peek(alice)
	w.reach("user-alice", 0)
	w.admitted(alice, 1, 150)
	w.endsAt(w.denied(alice, 1, 1), "2027-01-17T00:00:00Z")
	w.peek(project)
}
