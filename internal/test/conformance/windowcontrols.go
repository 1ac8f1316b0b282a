package conformance

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/sluice-go/sluice/runtime/bucket"
	"github.com/sluice-go/sluice/runtime/store"
)

// windowFaults are what the suite has to see of limits with windows.
var windowFaults = []fault{
	{name: "has a calendar an hour off", only: "windows return", define: anHourOff,
		want: `the window of tpm of user-alice ends at 2027-01-16 00:30:00 \+0000 UTC, want 2027-01-15 23:30`},
	{name: "has days of 24 hours", only: "windows of weeks and days", define: evenDays,
		want: `user-alice ends at 2027-03-15 05:00:00 \+0000 UTC, want 2027-03-15 04:00`},
	{name: "never resets", only: "windows return", acquire: neverReset,
		want: `refused by .*RetryAfter:1ms.* which has the tokens`},
	{name: "resets at no time", only: "windows return", acquire: resetsNever,
		want: `refusal .*Resets:0001-01-01.*\n.*until 2027-01-15 23:30`},
	{name: "opens windows for calls that do not use them", only: "windows unused", acquire: openUnused,
		want: `the window of tpm of user-alice ends at 2027-01-15 23:30:00 \+0000 UTC, want 0001`},
	{name: "opens windows by first use early", only: "windows unused, by first use", acquire: openUnused,
		want: `the window of tpm of user-alice ends at 2027-01-15 13:00:00 \+0000 UTC, want 0001`},
	{name: "gives back to the window that is open", only: "release across windows", settle: giveToOpen,
		want: `^release: user-alice has 90'000 mt of tpm, want 30'000`},
	{name: "gives back to one window for all charges", only: "more across windows", settle: giveToOne,
		want: `user-u[45] has 1[69]0'000 mt of tpm, want 150'000|project-p has 9710'000 mt of tpm, want 9700'000`},
	{name: "does not take what exceeds a window that is over", only: "settle across windows", settle: capAtCost,
		want: `user-alice has 150'000 mt of tpm, want 125'000`},
	{name: "does not take what is owed", only: "debt in a window", settle: capAtCost,
		want: `user-alice has 50'000 mt of tpm, want -200'000`},
	{name: "forgets usage where a number changes", only: "override a window", acquire: dropUsage,
		want: `user-alice has 250'000 mt of tpm, want 150'000|which has the tokens|was not named next: <nil>`},
	{name: "forgets usage where a revision changes", only: "window of another revision", acquire: dropUsage,
		want: `user-alice has 250'000 mt of tpm, want 150'000`},
	{name: "takes of a child that gets nothing", only: "month and month", acquire: chargeChild,
		want: `user-alice has 30'000 mt of tpm, want 50'000`},
	{name: "takes of a child that gets nothing, compensated", only: "month and month, compensated",
		acquire: chargeChild, want: `user-alice has 30'000 mt of tpm, want 50'000`},
	{name: "grants a window twice", only: "crowd at a boundary", acquire: grantTwice,
		want: `^(1[5-9]|[23]\d)\d tokens are admitted at the boundary, want 150`},
	{name: "resets nothing", only: "reset a window", fill: fillNothing,
		want: `^peek: user-alice has 8'000 mt of rpm, want 10'000`},
	{name: "gives back what was taken before a reset", only: "reset a window", settle: giveToOpen,
		want: `^settle: user-alice has (150|200)'000 mt of tpm, want 110'000`},
	{name: "stores no calendar", only: "calendars of entities", members: noCalendar,
		want: `ends at 2027-03-01 00:00:00 \+0000 UTC, want 2027-02-28 00:30`},
	{name: "loses the calendar of whom it stores", only: "calendar kept", members: loseCalendar,
		want: `change 0 leaves 2000-01-01 00:00:00 \+0000 UTC in UTC`},
}

// each has change made in the calendars of spec's kinds.
func each(spec *store.Spec, change func(c *bucket.Calendar)) {
	for i := range spec.Kinds {
		kind := &spec.Kinds[i]
		kind.Windows = slices.Clone(kind.Windows)
		for j, c := range kind.Windows {
			if c != nil {
				other := *c
				change(&other)
				kind.Windows[j] = &other
			}
		}
	}
}

