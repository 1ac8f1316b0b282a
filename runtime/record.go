package runtime

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/sluice-go/sluice/runtime/internal/balances"
	"github.com/sluice-go/sluice/runtime/internal/keeper"
	"github.com/sluice-go/sluice/runtime/internal/observers"
	"github.com/sluice-go/sluice/runtime/internal/outage"
	"github.com/sluice-go/sluice/runtime/internal/tokens"
	"github.com/sluice-go/sluice/runtime/store"
)

// record is what an open lease took, and what its end needs. It does not refer to the lease: a lease that
// holds something may be collected, and then its record ends it.
type record struct {
	keeper.Record

	resource *resource
	by       outage.Settler
	options  *callOptions // of the acquire
	shadowed error        // what would have refused it; then it took nothing
	holder   *holder      // nil if its buckets count no holds

	mu      sync.Mutex     // never held while the store is at work
	buckets []store.Bucket // as the last write left them
	at      int64          // when that write ended, ms
}

// closing is how a lease ends.
type closing uint8

const (
	settling closing = iota
	releasing
	keeping
)

// cost returns what the lease took, in whole tokens.
func (r *record) cost() []int64 { return balances.Whole(r.resource.spec, r.Part().Cost) }

// remaining returns the least of each limit in the lease's buckets, in whole tokens: 0 if it knows none of
// them.
func (r *record) remaining() []int64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	spec := r.resource.spec
	return balances.Whole(spec, balances.Least(spec, r.buckets, r.at))
}

// wrote records what a write that ended at at (ms) left in buckets.
func (r *record) wrote(buckets []store.Bucket, at int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.buckets, r.at = buckets, at
}

// bounded returns a context for the end of the lease, which outlives ctx's cancellation, within the settle
// time-out. The wait for a write under way is a part of that.
func (r *record) bounded(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(ctx), r.resource.core.env.SettleTimeout)
}

// spend ends the lease, and reports whether it was open. It waits for the write under way.
func (r *record) spend() bool {
	r.Lock()
	defer r.Unlock()
	if r.Spent() {
		return false
	}
	r.end()
	return true
}

// end ends the lease. The caller has locked r.
func (r *record) end() {
	r.Spend()
	if r.holder != nil {
		r.holder.end(r)
	}
}

// settle turns the lease's cost into actual, in whole tokens, unless something is wrong with that or the
// lease has ended. actual may be in v, which settle puts back.
func (r *record) settle(ctx context.Context, actual []int64, v *vectors) error {
	core, spec := r.resource.core, r.resource.spec
	ctx, cancel := r.bounded(ctx)
	r.Lock()
	if r.Spent() {
		r.Unlock()
		cancel()
		core.vectorPool.Put(v)
		return ErrSettled
	}
	call := r.closing()
	part := &call.Parts[0]
	part.Actual = append(part.Actual, actual...)
	core.vectorPool.Put(v)
	tokens.IgnoreSlots(spec, part.Actual, nil)
	_, err := tokens.Scale(spec, part.Buckets[0].Kind, true, part.Actual)
	if err == nil {
		tokens.IgnoreSlots(spec, part.Actual, part.Cost)
		r.end()
	}
	r.Unlock()
	if err == nil {
		return r.finish(ctx, cancel, call, settling)
	}
	cancel()
	if f := core.env.Observer.Failed; f != nil {
		f(ctx, observers.Event(store.OperationSettle, call, core.env.Clock.Now(), err))
	}
	return err
}

// keep ends the lease as it is, unless it has ended.
func (r *record) keep(ctx context.Context) {
	ctx, cancel := r.bounded(ctx)
	if r.spend() {
		r.finishKept(ctx, cancel)
	} else {
		cancel()
	}
}

// finishKept closes a lease that has ended as it is. It writes nothing if the lease holds nothing.
func (r *record) finishKept(ctx context.Context, cancel context.CancelFunc) {
	if r.holder == nil || !r.holds() {
		cancel()
		return
	}
	call := r.closing()
	part := &call.Parts[0]
	part.Actual = append(part.Actual, part.Cost...)
	_ = r.finish(ctx, cancel, call, keeping) // the observer and the log have the error
}

