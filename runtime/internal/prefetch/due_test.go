package prefetch

import (
	"log/slog"
	"testing"
	"time"

	"github.com/sluice-go/sluice/runtime/bucket"
	"github.com/sluice-go/sluice/runtime/store"
)

// TestDueBehindWaiting has a pool that runs out, of a bucket with 1,000 tokens. No block is taken from those
// that a call is waiting for: it is served first.
func TestDueBehindWaiting(t *testing.T) {
	limits := []bucket.Limit{bucket.Per(1_000, time.Second)}
	def := definition{&store.Spec{
		Resource: "r", Limits: []string{"rpm"}, Prefetch: time.Second,
		Kinds: []store.Kind{{Name: "user", Prefix: "user-", Parent: store.NoParent, Limits: limits}},
	}}
	env := &store.Env{Clock: store.SystemClock(), Logger: slog.New(slog.DiscardHandler),
		SettleTimeout: time.Second, Observer: &store.Observer{}}
	for _, c := range []struct {
		name    string
		waiting int64 // tokens
		taken   bool
	}{
		{"nothing waits", 0, true},
		{"a small call waits", 50, true},
		{"a large call waits", 950, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := Wrap(env, &counting{asked: map[string]int{}}, []store.Definition{def}).(*session)
			part := store.Part{Def: def, Buckets: []store.Bucket{{Entity: "user-1"}}}
			p := s.resources[def].pool(&part, &part.Buckets[0])
			now := s.now()
			p.image = &bucket.Image{
				Refilled: env.Clock.Now().UnixMilli(), Balances: bucket.Full(limits), Missing: []bool{false},
			}
			p.seenAt, p.prefetch = now, time.Second
			for range 50 {
				p.meter.Add([]int64{bucket.Milli}, now)
			}
			p.wait([]int64{c.waiting * bucket.Milli}, 1)
			if size := p.due(now); (size != nil) != c.taken {
				t.Errorf("a block of %v is taken, want %t", size, c.taken)
			}
			p.fetching = false
			p.mu.Unlock()
			if err := s.Close(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
}
