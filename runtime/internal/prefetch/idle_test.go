package prefetch

import (
	"context"
	"errors"
	"log/slog"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluice-go/sluice/runtime/bucket"
	"github.com/sluice-go/sluice/runtime/internal/prefetch/blocks"
	"github.com/sluice-go/sluice/runtime/store"
)

// slow is a store that denies calls on projects, after a while.
type slow struct {
	*counting

	takes time.Duration
	back  atomic.Int64 // millitokens that it was given back
}

// Acquire implements store.Session.
func (s *slow) Acquire(ctx context.Context, call *store.Call) error {
	if call.Parts[0].Buckets[0].Kind == 0 {
		return s.counting.Acquire(ctx, call)
	}
	<-store.SystemClock().After(s.takes)
	return store.AddRefusal(nil, store.Refusal{Resource: "r", Entity: "project-1", Limit: "rpm"})
}

// Settle implements store.Session.
func (s *slow) Settle(_ context.Context, call *store.Call) error {
	s.back.Add(call.Parts[0].Cost[0] - call.Parts[0].Actual[0])
	return nil
}

// TestIdleBesideCall has a call that took its tokens of a user from two blocks, and waits for its project for
// longer than those live. The user's pool is still there when the project denies the call, and gives them
// back.
func TestIdleBesideCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		limits := []bucket.Limit{bucket.Per(10_000, time.Second)}
		def := definition{&store.Spec{
			Resource: "r", Limits: []string{"rpm"}, Prefetch: time.Second, Cascade: store.CascadeAtomic,
			Kinds: []store.Kind{
				{Name: "user", Prefix: "user-", Parent: 1, Limits: limits},
				{Name: "project", Prefix: "project-", Parent: store.NoParent, Limits: limits},
			},
		}}
		inner := &slow{counting: &counting{asked: map[string]int{}}, takes: 3 * time.Second}
		env := &store.Env{
			Clock: store.SystemClock(), Logger: slog.New(slog.DiscardHandler), SettleTimeout: time.Second,
			Observer: &store.Observer{},
		}
		s := Wrap(env, inner, []store.Definition{def}).(*session)
		call := &store.Call{Called: time.Now(), Prefetch: time.Second, Parts: []store.Part{{
			Def: def, Cost: []int64{2 * bucket.Milli},
			Buckets: []store.Bucket{{Entity: "user-1"}, {Entity: "project-1", Kind: 1}},
		}}}
		p := s.resources[def].pool(&call.Parts[0], &call.Parts[0].Buckets[0])
		for range 2 {
			p.blocks.Add(blocks.New([]int64{bucket.Milli}, s.now(), s.now()+time.Second, 0, nil), time.Second, s.now())
		}
		p.mu.Unlock()
		if err := s.Acquire(t.Context(), call); !errors.As(err, new(*store.DeniedError)) {
			t.Errorf("%v, want a denial", err)
		}
		<-store.SystemClock().After(3 * time.Second)
		if n := inner.back.Load(); n != 2*bucket.Milli {
			t.Errorf("%d millitokens were given back, want 2,000", n)
		}
		if err := s.Close(t.Context()); err != nil {
			t.Error(err)
		}
	})
}
