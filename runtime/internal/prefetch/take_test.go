package prefetch

import (
	"log/slog"
	"testing"
	"time"

	"github.com/sluice-go/sluice/internal/test/longform"
	"github.com/sluice-go/sluice/runtime/bucket"
	"github.com/sluice-go/sluice/runtime/internal/prefetch/blocks"
	"github.com/sluice-go/sluice/runtime/store"
)

// definition is a resource of one limit.
type definition struct{ spec *store.Spec }

// Spec implements store.Definition.
func (d definition) Spec() *store.Spec { return d.spec }

// idle is the session of a store that is never asked.
type idle struct{ store.Session }

// Now implements store.Session.
func (idle) Now(reading time.Time) int64 { return reading.UnixMilli() }

// taking returns what takes a call's cost from a pool that has it, and what closes the session.
func taking(tb testing.TB) (take, end func()) {
	tb.Helper()
	limit := bucket.Per(1_000_000, time.Second)
	def := definition{&store.Spec{
		Resource: "r", Limits: []string{"rpm", "tpm"}, Prefetch: Longest,
		Kinds: []store.Kind{{
			Name: "user", Prefix: "user-", Parent: store.NoParent, Limits: []bucket.Limit{limit, limit},
		}},
	}}
	env := &store.Env{Clock: store.SystemClock(), Logger: slog.New(slog.DiscardHandler)}
	s := Wrap(env, idle{}, []store.Definition{def}).(*session)
	call := &store.Call{Called: env.Clock.Now(), Prefetch: Longest, Parts: []store.Part{{
		Def: def, Buckets: []store.Bucket{{Entity: "user-1"}}, Cost: []int64{1000, 1000},
	}}}
	p := s.resources[def].pool(&call.Parts[0], &call.Parts[0].Buckets[0])
	p.image = &bucket.Image{Balances: bucket.Full([]bucket.Limit{limit, limit}), Missing: make([]bool, 2)}
	for range 2 {
		many := blocks.New([]int64{1 << 60, 1 << 60}, 1000*time.Hour, 2000*time.Hour, 0, nil)
		p.blocks.Add(many, Longest, 0)
	}
	p.mu.Unlock()
	take = func() {
		call.Called, call.Parts[0].Buckets[0].Source = env.Clock.Now(), nil
		if err := s.Acquire(tb.Context(), call); err != nil || !call.Pooled {
			tb.Fatal(err, call.Pooled)
		}
	}
	return take, func() {
		s.closed.Store(true)
		close(s.closing)
		_ = s.background.Wait(tb.Context())
	}
}

// BenchmarkTake takes a call's cost from a pool that has it.
func BenchmarkTake(b *testing.B) {
	take, end := taking(b)
	defer end()
	b.ReportAllocs()
	for b.Loop() {
		take()
	}
}

// TestTakeAllocates: to take from a pool allocates nothing.
func TestTakeAllocates(t *testing.T) {
	longform.NoRace(t, "the race detector allocates")
	take, end := taking(t)
	defer end()
	if n := testing.AllocsPerRun(1000, take); n != 0 {
		t.Errorf("%v allocations, want none", n)
	}
}
