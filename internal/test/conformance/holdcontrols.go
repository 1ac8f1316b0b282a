package conformance

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/sluice-go/sluice/runtime/bucket"
	"github.com/sluice-go/sluice/runtime/store"
)

// holdFaults are what the suite has to see of limits that count holds.
var holdFaults = []fault{
	{name: "never gives back what the dead held", only: "slots of a dead process", acquire: neverSwept,
		want: `refused by .*Limit:rpm .*RetryAfter:1s.* which has the tokens`},
	{name: "gives back what is still held", only: "slots of a dead process", acquire: sweptEarly,
		want: `user-alice rpm: 0'000 of 1'000 mt refuses, and was not named next: <nil>`},
	{name: "returns slots twice", only: "slots return", settle: returnTwice,
		want: `^settle: user-alice has 7'000 mt of rpm, want 4'000`},
	{name: "returns no slots where a lease is kept", only: "slots return", settle: dropKept,
		want: `^keep: user-alice has 4'000 mt of rpm, want 5'000`},
	{name: "lowers usage where a lease is kept", only: "slots return", settle: uncountKept, usage: true,
		want: `^keep: rpm of user-alice: usage is 8'000 mt, want 9'000`},
	{name: "returns a slot that is lost", only: "settle of a lost lease", settle: returnLost,
		want: `^keep: user-alice has 6'000 mt of rpm, want 2'000`},
	{name: "takes a slot for More", only: "more that is held", acquire: slotForMore,
		want: `TPM:30} more for user-alice: user-alice has 8'000 mt of rpm, want 9'000`},
	{name: "extends nothing", only: "slots extended", extend: extendNothing,
		want: `user-alice rpm: 0'000 of 1'000 mt refuses, and was not named next: <nil>`},
	{name: "extends what is lost", only: "reset slots", extend: extendLost,
		want: `its context ends by <nil>, want ErrLeaseLost`},
	{name: "resets without the slots that are held", only: "reset slots", fill: fillNothing,
		want: `^peek: user-alice has 0'000 mt of rpm, want 10'000`},
	{name: "forgets what is held where a capacity changes", only: "override slots", acquire: freeBy,
		want: `user-alice has 20'000 mt of rpm, want 0'000`},
	{name: "denies slots until a window ends", only: "slots denied", acquire: deniesLong,
		want: `refusal .*RetryAfter:15h.*\n.*for 1s`},
	{name: "charges nothing for a reservation that is lost", only: "settle of a lost lease", settle: uncharged,
		want: `^settle: user-alice has 140'000 mt of tpm, want 115'000`},
	{name: "charges all of a reservation that a settle lowers", only: "settle of what is held", settle: kept,
		want: `^settle: user-alice has 70'000 mt of tpm, want 100'000`},
}

// neverSwept denies for ever what it has denied once for want of a slot.
func neverSwept(ctx context.Context, f *faulty, call *store.Call) error {
	nearest := call.Parts[0].Buckets[0].Entity
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.denials[nearest]; err != nil {
		return err
	}
	err := f.Session.Acquire(ctx, call)
	if denied, ok := errors.AsType[*store.DeniedError](err); ok && denied.RetryAfter == bucket.FullRetry {
		f.denials[nearest] = err
	}
	return err
}

// sweptEarly fills the bucket that refuses for want of a slot, and asks again.
func sweptEarly(ctx context.Context, f *faulty, call *store.Call) error {
	err := f.Session.Acquire(ctx, call)
	if _, denied := errors.AsType[*store.DeniedError](err); !denied {
		return err
	}
	part := &call.Parts[0]
	b := part.Buckets[0]
	root := part.Buckets[len(part.Buckets)-1].Entity
	if err := f.Session.Overrides().Fill(ctx, part.Def.Spec(), b.Kind, b.Entity, root); err != nil {
		return err
	}
	return f.Session.Acquire(ctx, call)
}

// returnTwice repeats a settle, as if it had not been written.
func returnTwice(ctx context.Context, f *faulty, call *store.Call) error {
	part := &call.Parts[0]
	if err := f.Session.Settle(ctx, call); err != nil {
		return err
	}
	part.Actual = part.Cost
	return f.Session.Settle(ctx, call)
}

// isKept reports whether a settle leaves all that was taken.
func isKept(call *store.Call) bool { return slices.Equal(call.Parts[0].Actual, call.Parts[0].Cost) }

// dropKept does not return the slots of a lease that is kept.
func dropKept(ctx context.Context, f *faulty, call *store.Call) error {
	if !isKept(call) {
		return f.Session.Settle(ctx, call)
	}
	part := &call.Parts[0]
	imgs, err := f.read(ctx, call)
	for i, img := range imgs {
		part.Buckets[i].After = img
	}
	return err
}

// uncountKept takes calls that are kept for ones that were released.
func uncountKept(ctx context.Context, f *faulty, call *store.Call) error {
	part := &call.Parts[0]
	if !isKept(call) {
		return f.Session.Settle(ctx, call)
	}
	part.Actual = slices.Clone(part.Actual)
	part.Actual[0] = 0
	return f.Session.Settle(ctx, call)
}