// anHourOff starts windows an hour late.
func anHourOff(spec *store.Spec) { each(spec, func(c *bucket.Calendar) { c.At += time.Hour }) }

// evenDays goes by the offset that the zone has in winter.
func evenDays(spec *store.Spec) {
	each(spec, func(c *bucket.Calendar) {
		_, offset := time.Date(2027, 1, 1, 0, 0, 0, 0, c.Zone).Zone()
		c.Zone = time.FixedZone("even", offset)
	})
}

// neverReset denies for ever what it has denied once.
func neverReset(ctx context.Context, f *faulty, call *store.Call) error {
	nearest := call.Parts[0].Buckets[0].Entity
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.denials[nearest]; err != nil {
		return err
	}
	err := f.Session.Acquire(ctx, call)
	if denied, ok := errors.AsType[*store.DeniedError](err); ok && denied.RetryAfter == time.Millisecond {
		f.denials[nearest] = err
	}
	return err
}

// resetsNever does not say when a window ends.
func resetsNever(ctx context.Context, f *faulty, call *store.Call) error {
	err := f.Session.Acquire(ctx, call)
	denied, ok := errors.AsType[*store.DeniedError](err)
	if !ok {
		return err
	}
	other := *denied
	other.Resets, other.Refusals = time.Time{}, slices.Clone(denied.Refusals)
	for i := range other.Refusals {
		other.Refusals[i].Resets = time.Time{}
	}
	return &other
}

// openUnused opens windows that a call does not use, as if it took something and gave it back.
func openUnused(ctx context.Context, f *faulty, call *store.Call) error {
	part := &call.Parts[0]
	if part.Cost[1] > 0 {
		return f.Session.Acquire(ctx, call)
	}
	part.Cost = slices.Clone(part.Cost)
	part.Cost[1] = 1
	if err := f.Session.Acquire(ctx, call); err != nil {
		return err
	}
	actual := slices.Clone(part.Cost)
	actual[1] = 0
	return f.turn(ctx, call, part.Buckets, part.Cost, actual)
}

// turn turns cost, which was taken of buckets of call in the windows that are open, into actual.
func (f *faulty) turn(
	ctx context.Context, call *store.Call, buckets []store.Bucket, cost, actual []int64,
) error {
	part := store.Part{Def: call.Parts[0].Def, Cost: cost, Actual: actual, Root: buckets[len(buckets)-1].Entity}
	for _, b := range buckets {
		b.Charges = []bucket.Charge{{Cost: cost, Ends: endsOf(b.After)}}
		part.Buckets = append(part.Buckets, b)
	}
	if err := f.Session.Settle(ctx, &store.Call{Called: call.Called, Parts: []store.Part{part}}); err != nil {
		return err
	}
	for i := range buckets {
		buckets[i].After = part.Buckets[i].After
	}
	return nil
}

// giveToOpen gives back to the window that is open, whichever was charged.
func giveToOpen(ctx context.Context, f *faulty, call *store.Call) error {
	part := &call.Parts[0]
	imgs, err := f.read(ctx, call)
	if err != nil {
		return err
	}
	for i, img := range imgs {
		b := &part.Buckets[i]
		b.Charges = slices.Clone(b.Charges)
		for j := range b.Charges {
			if img != nil {
				b.Charges[j].Ends = endsOf(img)
			}
		}
	}
	return f.Session.Settle(ctx, call)
}

// read returns the images of call's buckets.
func (f *faulty) read(ctx context.Context, call *store.Call) (imgs []*bucket.Image, err error) {
	part := &call.Parts[0]
	read := store.Call{Called: call.Called, Parts: []store.Part{{
		Def: part.Def, Buckets: slices.Clone(part.Buckets),
	}}}
	if err := f.Session.Peek(ctx, &read); err != nil {
		return nil, err
	}
	for _, b := range read.Parts[0].Buckets {
		imgs = append(imgs, b.After)
	}
	return imgs, nil
}

// endsOf returns when the windows of img end.
func endsOf(img *bucket.Image) []int64 {
	var ends []int64
	for _, b := range img.Balances {
		ends = append(ends, b.Ends)
	}
	return ends
}

