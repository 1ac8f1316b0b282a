// Package scheduler serves the requests of a session: acquires and settles of buckets. Each bucket has a
// queue, and so have all chains with the same root.
//
// A queue has one write under way at a time, and the next one serves as many of its requests as it can. A
// batch does that work: it plans by what is known, reads what is missing, sends, and pauses before the next
// attempt. Each read and write takes one of the session's turns. docs/architecture.md follows a request
// through the files, and docs/design.md, "Scheduler", has the rules.
package scheduler

import (
	"context"
	"slices"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"
	"golang.org/x/sync/semaphore"

	"github.com/sluice-go/sluice/runtime/dynamo/internal/known"
	"github.com/sluice-go/sluice/runtime/dynamo/internal/wire"
	"github.com/sluice-go/sluice/runtime/internal/background"
	"github.com/sluice-go/sluice/runtime/store"
)

// Config is what a Scheduler works with.
type Config struct {
	Conn        *wire.Conn
	Definitions []store.Definition
	Background  *background.Tasks
	Closing     <-chan struct{}       // closed when nothing may wait any more
	OnReshape   func(context.Context) // called after each Reshape or uncharged Create
	OnStale     func(entity string)   // called for an entity whose link or plan has changed since a look-up
	Buckets     int                   // cached at most
	Attempts    int                   // of an acquire
	InFlight    int                   // reads and writes under way at most
	Seams       Seams
}

// Scheduler is the door of this package. It is safe for concurrent use.
type Scheduler struct{ scheduler }

// New returns a Scheduler without requests. It fails if a definition is wrong, or c.Buckets is not positive.
func New(c *Config) (*Scheduler, error) {
	buckets, err := lru.New[bucketKey, *cachedBucket](c.Buckets)
	if err != nil {
		return nil, err
	}
	s := &Scheduler{scheduler{
		conn: c.Conn, reader: &known.Reader{
			Conn: c.Conn, KeepIdle: c.Seams.KeepIdle, Resolve: c.Seams.Resolve, Stale: c.OnStale,
		},
		cache: &cache{buckets, c.Seams.OnQueue}, background: c.Background,
		closing: c.Closing, attempts: c.Attempts,
		turns: semaphore.NewWeighted(int64(c.InFlight)), onReshape: c.OnReshape,
		seams: c.Seams,
	}}
	for _, def := range c.Definitions {
		r, err := known.NewResource(def, c.Buckets)
		if err != nil {
			return nil, err
		}
		s.resources = append(s.resources, r)
	}
	return s, nil
}

// NewRequest returns a request for what call takes, in which each bucket occurs once. The error is a
// *store.InvalidError for too many buckets.
func (s *Scheduler) NewRequest(ctx context.Context, call *store.Call) (*Request, error) {
	return s.newRequest(ctx, call, false, func(part *store.Part, _ *store.Bucket) []int64 { return part.Cost })
}

// NewSettles returns a request for each bucket that call settles and that the settle changes. The error is as
// of NewRequest.
func (s *Scheduler) NewSettles(ctx context.Context, call *store.Call) ([]*Request, error) {
	r, err := s.newRequest(ctx, call, true, (*store.Part).Difference)
	if err != nil {
		return nil, err
	}
	r.settle, r.called = true, s.conn.At(call.Called)
	return r.singles(), nil
}

// NewExtension returns a settle that extends what open leases hold of call's only bucket.
func (s *Scheduler) NewExtension(ctx context.Context, call *store.Call) (*Request, error) {
	nothing := func(part *store.Part, _ *store.Bucket) []int64 { return make([]int64, len(part.Cost)) }
	r, err := s.newRequest(ctx, call, true, nothing)
	if err == nil {
		r.settle, r.extends, r.called = true, true, s.conn.At(call.Called)
	}
	return r, err
}

// Acquire takes what r asks for, all or none: its call's cascade says whether by one write, or bucket by
// bucket. It returns once r has ended or its caller's time is over.
func (s *Scheduler) Acquire(r *Request, call *store.Call) error {
	r.called = s.conn.At(call.Called)
	compensated := r.portions[0].resource.Spec.Cascade == store.CascadeCompensated
	if len(call.Parts) == 1 && len(r.portions) > 1 && compensated {
		return s.acquireCompensated(r)
	}
	return s.submit(r)
}

// Settle has a settle of NewSettles written. It returns once r has ended or its caller's time is over.
func (s *Scheduler) Settle(r *Request) error { return s.submit(r) }

