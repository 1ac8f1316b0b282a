// Package slottest has a store in memory that counts calls in flight, for tests of what is built on leases.
// Not for import: tests of package runtime's middlewares import it.
package slottest

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/sluice-go/sluice/runtime"
	"github.com/sluice-go/sluice/runtime/bucket"
	"github.com/sluice-go/sluice/runtime/internal/seal"
	"github.com/sluice-go/sluice/runtime/store"
)

// Capacity is how many calls of an entity are in flight at most.
const Capacity = 20

// Key is an entity.
type Key struct{ ID string }

// Chain implements store.Entity.
func (k Key) Chain(dst []store.Link) []store.Link { return append(dst, store.Link{ID: k.ID}) }

// Cost is what a call takes; 0 is one slot.
type Cost struct{ Parallel int64 }

// Resource has one limit.
type Resource = runtime.Resource[Key, Cost]

// Store is a store, and its session, of one Limiter.
type Store struct {
	store.Session // what no test calls

	resource *Resource

	mu     sync.Mutex
	env    *store.Env
	images map[string]*bucket.Image
	fail   error // of extensions
}

// New returns a Limiter on a new Store.
func New(t testing.TB, opts ...runtime.Option) (*Store, *runtime.Limiter, *Resource) {
	t.Helper()
	s := &Store{images: map[string]*bucket.Image{}}
	b := runtime.NewBuilder(s, opts...)
	r := runtime.Bind[Key](b, s, func(c Cost, v []int64) []int64 { return append(v, c.Parallel) },
		func(v []int64) Cost { return Cost{v[0]} })
	lim, err := b.Limiter()
	if err != nil {
		t.Fatal(err)
	}
	s.resource = r
	return s, lim, r
}

// Spec implements store.Definition.
func (*Store) Spec() *store.Spec {
	return &store.Spec{
		Resource: "jobs", Limits: []string{"parallel"}, Held: []bool{true}, OnUnavailable: store.Deny,
		Kinds: []store.Kind{{
			Name: "key", Prefix: "key-", Parent: store.NoParent, PerCall: []int64{1},
			Limits: []bucket.Limit{bucket.InFlight(Capacity)},
		}},
	}
}

// Take takes slots of a key.
func (s *Store) Take(t testing.TB, id string, n int64) *runtime.Lease[Cost] {
	t.Helper()
	lease, err := s.resource.Acquire(t.Context(), Key{id}, Cost{n})
	if err != nil {
		t.Fatal(err)
	}
	return lease
}

// FailExtensions makes extensions fail with err.
func (s *Store) FailExtensions(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fail = err
}

// Free returns the slots of a key that are not taken.
func (s *Store) Free(id string) int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	img := s.image("key-" + id)
	return bucket.Available(img.Balances[0], 0, s.now()) / bucket.Milli
}

func (s *Store) now() int64 { return s.env.Clock.Now().UnixMilli() }

// image returns the image of a bucket. The caller holds mu.
func (s *Store) image(entity string) *bucket.Image {
	if img := s.images[entity]; img != nil {
		return img
	}
	b := bucket.Full([]bucket.Limit{bucket.InFlight(Capacity)})
	b[0].Epoch = bucket.Epoch(s.now())
	return &bucket.Image{Balances: b, Missing: []bool{false}}
}

// write stores b's bucket after a write that takes slots, makes moves and gives back. The caller holds mu.
func (s *Store) write(b *store.Bucket, take, back int64, moves bucket.Moves) (until int64) {
	balance := s.image(b.Entity).Balances[0]
	h, ok := balance.Hold(take, moves, s.now())
	if !ok || take > balance.Tokens {
		var swept int64
		h, swept = balance.Sweep(take, moves, false, s.now())
		back += swept
	}
	balance = balance.Apply(h)
	balance.Tokens += back - take
	b.After = &bucket.Image{Balances: []bucket.Balance{balance}, Missing: []bool{false}}
	s.images[b.Entity] = b.After
	return h.Until
}

// Acquire implements store.Session.
func (s *Store) Acquire(_ context.Context, call *store.Call) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	part := &call.Parts[0]
	b := &part.Buckets[0]
	b.After = s.image(b.Entity)
	if denied := store.Refuse(nil, s.Spec(), b.Entity, b.After, part.Cost, s.now()); denied != nil {
		return denied
	}
	b.Epochs = []int64{s.write(b, part.Cost[0], 0, bucket.NoMoves)}
	return nil
}

// Settle implements store.Session.
func (s *Store) Settle(_ context.Context, call *store.Call) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	part := &call.Parts[0]
	b := &part.Buckets[0]
	cost := []int64{part.Actual[0] - part.Cost[0]}
	lapsed, moves := bucket.EndOf(s.image(b.Entity), cost, b.Charges, s.now())
	back := -cost[0]
	if lapsed != nil {
		back -= lapsed[0]
	}
	s.write(b, 0, back, moves[0])
	return nil
}

// Now implements store.Session.
func (*Store) Now(reading time.Time) int64 { return reading.UnixMilli() }

// Extend implements store.Session.
func (s *Store) Extend(_ context.Context, call *store.Call) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.fail != nil {
		return s.fail
	}
	b := &call.Parts[0].Buckets[0]
	var moves []bucket.Moves
	moves, b.Epochs = bucket.Extend(s.image(b.Entity), b.Charges[0], s.now())
	s.write(b, 0, 0, moves[0])
	return nil
}

// Peek implements store.Session.
func (s *Store) Peek(_ context.Context, call *store.Call) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	b := &call.Parts[0].Buckets[0]
	b.After = s.image(b.Entity)
	return nil
}

// Lookup implements store.Session. The store is its own cache.
func (s *Store) Lookup(call *store.Call) { _ = s.Peek(context.Background(), call) }

// Refused implements store.Session: ask the store.
func (*Store) Refused(store.Definition, []store.Link, []int64, int64) *store.DeniedError { return nil }

// Close implements store.Session.
func (*Store) Close(context.Context) error { return nil }

// Open implements store.Store.
func (s *Store) Open(env *store.Env, _ ...store.Definition) (store.Session, error) {
	s.env = env
	return s, nil
}

// Sealed implements store.Store.
func (*Store) Sealed(seal.Sealed) {}
