package runtime

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/sluice-go/sluice/runtime/internal/balances"
	"github.com/sluice-go/sluice/runtime/internal/observers"
	"github.com/sluice-go/sluice/runtime/internal/outage"
	"github.com/sluice-go/sluice/runtime/internal/tokens"
	"github.com/sluice-go/sluice/runtime/store"
)

// Lease holds what an acquire took, until it is settled, kept or released. A lease that is dropped stays
// charged. Its methods are safe for concurrent use; the first of Settle, Keep and Release takes effect. Only
// an acquire makes one: of the zero Lease, Settle and More fail. A fake Acquirer written by hand returns the
// leases of limittest.Fake.
type Lease[C any] lease

// lease is an untyped Lease.
type lease struct {
	resource *resource // nil in the zero Lease
	by       outage.Settler
	options  *callOptions // of the acquire
	shadowed error        // what would have refused it; then it took nothing

	turn  sync.Mutex // held while Settle, Keep or Release decides to end the lease, and for all of a More
	spent bool       // the lease has ended; guarded by turn

	mu      sync.Mutex     // never held while the store is at work; turn is taken first
	part    *store.Part    // what was taken; More puts another Part in its place, and changes none
	buckets []store.Bucket // as the last write left them
	at      int64          // when that write ended, ms
}

// Settle states the actual cost, in whole tokens; a 0 means the limit's per_call, as in Acquire. The
// difference is charged, into debt if need be, or given back: to a window that is over in usage alone.
//
// It ignores ctx's cancellation, keeps its values and bounds itself by WithSettleTimeout. It fails with:
//   - an *InvalidError, which leaves the lease as it was, for a bad cost and for the zero Lease;
//   - ErrSettled, if it is not the first to end the lease, or the lease is nil;
//   - the store's error, mostly an *UnavailableError. The lease is then spent, and stands as charged or as
//     settled: repeating could give back twice.
//
// With lazy settles (LazySettle) it returns before the store has written. An error of that write goes to the
// observer and the log.
func (l *Lease[C]) Settle(ctx context.Context, actual C) error {
	if err := (*lease)(l).check(); err != nil {
		return err
	}
	v := l.resource.core.vectors()
	return (*lease)(l).settle(ctx, costsOf[C](l.resource).toVector(actual, v.whole[:0]), v)
}

// Keep ends the lease as it is: the charge stands. It writes nothing. After Settle or Release, or on a nil
// lease, it does nothing. Like Release, it is made for defer.
func (l *Lease[C]) Keep(context.Context) {
	if l != nil {
		(*lease)(l).spend()
	}
}

// Release gives everything back. After Settle or Keep, or on a nil lease, it does nothing. It is made for
// defer: like Settle it outlives ctx, and it returns nothing. A failure goes to the observer and the log, and
// the tokens come back by refill.
func (l *Lease[C]) Release(ctx context.Context) {
	(*lease)(l).release(ctx)
}

// Cost returns the cost as acquired, More included, in whole tokens with per_call filled in. A
// lease that Allow admitted, or that is Shadowed, took none of it.
func (l *Lease[C]) Cost() (cost C) {
	if (*lease)(l).isZero() {
		return cost
	}
	return costsOf[C](l.resource).fromVector((*lease)(l).cost())
}

// Remaining returns what the lease's last write left, in whole tokens: of several buckets the least. It reads
// nothing. A lazy settle or release counts once it is written. A Shadowed lease wrote nothing: it returns the
// tokens that were there instead of the cost, as far as they are known, else 0.
func (l *Lease[C]) Remaining() (left C) {
	if (*lease)(l).isZero() {
		return left
	}
	return costsOf[C](l.resource).fromVector((*lease)(l).remaining())
}

// Degraded reports that the store did not answer, and that the failure policy or shadow mode admitted the
// call. The store has no record of it. By Allow the lease took nothing; by Local it took from a bucket in
// this process. Its other methods work accordingly, and never fail because the store does not answer.
func (l *Lease[C]) Degraded() bool { return l != nil && outage.Degraded(l.by) }

// Shadowed returns the error by which Acquire or Wait would have refused the call, had it not been in shadow.
// It is nil if nothing would have. Otherwise the lease took nothing, and its Settle and Release write
// nothing. As after a refusal, no bucket counts what the call consumes.
func (l *Lease[C]) Shadowed() error {
	if l == nil {
		return nil
	}
	return l.shadowed
}

// isZero reports that no acquire made l.
func (l *lease) isZero() bool { return l == nil || l.resource == nil }

// check returns why l can be neither settled nor extended: no acquire made it.
func (l *lease) check() error {
	switch {
	case l == nil:
		return ErrSettled
	case l.resource == nil:
		return &InvalidError{Field: "lease", Reason: "is empty: Acquire, Wait, Do and Claim make leases"}
	}
	return nil
}

// cost returns what l holds, in whole tokens.
func (l *lease) cost() []int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return balances.Whole(l.part.Cost)
}

// remaining returns the least of each limit in l's buckets, in whole tokens: 0 if it knows none of them.
func (l *lease) remaining() []int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return balances.Whole(balances.Least(l.part.Def.Spec(), l.buckets, l.at))
}

// spend closes the lease, and reports whether it was open. It waits for a More under way.
func (l *lease) spend() bool {
	l.turn.Lock()
	defer l.turn.Unlock()
	open := !l.spent
	l.spent = true
	return open
}