// giveToOne takes all charges for ones of the window of the last.
func giveToOne(ctx context.Context, f *faulty, call *store.Call) error {
	part := &call.Parts[0]
	for i := range part.Buckets {
		b := &part.Buckets[i]
		if n := len(b.Charges); n > 0 {
			b.Charges = []bucket.Charge{{Cost: part.Cost, Ends: b.Charges[n-1].Ends}}
		}
	}
	return f.Session.Settle(ctx, call)
}

// capAtCost takes nothing beyond the estimate.
func capAtCost(ctx context.Context, f *faulty, call *store.Call) error {
	part := &call.Parts[0]
	part.Actual = slices.Clone(part.Actual)
	for i, cost := range part.Cost {
		part.Actual[i] = min(part.Actual[i], cost)
	}
	if err := f.Session.Settle(ctx, call); err != nil {
		return err
	}
	imgs, err := f.read(ctx, call)
	for i, img := range imgs {
		part.Buckets[i].After = img // which Settle has not written
	}
	return err
}

// dropUsage fills the window of a bucket whose limits are others than at the last call.
func dropUsage(ctx context.Context, f *faulty, call *store.Call) error {
	part := &call.Parts[0]
	err := f.Session.Acquire(ctx, call)
	nearest := part.Buckets[0]
	f.mu.Lock()
	last := f.seen[nearest.Entity]
	f.seen[nearest.Entity] = nearest.After
	f.mu.Unlock()
	now := nearest.After.Balances[1]
	if err != nil || last == nil || last.Balances[1].Limit == now.Limit {
		return err
	}
	return f.turn(ctx, call, part.Buckets[:1], []int64{0, now.Burst - now.Tokens}, []int64{0, 0})
}

// chargeChild leaves charged what a call has taken of the entity's own bucket before its parent refuses.
func chargeChild(ctx context.Context, f *faulty, call *store.Call) error {
	err := f.Session.Acquire(ctx, call)
	denied, ok := errors.AsType[*store.DeniedError](err)
	if buckets := call.Parts[0].Buckets; ok && len(buckets) > 1 && denied.Entity != buckets[0].Entity {
		own := *call
		own.Parts = slices.Clone(call.Parts)
		own.Parts[0].Buckets, own.Parts[0].Cost = slices.Clone(buckets[:1]), []int64{0, call.Parts[0].Cost[1]}
		_ = f.Session.Acquire(ctx, &own) // if it can
	}
	return err
}

// grantTwice fills the bucket of whom it denies for the first time at an instant, and asks again.
func grantTwice(ctx context.Context, f *faulty, call *store.Call) error {
	err := f.Session.Acquire(ctx, call)
	denied, ok := errors.AsType[*store.DeniedError](err)
	if !ok {
		return err
	}
	key := call.Parts[0].Buckets[0].Entity + denied.Resets.String()
	f.mu.Lock()
	again := f.denials[key] != nil
	f.denials[key] = err
	f.mu.Unlock()
	if again {
		return err
	}
	part := &call.Parts[0]
	for _, b := range part.Buckets {
		root := part.Buckets[len(part.Buckets)-1].Entity
		if err := f.Session.Overrides().Fill(ctx, part.Def.Spec(), b.Kind, b.Entity, root); err != nil {
			return err
		}
	}
	return f.Session.Acquire(ctx, call)
}

// calendarless is a store of members that does not keep calendars.
type calendarless struct {
	store.MemberStore
	onPut bool // only those of whom it stores
}

func noCalendar(m store.MemberStore) store.MemberStore   { return &calendarless{m, false} }
func loseCalendar(m store.MemberStore) store.MemberStore { return &calendarless{m, true} }

// SetCalendar implements store.MemberStore.
func (c *calendarless) SetCalendar(ctx context.Context, entity string, since time.Time) error {
	if !c.onPut {
		return nil
	}
	return c.MemberStore.SetCalendar(ctx, entity, since)
}

// Put implements store.MemberStore.
func (c *calendarless) Put(ctx context.Context, m store.Member) error {
	if err := c.MemberStore.Put(ctx, m); err != nil || !c.onPut {
		return err
	}
	return c.MemberStore.SetCalendar(ctx, m.Entity, time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC))
}
