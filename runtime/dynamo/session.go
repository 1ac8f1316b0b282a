package dynamo

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sluice-go/sluice/runtime/dynamo/internal/layout"
	"github.com/sluice-go/sluice/runtime/dynamo/internal/override"
	"github.com/sluice-go/sluice/runtime/dynamo/internal/scheduler"
	"github.com/sluice-go/sluice/runtime/dynamo/internal/wire"
	"github.com/sluice-go/sluice/runtime/dynamo/operator"
	"github.com/sluice-go/sluice/runtime/internal/background"
	"github.com/sluice-go/sluice/runtime/internal/lookups"
	"github.com/sluice-go/sluice/runtime/store"
)

// session is a Store opened for one Limiter. It implements store.Session.
type session struct {
	conn       *wire.Conn
	scheduler  *scheduler.Scheduler
	specs      []*store.Spec
	revision   int64 // the schema's
	jitter     func() float64
	lookups    *lookups.Members
	background background.Tasks
	recorded   sync.Once // the revision, in the table
	closing    chan struct{}
	closed     sync.Once
}

// Close implements store.Session. It writes lazy settles, and waits until abandoned charges are given back.
func (s *session) Close(ctx context.Context) error {
	s.closed.Do(func() { close(s.closing) })
	return s.background.Wait(ctx)
}

// Acquire implements store.Session. One part is charged as its resource's cascade says; several are charged
// together. Overrides that are due are read in parallel with the write. If they have changed, what was
// charged by the old ones is given back, and the new ones decide.
func (s *session) Acquire(ctx context.Context, call *store.Call) error {
	r, err := s.scheduler.NewRequest(ctx, call)
	if err != nil {
		return err
	}
	refresh := s.scheduler.RefreshDue(r)
	if refresh != nil {
		defer refresh.End()
	}
	if err = s.scheduler.Acquire(r, call); refresh != nil && store.IsDecision(err) && r.IsOutdated(refresh) {
		if err == nil {
			s.scheduler.Refund(ctx, r)
		}
		if r, err = s.scheduler.NewRequest(ctx, call); err != nil {
			return err
		}
		err = s.scheduler.Acquire(r, call)
	}
	r.Report(s.conn)
	return err
}

// Settle implements store.Session. Each bucket is settled by itself, by one write, which it may share with
// other requests. The first give-back after another process has written costs one more (docs/design.md,
// "Outcomes"). All or none, which a transaction would give, is not needed for what has been admitted.
func (s *session) Settle(ctx context.Context, call *store.Call) error {
	all, err := s.scheduler.NewSettles(ctx, call)
	if err != nil {
		return err
	}
	if onDone := call.Later; onDone != nil {
		call.Later = nil
		s.settleLazily(all, onDone)
		return nil
	}
	return s.settleNow(all)
}

// settleLazily defers settles until their buckets are written next. It calls onDone once all are.
func (s *session) settleLazily(all []*scheduler.Request, onDone func(error)) {
	left, errs := atomic.Int64{}, make([]error, len(all))
	if left.Store(int64(len(all))); len(all) == 0 {
		onDone(nil)
	}
	for i, r := range all {
		s.scheduler.Defer(r, func(err error) {
			r.Report(s.conn)
			errs[i] = err
			if left.Add(-1) == 0 {
				onDone(errors.Join(errs...))
			}
		})
	}
}

// settleNow writes settles side by side.
func (s *session) settleNow(all []*scheduler.Request) error {
	errs := make([]error, len(all))
	serve := func(i int) {
		errs[i] = s.scheduler.Settle(all[i])
		all[i].Report(s.conn)
	}
	var running sync.WaitGroup
	for i := range all {
		if i == len(all)-1 { // the last one, mostly the only one, on this goroutine
			serve(i)
			break
		}
		running.Go(func() { serve(i) })
	}
	running.Wait()
	return errors.Join(errs...)
}

