package invariant_test

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	limits "github.com/sluice-go/sluice/generated"
	"github.com/sluice-go/sluice/runtime"
	"github.com/sluice-go/sluice/runtime/bucket"
	"github.com/sluice-go/sluice/runtime/dynamo"
	"github.com/sluice-go/sluice/runtime/store"
)

// books hold what callers were granted and kept, as they were told, and how often what was met.
type books struct {
	mu   sync.Mutex
	kept sums
	seen map[string]int
}

// book adds what a lease's cost changed by, for each of its buckets.
func (b *books) book(l *ticket, cost map[string]int64, sign int64, hour time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, entity := range l.entities {
		for limit, n := range cost {
			b.kept[place{entity, l.resource, limit, hour}] += sign * n * bucket.Milli
		}
	}
}

func (b *books) meet(what string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.seen[what]++
}

// ticket is a lease of any resource.
type ticket struct {
	resource string
	entities []string // whose buckets were charged
	cost     map[string]int64
	settle   func(ctx context.Context, actual map[string]int64) error
	release  func(ctx context.Context)
}

// caller is a goroutine of a process.
type caller struct {
	*world
	*books

	limiter *limits.Limiter
	dice    *rand.Rand
	lossy   bool // replies are lost: what callers are told is not all
}

// process starts a process. Lazy ones give back with the bucket's next write.
func (w *world) process(t testing.TB, api dynamo.API, b *books, lazy bool) *limits.Limiter {
	t.Helper()
	l, err := limits.New(dynamo.New(api, w.table),
		runtime.WithClock(w), runtime.WithLogger(slog.New(slog.DiscardHandler)),
		runtime.WithSettleTimeout(20*time.Second), runtime.WithCacheTTL(20*time.Millisecond),
		runtime.WithCallDefaults(runtime.Budget(time.Minute), runtime.OnUnavailable(store.Deny),
			runtime.LazySettle(lazy)),
		runtime.WithObserver(&store.Observer{Store: func(_ context.Context, e store.StoreEvent) {
			if e.Outcome == "applied" && e.Path == "reshape" {
				b.meet("reshapes")
			}
			if e.Coalesced > 1 {
				b.meet("coalesced")
			}
		}}))
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// call acquires, and does with the lease what callers do. One that is kept for later is returned.
func (c *caller) call(t testing.TB) *ticket {
	t.Helper()
	l, err := c.acquire(t.Context())
	_, isDenied := errors.AsType[*store.DeniedError](err)
	_, isContended := errors.AsType[*store.ContendedError](err)
	switch {
	case isDenied:
		c.meet("denied")
		return nil
	case isContended:
		c.meet("contended")
		return nil
	case err != nil:
		c.failed(t, err)
		return nil
	}
	c.meet("granted")
	c.book(l, l.cost, 1, c.hour())
	switch c.dice.IntN(8) {
	case 0:
		return l
	case 1, 2, 3, 4:
		c.settle(t, l, c.other(l.cost), true)
	case 5:
		c.release(t, l, true)
	default: // it stands as charged
	}
	return nil
}

func (c *caller) failed(t testing.TB, err error) {
	t.Helper()
	if c.meet("failed"); !c.lossy {
		t.Error(err)
	}
}

// acquire takes a cost of its own from a user and its project, from a project alone, or from one for another
// resource.
func (c *caller) acquire(ctx context.Context) (*ticket, error) {
	id := c.dice.IntN(6)
	project := limits.Project{ID: string(rune('p' + id%2))}
	if c.dice.IntN(6) == 0 {
		lease, err := c.limiter.Embeddings.Acquire(ctx, project, limits.EmbeddingsCost{RPS: 1 + c.dice.Int64N(4)})
		if err != nil {
			return nil, err
		}
		return &ticket{
			resource: limits.Embeddings, entities: []string{"project-" + project.ID},
			cost: map[string]int64{limits.EmbeddingsRPS.String(): lease.Cost().RPS}, release: lease.Release,
			settle: func(ctx context.Context, actual map[string]int64) error {
				return lease.Settle(ctx, limits.EmbeddingsCost{RPS: actual[limits.EmbeddingsRPS.String()]})
			},
		}, nil
	}
	var of limits.GPT4Entity = project
	entities := []string{"project-" + project.ID}
	if c.dice.IntN(5) > 0 {
		user := limits.User{ID: string(rune('a' + id)), Project: project}
		of, entities = user, append(entities, "user-"+user.ID)
	}
	lease, err := c.limiter.GPT4.Acquire(ctx, of,
		limits.GPT4Cost{RPM: c.dice.Int64N(4), TPM: c.dice.Int64N(601)})
	if err != nil {
		return nil, err
	}
	return &ticket{
		resource: limits.GPT4, entities: entities, release: lease.Release,
		cost: map[string]int64{
			limits.GPT4RPM.String(): lease.Cost().RPM, limits.GPT4TPM.String(): lease.Cost().TPM,
		},
		settle: func(ctx context.Context, actual map[string]int64) error {
			return lease.Settle(ctx, limits.GPT4Cost{
				RPM: actual[limits.GPT4RPM.String()], TPM: actual[limits.GPT4TPM.String()],
			})
		},
	}, nil
}

// other is what a call comes to that was estimated at cost: for each limit more, less or the same.
func (c *caller) other(cost map[string]int64) map[string]int64 {
	actual := map[string]int64{}
	for limit, n := range cost {
		actual[limit] = max(1, n+c.dice.Int64N(2*n+3)-n-1)
	}
	return actual
}

// settle states what a call came to. A give-back to a bucket that is gone is not booked: there is nothing to
// give to.
func (c *caller) settle(t testing.TB, l *ticket, actual map[string]int64, there bool) {
	t.Helper()
	change := maps.Clone(actual)
	for limit, n := range l.cost {
		if change[limit] -= n; change[limit] > 0 {
			c.meet("settled up")
		} else if change[limit] < 0 {
			c.meet("settled down")
		}
	}
	if err := l.settle(t.Context(), actual); err != nil {
		c.failed(t, err)
		return
	}
	if there {
		c.book(l, change, 1, c.hour())
	}
}

// release gives all back.
func (c *caller) release(t testing.TB, l *ticket, there bool) {
	t.Helper()
	c.meet("released")
	l.release(t.Context())
	if there {
		c.book(l, l.cost, -1, c.hour())
	}
}

// late closes a lease of an earlier time, of which some buckets may be gone: a caller who gives back gets
// nothing from those, one who owes more is charged.
func (c *caller) late(t testing.TB, l *ticket) {
	t.Helper()
	whole := *l
	left := 0
	for _, entity := range whole.entities {
		if !c.has(t.Context(), t, bucketKey{entity, l.resource}) {
			left++
		}
	}
	switch {
	case left == 0 && c.dice.IntN(2) == 0:
		c.release(t, l, true)
	case left == 0:
		c.settle(t, l, c.other(l.cost), true)
	case left < len(l.entities): // one part is given back, the other is not: of which is which there is no need
		c.meet("left")
	case c.dice.IntN(2) == 0:
		c.meet("released to nothing")
		c.release(t, l, false)
	default:
		c.meet("settled to nothing")
		more := maps.Clone(l.cost)
		for limit := range more {
			more[limit] += 1 + c.dice.Int64N(50)
		}
		c.settle(t, l, more, true)
	}
}

// operate changes what is in force.
func (c *caller) operate(t testing.TB) {
	t.Helper()
	var of limits.GPT4Entity = limits.User{ID: string(rune('a' + c.dice.IntN(6)))}
	if c.dice.IntN(2) == 0 {
		of = limits.Project{ID: string(rune('p' + c.dice.IntN(2)))}
	}
	at := c.limiter.Config.GPT4.Entity(of)
	_, rev, err := at.Get(t.Context())
	if err == nil {
		_, err = at.Set(t.Context(), limits.GPT4Limits{
			RPM: &runtime.Rate{Capacity: 40 + c.dice.Int64N(100), Every: time.Minute},
			TPM: &runtime.Rate{Capacity: 3000 + c.dice.Int64N(20_000), Every: time.Minute},
		}, rev)
	}
	if err != nil {
		c.failed(t, err)
	}
}
