package runtime

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	goruntime "runtime"
	"slices"
	"time"
	"weak"

	"github.com/sluice-go/sluice/runtime/internal/callers"
	"github.com/sluice-go/sluice/runtime/internal/contexts"
	"github.com/sluice-go/sluice/runtime/internal/keeper"
	"github.com/sluice-go/sluice/runtime/internal/local"
	"github.com/sluice-go/sluice/runtime/internal/outage"
	"github.com/sluice-go/sluice/runtime/store"
)

// ErrLeaseLost is the cause with which a lease's context ends if others may soon take what the lease holds:
// the process could not extend it, or the Limiter was closed. More returns it for such a lease.
var ErrLeaseLost = errors.New("sluice: the lease is lost: what it holds could not be extended")

// errClosed is the cause if the Limiter was closed.
var errClosed = fmt.Errorf("%w: the Limiter was closed", ErrLeaseLost)

// holder has what a record needs if its lease may hold something.
type holder struct {
	lease    weak.Pointer[lease]
	acquired callers.Stack
	began    time.Time
	kept     bool // the keeper has the record, and cleanup is set; the record's lock guards both
	cleanup  goruntime.Cleanup
}

// mayHold reports whether a lease of part, which by settles, may hold something. Buckets of this process
// count slots of in-flight limits alone. spec is that of part's definition: each call of Spec would allocate
// another one.
func mayHold(spec *store.Spec, part *store.Part, by outage.Settler) bool {
	if spec.Held == nil {
		return false
	}
	if _, local := by.(*local.Held); outage.Degraded(by) && !local {
		return false
	}
	return slices.ContainsFunc(part.Buckets, func(b store.Bucket) bool { return spec.HasHolds(b.Kind) })
}

// newHolder returns a record that does not refer to l, so that l can be collected. It also returns what the
// record took: a copy of part.
func newHolder(l *lease, part *store.Part, by outage.Settler, began time.Time) (*record, *store.Part) {
	own := &struct {
		record  record
		holder  holder
		part    store.Part
		buckets [2]store.Bucket // as in an acquisition
		cost    [4]int64
	}{part: *part}
	own.part.Buckets = append(own.buckets[:0], part.Buckets...)
	own.part.Cost = append(own.cost[:0], part.Cost...)
	if outage.Degraded(by) {
		for i := range own.part.Buckets { // of an attempt that got no answer
			own.part.Buckets[i].Ends, own.part.Buckets[i].Epochs = nil, nil
		}
	}
	l.bound = &contexts.Set{}
	own.holder.lease, own.holder.began = weak.Make(l), began
	goruntime.Callers(3, own.holder.acquired[:])
	own.record.holder = &own.holder
	return &own.record, &own.part
}

// holds reports whether the lease holds anything that its end gives back.
func (r *record) holds() bool {
	part := r.Part()
	if _, local := r.by.(*local.Held); !local {
		return keeper.Holds(part)
	}
	for i, n := range part.Cost {
		if n > 0 && r.resource.spec.InFlight(i) {
			return true
		}
	}
	return false
}

// hold has the keeper extend what l holds, if that is anything. The caller has locked r, which is the record
// of l, or is alone with it.
func (r *record) hold(l *lease) {
	if r.holder == nil || r.holder.kept || !r.holds() {
		return
	}
	k := r.resource.core.keeper
	if !k.Add(&r.Record, (*keptRecord)(r)) {
		l.bound.End(errClosed, true)
		return
	}
	r.holder.kept = true
	r.holder.cleanup = goruntime.AddCleanup(l, func(r *record) { k.Collected(&r.Record) }, r)
}

// end ends what hold began. The caller has locked r.
func (h *holder) end(r *record) {
	if h.kept {
		r.resource.core.keeper.Remove(&r.Record)
		h.cleanup.Stop()
	}
	h.endContexts(ErrSettled, false)
}

// endContexts ends the contexts of the lease. If all is false, those stay open that outlast the lease.
func (h *holder) endContexts(cause error, all bool) {
	if l := h.lease.Value(); l != nil {
		l.bound.End(cause, all)
	}
}

// keptRecord is a record as its keeper sees it: a keeper.Owner.
type keptRecord record

// Lost implements keeper.Owner.
func (k *keptRecord) Lost() { k.holder.endContexts(ErrLeaseLost, true) }

// ReportLost implements keeper.Owner.
func (k *keptRecord) ReportLost(err error) {
	r := (*record)(k)
	if err == nil {
		err = ErrLeaseLost
	}
	core, part := r.resource.core, r.Part()
	ctx, now := context.Background(), core.env.Clock.Now()
	if f := core.env.Observer.LeaseLost; f != nil {
		b := &part.Buckets[0]
		f(ctx, store.Event{
			Operation: store.OperationExtend, Resource: r.resource.spec.Resource, Entity: b.Entity,
			Kind: r.resource.spec.Kinds[b.Kind].Name, Took: now.Sub(r.holder.began), Err: err,
		})
	}
	r.warn(ctx, "sluice: a lease is lost: what it holds could not be extended", slog.Any("error", err))
}

// Collected implements keeper.Owner.
func (k *keptRecord) Collected() {
	r := (*record)(k)
	if !r.spend() {
		return
	}
	ctx, cancel := r.bounded(context.Background())
	r.warn(ctx, "sluice: a lease was dropped that holds something: settle, keep or release each lease")
	r.finishKept(ctx, cancel)
}

// Closed implements keeper.Owner.
func (k *keptRecord) Closed() { k.holder.endContexts(errClosed, true) }

// Close implements keeper.Owner.
func (k *keptRecord) Close(ctx context.Context) { (*record)(k).keep(ctx) }

// warn logs message about the lease, with the place of its acquire.
func (r *record) warn(ctx context.Context, message string, attrs ...slog.Attr) {
	r.resource.core.env.Logger.LogAttrs(ctx, slog.LevelWarn, message, append([]slog.Attr{
		slog.String("resource", r.resource.spec.Resource),
		slog.String("entity", store.Quote(r.Part().Buckets[0].Entity)),
		slog.String("acquired", r.holder.acquired.String()),
	}, attrs...)...)
}
