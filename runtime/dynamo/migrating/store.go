// Package migrating serves a table on which a predecessor kept one item for each limit of a bucket.
//
//	store := migrating.New(client, "rate_limits")
//	lim, err := limits.New(store)
//	if err != nil {
//		return nil, err
//	}
//	return lim, lim.Check(ctx)
//
// [New] wraps a DynamoDB store. Before an acquire uses a bucket for the first time, the wrapper reads it. If
// the bucket is missing and has per-limit items (package perlimit), one transaction puts the bucket that they
// make and marks them. From then on the bucket is like any other, and the engine knows nothing of per-limit
// items.
//
// [Carrier] does the same to all buckets of a table, for `sluice migrate`.
package migrating

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"

	lru "github.com/hashicorp/golang-lru/v2"

	"github.com/sluice-go/sluice/runtime/bucket"
	"github.com/sluice-go/sluice/runtime/dynamo"
	"github.com/sluice-go/sluice/runtime/dynamo/internal/layout"
	"github.com/sluice-go/sluice/runtime/dynamo/internal/wire"
	"github.com/sluice-go/sluice/runtime/internal/background"
	"github.com/sluice-go/sluice/runtime/internal/seal"
	"github.com/sluice-go/sluice/runtime/store"
)

// Store implements store.Store on one table with per-limit items. It is safe for concurrent use, by several
// Limiters too.
type Store struct {
	inner   *dynamo.Store
	api     dynamo.API
	table   string
	running background.Tasks // of all its Limiters, those of inner aside
}

// New returns a store like dynamo.New's that makes missing buckets of their per-limit items. It does no I/O.
//
// The first use of a bucket by a process costs a read, and a query if the bucket is missing. The transaction
// that carries it over happens once.
//
// Every program that shares the table must use New, from before the first bucket is created until `sluice
// migrate --cleanup` has removed the last per-limit item. dynamo.New would create full buckets beside the
// items. Programs that write per-limit items must stop before: a write to an item that was carried over
// counts nowhere.
func New(client dynamo.API, table string, opts ...dynamo.Option) *Store {
	return &Store{inner: dynamo.New(client, table, opts...), api: client, table: table}
}

// Wait returns once none of the store's Limiters has work in the background, or with ctx's error. It is for
// tests that do not hold the Limiters.
func (s *Store) Wait(ctx context.Context) error {
	return errors.Join(s.inner.Wait(ctx), s.running.Wait(ctx))
}

// Sealed implements store.Store.
func (s *Store) Sealed(seal.Sealed) {}

// Open implements store.Store.
func (s *Store) Open(env *store.Env, defs ...store.Definition) (store.Session, error) {
	if n := s.inner.Namespace(); n != "" {
		return nil, &store.SetupError{
			What: "migrating.New: namespace " + n + " of table " + s.table + " has no per-limit items",
			Do:   "use dynamo.New there",
		}
	}
	inner, err := s.inner.Open(env, defs...)
	if err != nil {
		return nil, err
	}
	seen, err := lru.New[bucketKey, struct{}](dynamo.DefaultImageCache)
	if err != nil {
		return nil, err
	}
	conn := wire.NewConn(s.api, s.table, env)
	retrier := conn.Retrier(dynamo.DefaultAttempts, rand.Float64)
	retrier.Budget = conn.Budget
	return &session{
		Session: inner, conn: conn, retrier: retrier, background: background.Tasks{Within: &s.running},
		seen: seen, looking: map[bucketKey]*look{},
	}, nil
}

var _ store.Store = (*Store)(nil)

// session is a Store opened for one Limiter. The methods that it does not have are the inner session's.
type session struct {
	store.Session

	conn       *wire.Conn
	retrier    wire.Retrier
	background background.Tasks
	recorded   sync.Once // that buckets are carried over, in the table

	// seen holds buckets that were found, or that no per-limit item counts for. Neither changes: a marked item
	// stays marked, and a bucket that expires was full. One that was evicted costs another read.
	seen *lru.Cache[bucketKey, struct{}]

	mu      sync.Mutex
	looking map[bucketKey]*look
}

// bucketKey names a bucket within a session.
type bucketKey struct{ resource, entity string } // as stored

// keyOf returns the key of a call's bucket.
func keyOf(part *store.Part, b *store.Bucket) bucketKey {
	return bucketKey{part.Def.Spec().ResourceOf(b.Kind), b.Entity}
}

// look is the first use of a bucket, by the request that came first. The others wait for it.
type look struct {
	done chan struct{} // closed once err is set
	err  error
}

// firstUse is a bucket that a call uses for the first time.
type firstUse struct {
	bucketKey

	part   *store.Part
	bucket *store.Bucket
}

// Acquire implements store.Session. It carries the call's buckets over, where they have not been, and charges
// them then.
func (s *session) Acquire(ctx context.Context, call *store.Call) error {
	for {
		own, others := s.claim(call)
		if len(own) == 0 && len(others) == 0 {
			return s.Session.Acquire(ctx, call)
		}
		if err := s.carryAll(ctx, call, own); err != nil {
			return err
		}
		if err := wait(ctx, call, others); err != nil {
			return err
		}
	}
}

