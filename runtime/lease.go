package runtime

import (
	"context"
	"log/slog"
	"sync"
)

// Lease holds what an acquire took, until it is settled or released; a lease that is dropped stands as charged. Its
// methods are safe for concurrent use.
type Lease[C any] struct {
	resource leaser[C]
	part     Part

	mu   sync.Mutex
	at   int64 // when the last write was known, ms
	done bool
}

// leaser is what a lease needs of its Resource, whose kinds it need not know.
type leaser[C any] interface {
	settle(ctx context.Context, part Part, actual C) (*Call, error)
	release(ctx context.Context, part Part)
	tokens(milli []int64) C
	least(part *Part, now int64) []int64
	now() int64
}

// Settle states the actual cost, in whole tokens; a 0 means the limit's per_call, as in Acquire. The difference is
// charged, into debt if need be, or given back.
//
// It ignores ctx's cancellation, keeps its values and bounds itself by SettleTimeout. It fails with an *InvalidError,
// which leaves the lease as it was, or with an *UnavailableError, after which the lease is spent and stands as charged
// or as settled: repeating could give back twice. A second Settle returns ErrSettled.
func (l *Lease[C]) Settle(ctx context.Context, actual C) error {
	if l == nil {
		return ErrSettled
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.done {
		return ErrSettled
	}
	call, err := l.resource.settle(ctx, l.part, actual)
	if call != nil {
		l.done, l.part, l.at = true, call.Parts[0], l.resource.now()
	}
	return err
}

// Release gives everything back. After Settle, or on a nil lease, it does nothing. It is made for defer: like Settle it
// outlives ctx, and it returns nothing: a failure goes to the observer and the log, and the tokens come back by refill.
func (l *Lease[C]) Release(ctx context.Context) {
	if l == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.done {
		return
	}
	l.done = true
	l.resource.release(ctx, l.part)
}

// Cost returns what the lease took, in whole tokens with per_call filled in.
func (l *Lease[C]) Cost() C { return l.resource.tokens(l.part.Cost) }

// Remaining returns what the bucket had left after the lease's last write, in whole tokens, without a read.
func (l *Lease[C]) Remaining() C {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.resource.tokens(l.resource.least(&l.part, l.at))
}

// settle turns part's cost into actual. The call is nil if actual is invalid and nothing was tried.
func (r *Resource[E, C]) settle(ctx context.Context, part Part, actual C) (*Call, error) {
	vector := r.toVector(actual, make([]int64, 0, len(r.spec.Limits)))
	if _, err := scale(r.spec, part.Buckets[0].Kind, vector); err != nil {
		return nil, err
	}
	call, err := r.finish(ctx, part, vector)
	if event := r.event(call, err); err != nil {
		tell(r.core.env.Observer.Failed, event)
	} else {
		tell(r.core.env.Observer.Settled, event)
	}
	return call, err
}

// release gives part back.
func (r *Resource[E, C]) release(ctx context.Context, part Part) {
	call, err := r.finish(ctx, part, make([]int64, len(part.Cost)))
	event := r.event(call, err)
	if err == nil {
		tell(r.core.env.Observer.Released, event)
		return
	}
	tell(r.core.env.Observer.Failed, event)
	r.core.env.Logger.LogAttrs(ctx, slog.LevelWarn, "sluice: release did not get through; the tokens come back by refill",
		slog.String("resource", event.Resource), slog.String("entity", event.Entity), slog.Any("error", err))
}

func (r *Resource[E, C]) finish(ctx context.Context, part Part, actual []int64) (*Call, error) {
	part.Actual = actual
	call := &Call{Called: r.core.env.Clock.Now(), Parts: []Part{part}}
	ctx, cancel := r.detached(ctx)
	defer cancel()
	return call, r.core.session.Settle(ctx, call)
}
