package prefetch

import (
	"context"
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluice-go/sluice/runtime/bucket"
	"github.com/sluice-go/sluice/runtime/store"
)

// counting is a store that has all tokens, and counts which calls ask for how much of which bucket.
type counting struct {
	store.Session

	mu    sync.Mutex
	asked map[string]int // by resource and entity
}

// Acquire implements store.Session.
func (c *counting) Acquire(_ context.Context, call *store.Call) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	for i := range call.Parts[0].Buckets {
		b, spec := &call.Parts[0].Buckets[i], call.Parts[0].Def.Spec()
		c.asked[spec.ResourceOf(b.Kind)+" "+b.Entity]++
		b.Limits = spec.Kinds[b.Kind].Limits
		b.After = &bucket.Image{
			Refilled: call.Called.UnixMilli(), Balances: bucket.Full(b.Limits), Missing: make([]bool, len(b.Limits)),
		}
	}
	return nil
}

// Settle implements store.Session.
func (c *counting) Settle(context.Context, *store.Call) error { return nil }

// Now implements store.Session.
func (c *counting) Now(reading time.Time) int64 { return reading.UnixMilli() }

// Close implements store.Session.
func (c *counting) Close(context.Context) error { return nil }

// TestNames has calls on two names of a template, whose users have a bucket for each name and one of all
// names together. A name's bucket has a pool of its own, and the names share that of the other.
func TestNames(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		limits := []bucket.Limit{bucket.Per(10_000, time.Second)}
		template := definition{&store.Spec{
			Resource: "model", Limits: []string{"rpm"}, Prefetch: 5 * time.Second,
			Kinds: []store.Kind{
				{Name: "user", Prefix: "user-", Parent: store.NoParent, Limits: limits},
				{Name: "user", Prefix: "user-", Parent: store.NoParent, Limits: limits, AllNames: true},
			},
		}}
		inner := &counting{asked: map[string]int{}}
		env := &store.Env{
			Clock: store.SystemClock(), Logger: slog.New(slog.DiscardHandler), SettleTimeout: time.Second,
			Observer: &store.Observer{},
		}
		s := Wrap(env, inner, []store.Definition{template})
		for i := range 200 {
			name := [...]string{"gpt-5", "gpt-5-mini"}[i%2]
			def := store.NewNamed(template, &store.Entry{Name: name}) // another one after each read of the catalog
			call := &store.Call{Called: time.Now(), Prefetch: 5 * time.Second, Parts: []store.Part{{
				Def: def, Cost: []int64{1000}, Buckets: []store.Bucket{{Entity: "user-1"}, {Entity: "user-1", Kind: 1}},
			}}}
			if err := s.Acquire(t.Context(), call); err != nil {
				t.Fatal(err)
			}
			time.Sleep(10 * time.Millisecond) //nolint:forbidigo // in a bubble
			synctest.Wait()
		}
		for _, key := range []string{"model/gpt-5 user-1", "model/gpt-5-mini user-1", "model user-1"} {
			if n := inner.asked[key]; n < 2 || n > 10 {
				t.Errorf("%d calls asked for %s, want a few of the 200: %v", n, key, inner.asked)
			}
		}
		if pools := len(s.(*session).resources[template].pools); pools != 3 {
			t.Errorf("%d pools, want 3", pools)
		}
		if err := s.Close(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

// TestSweepHoldsNobodyUp has a pool whose lock is held while the sweeper looks at it. Calls on other buckets
// go on, and get pools.
func TestSweepHoldsNobodyUp(t *testing.T) {
	limits := []bucket.Limit{bucket.Per(10_000, time.Second)}
	def := definition{&store.Spec{
		Resource: "r", Limits: []string{"rpm"}, Prefetch: time.Second,
		Kinds: []store.Kind{{Name: "user", Prefix: "user-", Parent: store.NoParent, Limits: limits}},
	}}
	env := &store.Env{
		Clock: store.SystemClock(), Logger: slog.New(slog.DiscardHandler), SettleTimeout: time.Second,
		Observer: &store.Observer{},
	}
	s := Wrap(env, &counting{asked: map[string]int{}}, []store.Definition{def}).(*session)
	ask := func(entity string) {
		call := &store.Call{Called: time.Now(), Prefetch: time.Second, Parts: []store.Part{{
			Def: def, Cost: []int64{1000}, Buckets: []store.Bucket{{Entity: entity}},
		}}}
		if err := s.Acquire(t.Context(), call); err != nil {
			t.Error(err)
		}
	}
	ask("user-1")
	p := s.resources[def].find(poolKey{id: "1"}) // it stays locked
	swept := make(chan struct{})
	go func() {
		p.sweep(s.now() + time.Minute)
		close(swept)
	}()
	ask("user-2")
	ask("user-3")
	p.mu.Unlock()
	<-swept
	if err := s.Close(t.Context()); err != nil {
		t.Error(err)
	}
}