// heldIn changes the epochs of what call's leases hold.
func heldIn(call *store.Call, change func(limit int, epoch int64) int64) {
	part := &call.Parts[0]
	for i := range part.Buckets {
		b := &part.Buckets[i]
		b.Charges = slices.Clone(b.Charges)
		for j := range b.Charges {
			c := &b.Charges[j]
			c.Epochs = slices.Clone(c.Epochs)
			for k, e := range c.Epochs {
				if e != 0 {
					c.Epochs[k] = change(k, e)
				}
			}
		}
	}
}

// returnLost returns slots from the epoch in which others hold theirs.
func returnLost(ctx context.Context, f *faulty, call *store.Call) error {
	heldIn(call, func(limit int, epoch int64) int64 {
		if limit == 0 {
			return max(epoch, bucket.Epoch(call.Called.UnixMilli())+1)
		}
		return epoch
	})
	return f.Session.Settle(ctx, call)
}

// slotForMore takes a slot wherever a call takes none.
func slotForMore(ctx context.Context, f *faulty, call *store.Call) error {
	part := &call.Parts[0]
	if part.Cost[0] == 0 {
		part.Cost = slices.Clone(part.Cost)
		part.Cost[0] = bucket.Milli
	}
	return f.Session.Acquire(ctx, call)
}

// extendNothing says that holds are extended, and leaves them where they are.
func extendNothing(_ context.Context, _ *faulty, call *store.Call) error {
	b := &call.Parts[0].Buckets[0]
	b.Epochs = slices.Clone(b.Charges[0].Epochs)
	for i := range b.Epochs {
		if b.Epochs[i] != 0 {
			b.Epochs[i]++
		}
	}
	return nil
}

// extendLost says that all is extended, whatever is over.
func extendLost(ctx context.Context, f *faulty, call *store.Call) error {
	held := call.Parts[0].Buckets[0].Charges[0].Epochs
	err := f.Session.Extend(ctx, call)
	b := &call.Parts[0].Buckets[0]
	b.Epochs = slices.Clone(b.Epochs)
	for i, e := range b.Epochs {
		if e == bucket.Lost {
			b.Epochs[i] = held[i] + 1
		}
	}
	return err
}

// freeBy returns all slots of a bucket whose capacity is another than at the last call.
func freeBy(ctx context.Context, f *faulty, call *store.Call) error {
	part := &call.Parts[0]
	err := f.Session.Acquire(ctx, call)
	nearest := &part.Buckets[0]
	f.mu.Lock()
	last := f.seen[nearest.Entity]
	f.seen[nearest.Entity] = nearest.After
	f.mu.Unlock()
	if err != nil || last == nil || last.Balances[0].Limit == nearest.After.Balances[0].Limit {
		return err
	}
	slots := nearest.After.Balances[0]
	for cell, n := range slots.Cells {
		cost := []int64{n, 0}
		one := store.Part{Def: part.Def, Cost: cost, Actual: cost, Buckets: []store.Bucket{*nearest}}
		one.Root = part.Buckets[len(part.Buckets)-1].Entity
		one.Buckets[0].Charges = []bucket.Charge{{
			Cost: cost, Ends: endsOf(nearest.After), Epochs: []int64{slots.HeldIn(cell), 0},
		}}
		if err := f.Session.Settle(ctx, &store.Call{Called: call.Called, Parts: []store.Part{one}}); err != nil {
			return err
		}
		nearest.After = one.Buckets[0].After
	}
	return nil
}

// deniesLong takes slots for tokens of a window.
func deniesLong(ctx context.Context, f *faulty, call *store.Call) error {
	err := f.Session.Acquire(ctx, call)
	denied, ok := errors.AsType[*store.DeniedError](err)
	if !ok {
		return err
	}
	other := *denied
	other.RetryAfter, other.Refusals = 15*time.Hour, slices.Clone(denied.Refusals)
	for i := range other.Refusals {
		other.Refusals[i].RetryAfter = 15 * time.Hour
	}
	return &other
}

// uncharged takes what is over for what was given back to it.
func uncharged(ctx context.Context, f *faulty, call *store.Call) error {
	now := bucket.Epoch(call.Called.UnixMilli())
	part := &call.Parts[0]
	lost := slices.ContainsFunc(part.Buckets[0].Charges, func(c bucket.Charge) bool {
		return len(c.Epochs) > 1 && c.Epochs[1] != 0 && c.Epochs[1] < now
	})
	if !lost {
		return f.Session.Settle(ctx, call)
	}
	imgs, err := f.read(ctx, call)
	for i, img := range imgs {
		part.Buckets[i].After = img
	}
	return err
}

// kept settles as Keep does.
func kept(ctx context.Context, f *faulty, call *store.Call) error {
	call.Parts[0].Actual = call.Parts[0].Cost
	return f.Session.Settle(ctx, call)
}