// Peek reads r's buckets as far as needed. It takes nothing, and notes in r how they are found.
func (s *Scheduler) Peek(r *Request) error { return s.peekUnconfirmed(r) }

// Refund gives back what r was charged, of each bucket by itself. The caller waits for it while it has time.
// A failure is reported to the observer; the tokens come back by refill.
func (s *Scheduler) Refund(ctx context.Context, r *Request) { s.refundAll(ctx, r.singles()) }

// Defer defers a settle of NewSettles until its bucket is written next. It calls onDone once r has ended, on
// a goroutine of its own that Close waits for.
func (s *Scheduler) Defer(r *Request, onDone func(error)) {
	s.background.Begin() // until onDone returns: a caller's goroutine may write r
	r.ctx, r.onDone = context.WithoutCancel(r.ctx), onDone
	if !r.deadline.IsZero() {
		r.deadline, r.deadlineOfCtx = r.deadline.Add(DeferFor), false
	}
	if r.givesBack() {
		r.portions[0].cached.known.AddGiveBacks(1)
	}
	s.deferSettles([]*Request{r})
}

// RefreshDue begins to read the overrides of r's buckets that are due. First it waits for Refreshes of these
// buckets that other requests have begun. It returns nil if none are due, or if those Refreshes take too
// long. The caller ends what it returns.
func (s *Scheduler) RefreshDue(r *Request) *known.Refresh {
	isDue := func(pn portion) bool {
		f, due := s.reader.Due(pn.resource, &pn.cached.known, s.conn.Now())
		return f != nil || due
	}
	for slices.ContainsFunc(r.portions, isDue) && !r.isOver() {
		own, others := s.reader.Begin(r.views(), s.conn.Now())
		if own != nil {
			s.background.Start(func() { s.readRefresh(r, own) })
		}
		if others == nil {
			return own
		}
		if !others.Wait(r.ctx, refreshWait(r)) {
			break
		}
	}
	return nil
}

// readRefresh reads f's overrides in parallel with r's write. If it gets no turn, ctx is over, and Read
// sends nothing.
func (s *scheduler) readRefresh(r *Request, f *known.Refresh) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.ctx), refreshWait(r))
	defer cancel()
	if s.turns.Acquire(ctx, 1) == nil {
		defer s.turns.Release(1)
	}
	s.reader.Read(ctx, f)
}

// refreshWait bounds how long a read of overrides may delay r: half of r's time, and half of the time for
// which the old overrides serve.
func refreshWait(r *Request) time.Duration {
	if r.deadline.IsZero() {
		return known.RefreshTime / 2
	}
	return min(known.RefreshTime, remaining(r.deadline)) / 2
}

// IsOutdated waits for a read of overrides, as long as r's caller has time. It reports whether they have
// changed since r was decided.
func (r *Request) IsOutdated(refresh *known.Refresh) bool {
	if r.abandoned { // its worker may still write to it
		return false
	}
	ctx, cancel := withLastDeadline(r.ctx, []*Request{r})
	defer cancel()
	return slices.ContainsFunc(r.portions, func(pn portion) bool {
		return refresh.Outdated(ctx, &pn.cached.known, pn.after)
	})
}

// Refused returns the denial of a call by what is known, nil if that does not deny it (known.Reader.Refused).
func (s *Scheduler) Refused(
	def store.Definition, chain []store.Link, cost []int64, now int64,
) *store.DeniedError {
	r := s.resource(def)
	var all [known.MaxChain]*known.Bucket
	if len(chain) > len(all) {
		return nil
	}
	for i := range chain {
		// A bucket that denies again and again moves to the front once a second, when its image is too old to deny
		// and an acquire reads it.
		if all[i] = s.cache.peek(r, chain[i].Kind, chain[i].ID); all[i] == nil {
			return nil
		}
	}
	return s.reader.Refused(r, all[:len(chain)], cost, now)
}

// Moved notes that this process has changed the plan or the parent of an entity, as stored. No call is denied
// by an image from before.
func (s *Scheduler) Moved(entity string) { s.reader.Moved(entity) }

// Wrote notes that this process has written the override at an entity, as stored, a kind or a plan, or has
// filled the entity's bucket.
func (s *Scheduler) Wrote(resource, at string, filled bool) {
	for _, r := range s.resources {
		r.Wrote(resource, at, filled, s.cache.peek)
	}
}

// WroteEntry notes that this process has written the entry of a name in the catalog of a template.
func (s *Scheduler) WroteEntry(template, name string) {
	for _, r := range s.resources {
		if r.Spec.Resource == template {
			r.WroteEntry(name)
		}
	}
}
