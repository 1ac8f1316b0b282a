package runtime

import (
	"context"
	goruntime "runtime"

	"github.com/sluice-go/sluice/runtime/internal/contexts"
	"github.com/sluice-go/sluice/runtime/internal/outage"
	"github.com/sluice-go/sluice/runtime/internal/parked"
)

// Lease holds what an acquire took, until it is settled, kept or released. Its methods are safe for
// concurrent use; the first of Settle, Keep and Release takes effect. Only an acquire makes one: of the zero
// Lease, Settle and More fail. A fake Acquirer written by hand returns the leases of limittest.Fake.
//
// A lease holds its slots of in-flight limits, and what it reserved of limits with on_crash: release. The
// process extends them however long the call takes, also after the acquire's context has ended. They come
// back when the lease ends, or within two minutes after the process has died. A lease that is dropped stays
// charged. If it holds something, it ends as by Keep once it is garbage collected, and the log names the
// place of its acquire.
type Lease[C any] lease

// lease is an untyped Lease.
type lease struct {
	record *record       // nil in the zero Lease
	own    record        // the record of a lease whose buckets count no holds
	bound  *contexts.Set // nil for such a lease
}

// Settle states the actual cost, in whole tokens; a 0 means the limit's per_call, as in Acquire. The
// difference is charged, into debt if need be, or given back: to a window that is over in usage alone. Slots
// come back: Settle ignores the fields of in-flight limits.
//
// It ignores ctx's cancellation, keeps its values and bounds itself by WithSettleTimeout. It fails with:
//   - an *InvalidError, which leaves the lease as it was, for a bad cost and for the zero Lease;
//   - ErrSettled, if it is not the first to end the lease, or the lease is nil;
//   - the store's error, mostly an *UnavailableError. The lease is then spent, and stands as charged or as
//     settled: repeating could give back twice. Slots come back within two minutes.
//
// With lazy settles (LazySettle) it returns before the store has written. An error of that write goes to the
// observer and the log.
func (l *Lease[C]) Settle(ctx context.Context, actual C) error {
	if err := (*lease)(l).check(); err != nil {
		return err
	}
	v := l.record.resource.core.vectors()
	err := l.record.settle(ctx, costsOf[C](l.record.resource).toVector(actual, v.whole[:0]), v)
	goruntime.KeepAlive(l) // it is not collected, and kept, before it is settled
	return err
}

// Keep ends the lease as it is: the charge stands, and slots come back. It writes nothing if the lease holds
// nothing. After Settle or Release, or on a nil lease, it does nothing. Like Release, it is made for defer.
func (l *Lease[C]) Keep(ctx context.Context) {
	if !(*lease)(l).isZero() {
		l.record.keep(ctx)
		goruntime.KeepAlive(l)
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
	return costsOf[C](l.record.resource).fromVector(l.record.cost())
}

// Remaining returns what the lease's last write left, in whole tokens: of several buckets the least. It reads
// nothing. A lazy settle or release counts once it is written. A Shadowed lease wrote nothing: it returns the
// tokens that were there instead of the cost, as far as they are known, else 0.
func (l *Lease[C]) Remaining() (left C) {
	if (*lease)(l).isZero() {
		return left
	}
	return costsOf[C](l.record.resource).fromVector(l.record.remaining())
}

// Degraded reports that the store did not answer, and that the failure policy or shadow mode admitted the
// call. The store has no record of it. By Allow the lease took nothing; by Local it took from a bucket in
// this process. Its other methods work accordingly, and never fail because the store does not answer.
func (l *Lease[C]) Degraded() bool {
	return !(*lease)(l).isZero() && outage.Degraded(l.record.by)
}

// Shadowed returns the error by which Acquire or Wait would have refused the call, had it not been in shadow.
// It is nil if nothing would have. Otherwise the lease took nothing, and its Settle and Release write
// nothing. As after a refusal, no bucket counts what the call consumes.
func (l *Lease[C]) Shadowed() error {
	if (*lease)(l).isZero() {
		return nil
	}
	return l.record.shadowed
}

// Park puts an open lease aside in a few bytes, which it appends to dst, for a server that has many leases.
// Unpark makes a lease of them that ends as l would; l has ended for callers. Park returns false, and changes
// nothing, if l has ended, took nothing, or holds something; also for some leases in windows.
func (l *Lease[C]) Park(dst []byte) (text []byte, ok bool) {
	if (*lease)(l).isZero() {
		return dst, false
	}
	r := l.record
	r.Lock()
	defer r.Unlock()
	if r.Spent() || r.holder != nil || r.shadowed != nil || outage.Degraded(r.by) {
		return dst, false
	}
	if dst, ok = parked.Append(dst, r.Part()); ok {
		r.end()
	}
	return dst, ok
}

// Unpark returns the lease that Park has put aside, of this resource. It fails with an *InvalidError for
// anything else. Several of one Park would each give all of it back: the caller uses one.
func (r *Resource[E, C]) Unpark(text []byte) (*Lease[C], error) {
	part, ok := parked.Read(r.untyped.def, r.untyped.spec, text)
	if !ok {
		return nil, &InvalidError{Resource: r.Name(), Field: "parked lease", Reason: "is not what Park returns"}
	}
	l := &lease{own: record{resource: r.untyped, by: r.untyped.core.session, options: &r.untyped.defaults}}
	l.record = &l.own
	l.own.Begin(part, false)
	return (*Lease[C])(l), nil
}

// isZero reports that no acquire made l.
func (l *lease) isZero() bool { return l == nil || l.record == nil }

// check returns why l can be neither settled nor extended: no acquire made it.
func (l *lease) check() error {
	switch {
	case l == nil:
		return ErrSettled
	case l.record == nil:
		return &InvalidError{Field: "lease", Reason: "is empty: Acquire, Wait, Do and Claim make leases"}
	}
	return nil
}

// release gives all of l back, unless it has ended or no acquire made it.
func (l *lease) release(ctx context.Context) {
	if !l.isZero() {
		l.record.release(ctx)
		goruntime.KeepAlive(l) // it is not collected, and kept, before it is released
	}
}
