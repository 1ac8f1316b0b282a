// Package storetest gives the tests of the DynamoDB store, and of packages that wrap it, what they share:
//
//   - a clock that a test sets, and limiters of any numbers on that clock (Clock, Options, Open);
//   - a record of what an observer saw (Events);
//   - raw access to a table, and the items it must hold, built without the store's own code (Table, Row);
//   - the demonstration's resources with other numbers (Variant).
//
// It imports neither runtime/dynamo nor its internal packages, whose tests import it.
package storetest

import (
	"log/slog"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sluice-go/sluice/runtime"
	"github.com/sluice-go/sluice/runtime/store"
)

// T0 is the time at which a Clock starts, in milliseconds since 1970. It is a whole minute, so no refill has
// a remainder of before. It is years ahead, so no ttl has passed for the engine.
const T0 = 1_800_000_000_000

// Clock implements store.Clock. A test sets its time, and a pause takes none of it. The zero value stands at
// T0. It is safe for concurrent use.
type Clock struct {
	Since atomic.Int64 // milliseconds since T0
}

// Now implements store.Clock.
func (c *Clock) Now() time.Time { return time.UnixMilli(T0 + c.Since.Load()) }

// Set sets the time to so many milliseconds after T0.
func (c *Clock) Set(ms int64) { c.Since.Store(ms) }

// After implements store.Clock. The pause is over at once.
func (c *Clock) After(time.Duration) <-chan time.Time {
	over := make(chan time.Time)
	close(over)
	return over
}

// User is an entity of the one kind that a resource of WithNumbers has.
type User string

// Chain implements store.Entity.
func (u User) Chain(dst []store.Link) []store.Link {
	return append(dst, store.Link{ID: string(u)})
}

// Tokens is a cost in schema order.
type Tokens []int64

// Options returns the options of a test's limiter. ttl is the age at which a process reads overrides again.
//
// Budgets are generous: the engine is slow under load, and no test is about time that passes. No policy
// covers errors, so a call returns each as it is.
func Options(clock store.Clock, seen *Events, ttl time.Duration) []runtime.Option {
	return []runtime.Option{
		runtime.WithClock(clock), runtime.WithObserver(seen.Observer()),
		runtime.WithLogger(slog.New(slog.DiscardHandler)),
		runtime.WithSettleTimeout(20 * time.Second), runtime.WithCacheTTL(ttl),
		runtime.WithCallDefaults(runtime.Budget(time.Minute), runtime.OnUnavailable(store.Deny)),
	}
}

// Open returns a limiter and its resources, one per definition.
func Open[E store.Entity](
	t testing.TB, s store.Store, opts []runtime.Option, defs ...store.Definition,
) (*runtime.Limiter, []*runtime.Resource[E, Tokens]) {
	t.Helper()
	b := runtime.NewBuilder(s, opts...)
	resources := make([]*runtime.Resource[E, Tokens], len(defs))
	for i, def := range defs {
		resources[i] = runtime.Bind[E](b, def,
			func(c Tokens, dst []int64) []int64 { return append(dst, c...) },
			func(v []int64) Tokens { return v })
	}
	l, err := b.Limiter()
	if err != nil {
		t.Fatal(err)
	}
	return l, resources
}

// Together calls do(0) to do(n-1) at once and fails the test on errors.
func Together(t testing.TB, n int, do func(int) error) {
	t.Helper()
	var wg sync.WaitGroup
	start := make(chan struct{})
	for i := range n {
		wg.Go(func() {
			<-start
			if err := do(i); err != nil {
				t.Errorf("process %d: %v", i, err)
			}
		})
	}
	close(start)
	wg.Wait()
}