// release gives all of the lease back, unless it has ended.
func (r *record) release(ctx context.Context) {
	ctx, cancel := r.bounded(ctx)
	if !r.spend() {
		cancel()
		return
	}
	call := r.closing()
	part := &call.Parts[0]
	part.Actual = append(part.Actual, make([]int64, len(part.Cost))...)
	_ = r.finish(ctx, cancel, call, releasing) // the observer and the log have the error
}

// closing returns a Call that closes the lease. Its Actual is still empty. Its Buckets are a copy, in which
// the store records what it left.
func (r *record) closing() *store.Call {
	c := &struct {
		call    store.Call
		part    [1]store.Part
		buckets [2]store.Bucket // as in an acquisition
		actual  [4]int64
	}{part: [1]store.Part{*r.Part()}}
	part := &c.part[0]
	part.Buckets, part.Actual = append(c.buckets[:0], part.Buckets...), c.actual[:0]
	c.call.Called, c.call.Parts = r.resource.core.env.Clock.Now(), c.part[:]
	return &c.call
}

// finish closes the lease by call, within bounded, which it cancels.
func (r *record) finish(
	bounded context.Context, cancel context.CancelFunc, call *store.Call, how closing,
) error {
	core, ctx := r.resource.core, context.WithoutCancel(bounded)
	if r.shadowed != nil { // there is nothing to write
		cancel()
		r.reportClosed(ctx, call, how, core.env.Clock.Now(), nil)
		return nil
	}
	taken := false // by the store, which then still needs bounded
	defer func() {
		if !taken {
			cancel()
		}
	}()
	lazy := r.options.lazy.or(r.resource.spec.LazySettle)
	if lazy {
		call.Later = func(err error) {
			cancel()
			r.closed(ctx, call, how, true, err)
		}
	}
	err := r.by.Settle(bounded, call)
	if taken = lazy && call.Later == nil; taken {
		return err
	}
	r.closed(ctx, call, how, false, err)
	return err
}

// closed records how call has ended, and reports it to waiters, the observer and the log. late means that no
// caller waits for its error.
func (r *record) closed(ctx context.Context, call *store.Call, how closing, late bool, err error) {
	core := r.resource.core
	ended, part := core.env.Clock.Now(), &call.Parts[0]
	r.wrote(part.Buckets, ended.UnixMilli())
	if err == nil {
		r.noticeGiveBack(part)
	}
	r.reportClosed(ctx, call, how, ended, err)
	if err == nil || how == settling && !late {
		return
	}
	lost := [...]string{
		settling:  "sluice: settle did not get through; its lease stands as charged or as settled",
		releasing: "sluice: release did not get through; the tokens come back by refill",
		keeping:   "sluice: keep did not get through; what the lease held comes back within two minutes",
	}[how]
	core.env.Logger.LogAttrs(ctx, slog.LevelWarn, lost,
		slog.String("resource", r.resource.spec.Resource),
		slog.String("entity", store.Quote(part.Buckets[0].Entity)), slog.Any("error", err))
}

// reportClosed calls the observer with how call has ended. A keep is a settle at the cost.
func (r *record) reportClosed(
	ctx context.Context, call *store.Call, how closing, ended time.Time, err error,
) {
	observers.Closed(ctx, r.resource.core.env.Observer, call, observers.Closing{
		Released: how == releasing, Ended: ended, Err: err, Local: outage.Degraded(r.by), Shadow: r.shadowed != nil,
	})
}

// noticeGiveBack wakes the waiters of part's buckets if tokens came back. A bucket that is as before was not
// written to, so nothing was given back to it.
func (r *record) noticeGiveBack(part *store.Part) {
	if w := r.resource.core.waiters; w.Buckets() > 0 && (r.holder != nil && r.holds() || part.GivesBack()) {
		spec := r.resource.spec
		w.GaveBack(spec, balances.Written(spec, r.Part().Buckets, part.Buckets), r.resource.now())
	}
}
