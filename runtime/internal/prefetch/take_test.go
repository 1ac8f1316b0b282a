package prefetch

import (
	"log/slog"
	"testing"
	"time"

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

// BenchmarkTake takes a call's cost from a pool that has it.
func BenchmarkTake(b *testing.B) {
	limit := bucket.Per(1_000_000, time.Second)
	def := definition{&store.Spec{
		Resource: "r", Limits: []string{"rpm", "tpm"}, Prefetch: 5 * time.Second,
		Kinds: []store.Kind{{
			Name: "user", Prefix: "user-", Parent: store.NoParent, Limits: []bucket.Limit{limit, limit},
		}},
	}}
	env := &store.Env{Clock: store.SystemClock(), Logger: slog.New(slog.DiscardHandler)}
	s := Wrap(env, idle{}, []store.Definition{def}).(*session)
	call := &store.Call{Called: env.Clock.Now(), Prefetch: 5 * time.Second, Parts: []store.Part{{
		Def: def, Buckets: []store.Bucket{{Entity: "user-1"}}, Cost: []int64{1000, 1000},
	}}}
	p := s.resources[def].pool(&call.Parts[0], &call.Parts[0].Buckets[0])
	p.image = &bucket.Image{Balances: bucket.Full([]bucket.Limit{limit, limit}), Missing: make([]bool, 2)}
	for range 2 {
		many := blocks.New([]int64{1 << 60, 1 << 60}, 1000*time.Hour, 2000*time.Hour, 0, nil)
		p.blocks.Add(many, 5*time.Second, 0)
	}
	p.mu.Unlock()
	b.ReportAllocs()
	for b.Loop() {
		call.Called, call.Parts[0].Buckets[0].Source = env.Clock.Now(), nil
		if err := s.Acquire(b.Context(), call); err != nil || !call.Pooled {
			b.Fatal(err, call.Pooled)
		}
	}
	s.closed.Store(true)
	close(s.closing)
	_ = s.background.Wait(b.Context())
}