// wrote records what a write that ended at at (ms) left in buckets.
func (l *lease) wrote(buckets []store.Bucket, at int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.buckets, l.at = buckets, at
}

// settle turns l's cost into actual, in whole tokens, unless something is wrong with that or l has ended.
// actual may be in v, which settle puts back.
func (l *lease) settle(ctx context.Context, actual []int64, v *vectors) error {
	r := l.resource
	l.turn.Lock()
	if l.spent {
		l.turn.Unlock()
		r.core.vectorPool.Put(v)
		return ErrSettled
	}
	call := l.closing()
	part := &call.Parts[0]
	part.Actual = append(part.Actual, actual...)
	r.core.vectorPool.Put(v)
	_, err := tokens.Scale(r.spec, part.Buckets[0].Kind, true, part.Actual)
	l.spent = err == nil
	l.turn.Unlock()
	if err == nil {
		return l.finish(ctx, call, false)
	}
	if f := r.core.env.Observer.Failed; f != nil {
		f(ctx, observers.Event(store.OperationSettle, call, r.core.env.Clock.Now(), err))
	}
	return err
}

// release gives all of l back, unless it has ended or no acquire made it.
func (l *lease) release(ctx context.Context) {
	if l == nil || !l.spend() || l.resource == nil {
		return
	}
	call := l.closing()
	part := &call.Parts[0]
	part.Actual = append(part.Actual, make([]int64, len(part.Cost))...)
	_ = l.finish(ctx, call, true) // the observer and the log have the error
}

// closing returns a Call that closes l. Its Actual is still empty. Its Buckets are a copy, in which the store
// records what it left.
func (l *lease) closing() *store.Call {
	c := &struct {
		call    store.Call
		part    [1]store.Part
		buckets [2]store.Bucket // as in an acquisition
		actual  [4]int64
	}{part: [1]store.Part{*l.part}}
	part := &c.part[0]
	part.Buckets, part.Actual = append(c.buckets[:0], part.Buckets...), c.actual[:0]
	c.call.Called, c.call.Parts = l.resource.core.env.Clock.Now(), c.part[:]
	return &c.call
}

// finish closes l by call, a settle or a release. It outlives ctx's cancellation, within the settle time-out.
func (l *lease) finish(ctx context.Context, call *store.Call, release bool) error {
	r := l.resource
	ctx = context.WithoutCancel(ctx)
	if l.shadowed != nil { // there is nothing to write
		l.reportClosed(ctx, call, release, r.core.env.Clock.Now(), nil)
		return nil
	}
	bounded, cancel := context.WithTimeout(ctx, r.core.env.SettleTimeout)
	taken := false // by the store, which then still needs bounded
	defer func() {
		if !taken {
			cancel()
		}
	}()
	lazy := l.options.lazy.or(r.spec.LazySettle)
	if lazy {
		call.Later = func(err error) {
			cancel()
			l.closed(ctx, call, release, true, err)
		}
	}
	err := l.by.Settle(bounded, call)
	if taken = lazy && call.Later == nil; taken {
		return err
	}
	l.closed(ctx, call, release, false, err)
	return err
}

// closed records how call, a settle or a release, has ended, and reports it to waiters, the observer and the
// log. late means that no caller waits for its error.
func (l *lease) closed(ctx context.Context, call *store.Call, release, late bool, err error) {
	r := l.resource
	ended, part := r.core.env.Clock.Now(), &call.Parts[0]
	l.wrote(part.Buckets, ended.UnixMilli())
	if err == nil {
		l.noticeGiveBack(part)
	}
	l.reportClosed(ctx, call, release, ended, err)
	lost := "sluice: release did not get through; the tokens come back by refill"
	switch {
	case err == nil, !release && !late:
		return
	case !release:
		lost = "sluice: settle did not get through; its lease stands as charged or as settled"
	}
	r.core.env.Logger.LogAttrs(ctx, slog.LevelWarn, lost,
		slog.String("resource", r.spec.Resource),
		slog.String("entity", store.Quote(part.Buckets[0].Entity)), slog.Any("error", err))
}

// reportClosed calls the observer with how call, a settle or a release, has ended.
func (l *lease) reportClosed(
	ctx context.Context, call *store.Call, release bool, ended time.Time, err error,
) {
	r := l.resource
	obs := r.core.env.Observer
	f, operation := obs.Settled, store.OperationSettle
	if release {
		f, operation = obs.Released, store.OperationRelease
	}
	if err != nil {
		f = obs.Failed
	}
	if f == nil {
		return
	}
	event := observers.Event(operation, call, ended, err)
	event.Local, event.Shadow = outage.Degraded(l.by), l.shadowed != nil
	f(ctx, event)
}

// noticeGiveBack wakes the waiters of part's buckets if tokens came back. A bucket that is as before was not
// written to, so nothing was given back to it.
func (l *lease) noticeGiveBack(part *store.Part) {
	r := l.resource
	if r.core.waiters.Buckets() == 0 {
		return
	}
	for i, actual := range part.Actual {
		if actual < part.Cost[i] {
			r.core.waiters.GaveBack(r.spec.Resource, balances.Written(r.spec, l.part.Buckets, part.Buckets), r.now())
			return
		}
	}
}