// claim returns the call's buckets that this process has not seen: those that the caller must look at, and
// the looks of other callers that it must wait for.
func (s *session) claim(call *store.Call) (own []firstUse, others []*look) {
	lookedUp := false
	for i := range call.Parts {
		part := &call.Parts[i]
		for j := range part.Buckets {
			key := keyOf(part, &part.Buckets[j])
			if _, ok := s.seen.Get(key); ok {
				continue
			}
			if !lookedUp { // more than seen holds may be cached
				s.Session.Lookup(call)
				lookedUp = true
			}
			if part.Buckets[j].After != nil {
				s.seen.Add(key, struct{}{})
				continue
			}
			s.mu.Lock()
			if other := s.looking[key]; other != nil {
				others = append(others, other)
			} else {
				s.looking[key] = &look{done: make(chan struct{})}
				own = append(own, firstUse{key, part, &part.Buckets[j]})
			}
			s.mu.Unlock()
		}
	}
	return own, others
}

// carryAll looks at own, and carries over what must be. It ends their looks.
func (s *session) carryAll(ctx context.Context, call *store.Call, own []firstUse) (err error) {
	if len(own) == 0 {
		return nil
	}
	ended := false
	end := func(err error) {
		ended = true
		s.mu.Lock()
		defer s.mu.Unlock()
		for _, f := range own {
			if err == nil {
				s.seen.Add(f.bucketKey, struct{}{})
			}
			s.looking[f.bucketKey].err = err
			close(s.looking[f.bucketKey].done)
			delete(s.looking, f.bucketKey)
		}
	}
	defer func() {
		if !ended { // a panic
			end(errAbandoned)
		}
	}()
	ctx, cancel := bounded(ctx, call)
	defer cancel()
	err = s.lookAt(ctx, call, own)
	end(err)
	return err
}

// errAbandoned is the error of a look whose caller panicked.
var errAbandoned = errors.New("the look at per-limit items was abandoned")

// lookAt reads own, in one call, and carries over those that are missing.
func (s *session) lookAt(ctx context.Context, call *store.Call, own []firstUse) error {
	found, err := s.read(ctx, call, own)
	if err != nil {
		return err
	}
	for i, f := range own {
		if found[i] != nil {
			continue
		}
		if err := s.carry(ctx, call, f); err != nil {
			return err
		}
	}
	return nil
}

// read reads buckets as Peek does, in one call. A missing one is nil.
func (s *session) read(ctx context.Context, call *store.Call, of []firstUse) ([]*bucket.Image, error) {
	peek := &store.Call{Called: call.Called, Deadline: call.Deadline, Parts: make([]store.Part, len(of))}
	for i, f := range of {
		peek.Parts[i] = store.Part{
			Def: f.part.Def, Cost: f.part.Cost,
			Buckets: []store.Bucket{f.bucket.Unfilled()},
		}
	}
	if err := s.Session.Peek(ctx, peek); err != nil {
		return nil, err
	}
	images := make([]*bucket.Image, len(of))
	for i := range peek.Parts {
		images[i] = peek.Parts[i].Buckets[0].After
	}
	return images, nil
}

// wait waits for the looks of other callers, and returns the error of one. If that caller only ran out of
// time, or was cancelled, there is no error: this caller looks for itself then.
func wait(ctx context.Context, call *store.Call, others []*look) error {
	if len(others) == 0 {
		return nil
	}
	ctx, cancel := bounded(ctx, call)
	defer cancel()
	for _, other := range others {
		select {
		case <-other.done:
			err := other.err
			if err != nil && !errors.Is(err, context.Canceled) && !errors.Is(err, context.DeadlineExceeded) &&
				!errors.Is(err, errAbandoned) {
				return err
			}
		case <-ctx.Done():
			resource := call.Parts[0].Def.Spec().Resource
			if errors.Is(ctx.Err(), context.Canceled) {
				entity := store.Quote(call.Parts[0].Buckets[0].Entity)
				return fmt.Errorf("sluice: %s for %s: %w", resource, entity, context.Canceled)
			}
			return &store.UnavailableError{
				Resource: resource, Err: fmt.Errorf("%w: %w", store.ErrNotSent, context.DeadlineExceeded),
			}
		}
	}
	return nil
}

// bounded returns ctx with the call's deadline.
func bounded(ctx context.Context, call *store.Call) (context.Context, context.CancelFunc) {
	if call.Deadline.IsZero() {
		return ctx, func() {}
	}
	return context.WithDeadline(ctx, call.Deadline)
}

// Peek implements store.Session. Of a missing bucket it reports what the per-limit items would make.
func (s *session) Peek(ctx context.Context, call *store.Call) error {
	if err := s.Session.Peek(ctx, call); err != nil {
		return err
	}
	for i := range call.Parts {
		part := &call.Parts[i]
		for j := range part.Buckets {
			b := &part.Buckets[j]
			if b.After != nil {
				continue
			}
			img, err := s.future(ctx, call, firstUse{keyOf(part, b), part, b})
			if err != nil {
				return err
			}
			b.After = img
		}
	}
	return nil
}

// Check implements store.Session. A table with per-limit items is as it should be.
func (s *session) Check(ctx context.Context) error {
	err := s.Session.Check(ctx)
	if _, ok := errors.AsType[*layout.CarryingError](err); ok {
		return nil
	}
	return err
}

// Close implements store.Session.
func (s *session) Close(ctx context.Context) error {
	return errors.Join(s.Session.Close(ctx), s.background.Wait(ctx))
}
