package runtime

import (
	"context"
	"log/slog"
	"slices"
	"sync"

	"github.com/sluice-go/sluice/runtime/bucket"
)

// Lease holds what an acquire took, until it is settled or released; a lease that is dropped stands as charged. Its
// methods are safe for concurrent use: of several that close it, the first does. The zero Lease took nothing, and settles
// and releases without effect: a fake Acquirer may return it.
type Lease[C any] struct {
	resource leaser[C]
	by       settler
	part     Part // as acquired; it stays

	mu      sync.Mutex // never held while the store is at work
	spent   bool
	buckets []Bucket // as the last write left them, at this instant, ms
	at      int64
}

func newLease[C any](r leaser[C], part Part, by settler) *Lease[C] {
	return &Lease[C]{resource: r, by: by, part: part, buckets: part.Buckets, at: r.now()}
}

// leaser is what a lease needs of its Resource, whose kinds it need not know.
type leaser[C any] interface {
	stated(part Part, actual C) (*Call, error)
	settle(ctx context.Context, by settler, part Part, call *Call) error
	release(ctx context.Context, by settler, part Part) *Call
	tokens(milli []int64) C
	least(buckets []Bucket, now int64) []int64
	now() int64
}

// Settle states the actual cost, in whole tokens; a 0 means the limit's per_call, as in Acquire. The difference is
// charged, into debt if need be, or given back.
//
// It ignores ctx's cancellation, keeps its values and bounds itself by SettleTimeout. It fails with an *InvalidError,
// which leaves the lease as it was, or with what kept the store from it, mostly an *UnavailableError. The lease is spent
// then, and stands as charged or as settled: repeating could give back twice. A second Settle, or one of a nil lease,
// returns ErrSettled.
func (l *Lease[C]) Settle(ctx context.Context, actual C) error {
	if l == nil || !l.open() {
		return ErrSettled
	}
	if l.resource == nil {
		l.spend()
		return nil
	}
	call, err := l.resource.stated(l.part, actual)
	if err != nil {
		return err
	}
	if !l.spend() {
		return ErrSettled
	}
	err = l.resource.settle(ctx, l.by, l.part, call)
	l.wrote(call)
	return err
}

// Release gives everything back. After Settle, or on a nil lease, it does nothing. It is made for defer: like Settle it
// outlives ctx, and it returns nothing: a failure goes to the observer and the log, and the tokens come back by refill.
func (l *Lease[C]) Release(ctx context.Context) {
	if l == nil || !l.spend() || l.resource == nil {
		return
	}
	l.wrote(l.resource.release(ctx, l.by, l.part))
}

// Cost returns what the lease stands for, as acquired: in whole tokens with per_call filled in. Where Allow admitted, nothing
// was taken of it.
func (l *Lease[C]) Cost() (cost C) {
	if l == nil || l.resource == nil {
		return cost
	}
	return l.resource.tokens(l.part.Cost)
}

// Remaining returns what the lease's last write left, in whole tokens and without a read: of several buckets the least.
func (l *Lease[C]) Remaining() (left C) {
	if l == nil || l.resource == nil {
		return left
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.resource.tokens(l.resource.least(l.buckets, l.at))
}

// Degraded reports that the store did not answer and the failure policy admitted the call, of which the store has no
// record. The lease took nothing by Allow, or it took from a bucket in this process by Local; its other methods work
// accordingly, and never fail for want of the store.
func (l *Lease[C]) Degraded() bool { return l != nil && degraded(l.by) }

func (l *Lease[C]) open() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return !l.spent
}

// spend reports whether the lease was open, which it no longer is.
func (l *Lease[C]) spend() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	open := !l.spent
	l.spent = true
	return open
}

// wrote notes what call left.
func (l *Lease[C]) wrote(call *Call) {
	at := l.resource.now()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.buckets, l.at = call.Parts[0].Buckets, at
}

// stated makes a Call that turns part's cost into actual, or says what is wrong with actual.
func (r *Resource[E, C]) stated(part Part, actual C) (*Call, error) {
	call := r.closing(part, r.toVector(actual, make([]int64, 0, len(part.Cost))))
	_, err := scale(r.spec, part.Buckets[0].Kind, call.Parts[0].Actual)
	if err != nil {
		tell(r.core.env.Observer.Failed, r.event(call, err))
	}
	return call, err
}

// settle sends what stated made.
func (r *resource) settle(ctx context.Context, by settler, part Part, call *Call) error {
	err := r.finish(ctx, by, call, part)
	if event := r.closed(call, by, err); err != nil {
		tell(r.core.env.Observer.Failed, event)
	} else {
		tell(r.core.env.Observer.Settled, event)
	}
	return err
}

// release gives part back.
func (r *resource) release(ctx context.Context, by settler, part Part) *Call {
	call := r.closing(part, make([]int64, len(part.Cost)))
	err := r.finish(ctx, by, call, part)
	event := r.closed(call, by, err)
	if err == nil {
		tell(r.core.env.Observer.Released, event)
		return call
	}
	tell(r.core.env.Observer.Failed, event)
	r.core.env.Logger.LogAttrs(ctx, slog.LevelWarn, "sluice: release did not get through; the tokens come back by refill",
		slog.String("resource", event.Resource), slog.String("entity", event.Entity), slog.Any("error", err))
	return call
}

// closed describes call, which closed what by had opened.
func (r *resource) closed(call *Call, by settler, err error) Event {
	event := r.event(call, err)
	event.Local = degraded(by)
	return event
}

// closing returns a Call that turns part's cost into actual, with Buckets of its own, in which the store notes what it
// left.
func (r *resource) closing(part Part, actual []int64) *Call {
	part.Buckets, part.Actual = slices.Clone(part.Buckets), actual
	return &Call{Called: r.core.env.Clock.Now(), Parts: []Part{part}}
}

// finish settles call, which closes part: it outlives ctx's cancellation and is bounded by the settle time-out.
func (r *resource) finish(ctx context.Context, by settler, call *Call, part Part) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), r.core.env.SettleTimeout)
	defer cancel()
	err := by.Settle(ctx, call)
	if err == nil {
		r.noticeGiveBack(part.Buckets, &call.Parts[0])
	}
	return err
}

// noticeGiveBack tells those who wait at part's buckets if tokens came back to them. One that is as it was before was not
// written to: there was nothing to give back to.
func (r *resource) noticeGiveBack(before []Bucket, part *Part) {
	for i, actual := range part.Actual {
		if actual < part.Cost[i] {
			r.core.lines.gaveBack(r.spec.Resource, r.written(before, part.Buckets))
			return
		}
	}
}

// written returns those of after that differ from before, with a full image where a bucket is gone.
func (r *resource) written(before, after []Bucket) []Bucket {
	var written []Bucket
	for i, b := range after {
		if b.After == before[i].After {
			continue
		}
		balances, refilled := r.balances(&b)
		b.After = &bucket.Image{Refilled: refilled, Balances: balances, Missing: make([]bool, len(balances))}
		written = append(written, b)
	}
	return written
}