// Extend implements store.Session. It is a settle that changes no charge.
func (s *session) Extend(ctx context.Context, call *store.Call) error {
	r, err := s.scheduler.NewExtension(ctx, call)
	if err != nil {
		return err
	}
	err = s.scheduler.Settle(r)
	r.Report(s.conn)
	if b := &call.Parts[0].Buckets[0]; err != nil {
		if b.Epochs = nil; r.Unsent() {
			b.Epochs = slices.Clone(b.Charges[0].Epochs)
		}
	}
	return err
}

// Now implements store.Session.
func (s *session) Now(reading time.Time) int64 { return s.conn.At(reading) }

// Peek implements store.Session.
func (s *session) Peek(ctx context.Context, call *store.Call) error {
	r, err := s.scheduler.NewRequest(ctx, call)
	if err != nil {
		return err
	}
	defer r.Report(s.conn)
	return s.scheduler.Peek(r)
}

// Lookup implements store.Session. A call of too many buckets stays as it is: acquiring it returns the error.
func (s *session) Lookup(call *store.Call) {
	if r, err := s.scheduler.NewRequest(context.Background(), call); err == nil {
		r.Report(s.conn)
	}
}

// Refused implements store.Session, by what is known.
func (s *session) Refused(
	def store.Definition, chain []store.Link, cost []int64, now int64,
) *store.DeniedError {
	return s.scheduler.Refused(def, chain, cost, now)
}

// Member implements store.Session.
func (s *session) Member(ctx context.Context, entity string) (m store.Member, found bool, err error) {
	return s.lookups.Member(ctx, entity)
}

// Check implements store.Session. It checks the table's layout, its owner and this host's clock, and with
// regions the heartbeat of sync. It records the owner of a table without one, and changes nothing else.
func (s *session) Check(ctx context.Context) error {
	conn := s.conn
	began := conn.Env.Clock.Now()
	v, _, err := layout.CheckInTime(ctx, conn.API, conn.Table)
	if err != nil {
		return err
	}
	if err := conn.CheckClock(began, v.Metadata); err != nil {
		return err
	}
	v.CompareRevision(ctx, conn.Env.Logger, conn.Table, s.revision)
	regional := func(spec *store.Spec) bool { return spec.Regions != nil }
	if slices.ContainsFunc(s.specs, regional) {
		retrier := conn.Retrier(wire.OperatorAttempts, s.jitter)
		if err := override.CheckSynced(ctx, conn.API, retrier, conn.Now()); err != nil {
			return err
		}
	}
	return v.Claim(ctx, conn.API, conn.Env.Logger, conn.Table, s.specs[0].Owner)
}

// recordRevision notes in the table that this session's revision has reached it, once, in the background.
// Only Check reads the note.
func (s *session) recordRevision(ctx context.Context) {
	s.recorded.Do(func() {
		conn := s.conn
		note := layout.NoteRevision(conn.Table, s.revision)
		conn.NoteInBackground(ctx, &s.background, note, "the schema's revision")
	})
}

// Members implements store.Session. This session's Member sees their writes at once. Other sessions see them
// when their cached look-ups are due.
func (s *session) Members() store.MemberStore {
	conn := s.conn
	return operator.MembersWith(conn.API, conn.Retrier(wire.OperatorAttempts, s.jitter), conn.Env.Clock.Now,
		func(entity string) {
			s.lookups.Invalidate(entity)
			s.scheduler.Moved(entity)
		})
}

// Catalog implements store.Session. This session's buckets get the numbers that it writes at once.
func (s *session) Catalog() store.Catalog {
	retrier := s.conn.Retrier(wire.OperatorAttempts, s.jitter)
	stored := operator.CatalogWith(s.conn.API, retrier, s.conn.Env.Clock.Now)
	return &lookups.Catalog{Catalog: stored, Wrote: s.scheduler.WroteEntry}
}

// Overrides implements store.Session. This session goes by what it writes at once, other sessions once their
// cached overrides are due.
func (s *session) Overrides() store.OverrideStore {
	retrier := s.conn.Retrier(wire.OperatorAttempts, s.jitter)
	stored := operator.OverridesWith(s.conn.API, retrier, s.conn.Env.Clock.Now)
	return &lookups.Overrides{OverrideStore: stored, Wrote: s.scheduler.Wrote}
}
