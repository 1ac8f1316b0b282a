package dynamo

import (
	"cmp"
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/sluice-go/sluice/runtime/bucket"
	"github.com/sluice-go/sluice/runtime/dynamo/codec"
	"github.com/sluice-go/sluice/runtime/dynamo/internal/scheduler"
	"github.com/sluice-go/sluice/runtime/dynamo/internal/wire"
	"github.com/sluice-go/sluice/runtime/store"
)

// openLoad is calls that arrive at random, whatever becomes of others, in processes that share one table.
type openLoad struct {
	processes int
	rate      float64 // of arrivals, a second and process
	duration  time.Duration
	limits    []bucket.Limit
	cost      func(*rand.Rand) []int64
	users     int     // of one project, both charged; 0 for one user without a project
	direct    float64 // share of calls that charge the user or the project alone
	skew      time.Duration
	faults    faults
	budget    time.Duration // of a call; 0 for a second
	inFlight  int           // 0 for the default
	delay     time.Duration // each way, and up to a tenth more; 0 for 1 to 4 ms
	cascade   store.Cascade

	stores  int          // of one process; 0 for one
	change  storeChange  // of each store; nil for none
	replied func(*watch) // called before a process gets a reply; nil for nothing
}

// seen is what watches have seen of a load.
type seen struct {
	admitted, denied, failed int
	failure                  error // of the first that failed

	writes   int           // the most under way for one bucket or one root, in a process
	inFlight int           // the most reads and writes under way, in a process
	lost     int           // the most races that a request has lost
	passed   int           // the most often that later requests were served before one of their queue
	larger   int           // the most often that later ones which take as much or more were
	idle     time.Duration // the longest time that a request waited while nothing was under way for its queue
	unsent   int           // calls that failed with ErrNotSent
	sent     int           // of these, those that a write was sent for
}

// waiter is a call that has not returned.
type waiter struct {
	turn   int // in order of arrival in its process
	queue  string
	cost   []int64
	lost   int // races
	passed int // writes that served later calls of its queue, and not this one
	larger int // of these, those that served one which takes as much
	sends  int // writes that were to serve it
}

// takesAsMuchAs reports whether c asks of no limit less than other does.
func (c *waiter) takesAsMuchAs(other *waiter) bool {
	for i, n := range other.cost {
		if c.cost[i] < n {
			return false
		}
	}
	return true
}

type waiterKey struct{}

// waiterOf returns the call that a request of the store is for, nil if it is for none.

func waiterOf(ctx context.Context) *waiter {
	w, _ := ctx.Value(waiterKey{}).(*waiter)
	return w
}

// servedKey has the calls that a write is to serve.
type servedKey struct{}

// watch stands between a process and its table, and notes what the scheduler has under way for whom.
type watch struct {
	wire.API
	turns   int
	replied func(*watch) // nil for nothing

	mu      sync.Mutex
	shared  []sharedQueue
	seen    seen
	waiting []*waiter            // in order of arrival
	turn    int                  // of the last arrival
	writes  map[string]int       // under way, by bucket, or by root
	queues  map[string]int       // reads and writes under way, by queue
	idle    map[string]time.Time // since when requests wait although nothing is under way for their queue
	total   int                  // reads and writes under way
}

// note books how long queues were idle, before anything changes, and which are from now on. The caller holds
// the lock.
func (w *watch) note(change func()) {
	now := time.Now()
	for _, since := range w.idle {
		w.seen.idle = max(w.seen.idle, now.Sub(since))
	}
	change()
	w.seen.inFlight = max(w.seen.inFlight, w.total)
	for _, n := range w.writes {
		w.seen.writes = max(w.seen.writes, n)
	}
	still := map[string]time.Time{}
	for _, c := range w.waiting {
		if w.queues[c.queue] == 0 && w.total < w.turns {
			still[c.queue] = now
			if since, ok := w.idle[c.queue]; ok {
				still[c.queue] = since
			}
		}
	}
	w.idle = still
}

// onWrite returns ctx for a write that is to serve all.
func (w *watch) onWrite(ctx context.Context, all []*scheduler.Request) context.Context {
	var served []*waiter
	for _, r := range all {
		if c := waiterOf(r.Served().Ctx); c != nil {
			c.sends++
			served = append(served, c)
		}
	}
	return context.WithValue(ctx, servedKey{}, served)
}

// sharedQueue is the queue of one bucket: the requests that wait, and the lock that guards them.
type sharedQueue struct {
	mu      *sync.Mutex
	waiting *[]*scheduler.Request
}

// onQueue notes a queue.
func (w *watch) onQueue(mu *sync.Mutex, waiting *[]*scheduler.Request) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.shared = append(w.shared, sharedQueue{mu, waiting})
}

// siblingsOf names the queue of chains that have this root.
func siblingsOf(root string) string { return "siblings of " + root }

// watched sends a request of a queue, which writes to these buckets; none for a read.
func watched[T any](ctx context.Context, w *watch, buckets []string, send func() (T, error)) (T, error) {
	queue := ""
	if c := waiterOf(ctx); c != nil {
		queue = c.queue
	}
	path := strings.Join(buckets, "")
	if len(buckets) > 1 {
		root := func(b string) bool { return strings.HasPrefix(b, "project-") }
		path = siblingsOf(buckets[slices.IndexFunc(buckets, root)])
	}
	step := func(n int) {
		w.queues[queue] += n
		w.total += n
		if path != "" {
			w.writes[path] += n
		}
	}
	w.mu.Lock()
	w.note(func() { step(1) })
	w.mu.Unlock()
	out, err := send()
	w.mu.Lock()
	w.note(func() { step(-1) })
	if served, ok := ctx.Value(servedKey{}).([]*waiter); ok && path != "" {
		w.judge(served, err)
	}
	w.mu.Unlock()
	if w.replied != nil {
		w.replied(w)
	}
	return out, err
}

// judge notes what became of a write for served: they have lost a race, or they have passed over others. The
// caller holds the lock.
func (w *watch) judge(served []*waiter, err error) {
	lost := isA[*types.ConditionalCheckFailedException](err)
	if cancelled, ok := errors.AsType[*types.TransactionCanceledException](err); ok {
		lost = slices.ContainsFunc(cancelled.CancellationReasons, func(r types.CancellationReason) bool {
			return aws.ToString(r.Code) == wire.ConditionFailed
		})
	}
	for _, c := range served {
		if lost {
			c.lost++
			w.seen.lost = max(w.seen.lost, c.lost)
		}
	}
	if err != nil || len(served) == 0 {
		return
	}
	for _, c := range w.waiting {
		later := func(s *waiter) bool { return s.turn > c.turn && s.queue == c.queue }
		larger := func(s *waiter) bool { return later(s) && s.takesAsMuchAs(c) }
		if slices.Contains(served, c) || !slices.ContainsFunc(served, later) {
			continue
		}
		c.passed++
		w.seen.passed = max(w.seen.passed, c.passed)
		if slices.ContainsFunc(served, larger) {
			c.larger++
			w.seen.larger = max(w.seen.larger, c.larger)
		}
	}
}

func (w *watch) UpdateItem(
	ctx context.Context, in *dynamodb.UpdateItemInput, opts ...func(*dynamodb.Options),
) (*dynamodb.UpdateItemOutput, error) {
	if !isBucket(keyOf(in.Key)) {
		return w.API.UpdateItem(ctx, in, opts...)
	}
	return watched(ctx, w, []string{entityOf(keyOf(in.Key))}, func() (*dynamodb.UpdateItemOutput, error) {
		return w.API.UpdateItem(ctx, in, opts...)
	})
}

func (w *watch) PutItem(
	ctx context.Context, in *dynamodb.PutItemInput, opts ...func(*dynamodb.Options),
) (*dynamodb.PutItemOutput, error) {
	return watched(ctx, w, []string{entityOf(keyOf(in.Item))}, func() (*dynamodb.PutItemOutput, error) {
		return w.API.PutItem(ctx, in, opts...)
	})
}

func (w *watch) TransactWriteItems(
	ctx context.Context, in *dynamodb.TransactWriteItemsInput, opts ...func(*dynamodb.Options),
) (*dynamodb.TransactWriteItemsOutput, error) {
	var buckets []string
	for _, item := range in.TransactItems {
		if item.Put != nil {
			buckets = append(buckets, entityOf(keyOf(item.Put.Item)))
		} else {
			buckets = append(buckets, entityOf(keyOf(item.Update.Key)))
		}
	}
	return watched(ctx, w, buckets, func() (*dynamodb.TransactWriteItemsOutput, error) {
		return w.API.TransactWriteItems(ctx, in, opts...)
	})
}

func (w *watch) BatchGetItem(
	ctx context.Context, in *dynamodb.BatchGetItemInput, opts ...func(*dynamodb.Options),
) (*dynamodb.BatchGetItemOutput, error) {
	return watched(ctx, w, nil, func() (*dynamodb.BatchGetItemOutput, error) {
		return w.API.BatchGetItem(ctx, in, opts...)
	})
}

func (w *watch) GetItem(
	ctx context.Context, in *dynamodb.GetItemInput, opts ...func(*dynamodb.Options),
) (*dynamodb.GetItemOutput, error) {
	return watched(ctx, w, nil, func() (*dynamodb.GetItemOutput, error) {
		return w.API.GetItem(ctx, in, opts...)
	})
}

// acquire is one call of a process, by one of its stores, from its arrival to its end.
func (w *watch) acquire(
	ctx context.Context,
	p *process,
	def store.Definition,
	chain []store.Bucket,
	cost []int64,
	budget time.Duration,
) {
	queue := chain[0].Entity
	if len(chain) > 1 {
		queue = siblingsOf(chain[len(chain)-1].Entity)
	}
	c := &waiter{queue: queue, cost: cost}
	w.mu.Lock()
	w.turn++
	c.turn = w.turn
	w.note(func() { w.waiting = append(w.waiting, c) })
	w.mu.Unlock()
	err := p.session.Acquire(context.WithValue(ctx, waiterKey{}, c), &store.Call{
		Called: p.clock.Now(), Deadline: time.Now().Add(budget),
		Parts: []store.Part{{Def: def, Buckets: chain, Cost: cost}},
	})
	w.mu.Lock()
	defer w.mu.Unlock()
	w.note(func() { w.waiting = slices.DeleteFunc(w.waiting, func(of *waiter) bool { return of == c }) })
	switch {
	case err == nil:
		w.seen.admitted++
	case isA[*store.DeniedError](err):
		w.seen.denied++
	default:
		w.seen.failed++
		w.seen.failure = cmp.Or(w.seen.failure, err)
	}
	if errors.Is(err, store.ErrNotSent) {
		if w.seen.unsent++; c.sends > 0 {
			w.seen.sent++
		}
	}
}

// history has the limits and the chains of the load.
func (l *openLoad) history() *history {
	h := &history{limits: [][]bucket.Limit{l.limits}, cascade: l.cascade}
	if l.users > 0 {
		h.above = []int64{8}
	}
	return h
}

// run offers the load in a bubble of virtual time.
func (l openLoad) run(t *testing.T, r codec.Resource, seed uint64) (sum seen) {
	t.Helper()
	skipOnLocal(t)
	synctest.Test(t, func(t *testing.T) {
		table := newSimTable(seed, r.Decode)
		table.faults, table.quiet = l.faults, true
		if l.delay > 0 {
			table.minDelay, table.maxDelay = l.delay, l.delay*11/10
		}
		turns := cmp.Or(l.inFlight, DefaultInFlight)
		h := l.history()
		def := h.definitions(r)[0]
		seeds := rand.New(rand.NewPCG(seed, 7))
		var running sync.WaitGroup
		var all []*watch
		for range l.processes {
			w := &watch{
				API: table, turns: turns, replied: l.replied, writes: map[string]int{}, queues: map[string]int{},
				idle: map[string]time.Time{},
			}
			all = append(all, w)
			var skew time.Duration
			if l.skew > 0 {
				skew = time.Duration(seeds.Int64N(int64(2*l.skew))) - l.skew
			}
			var of []*process
			for range max(1, l.stores) {
				of = append(of, newProcess(t, w, seeds.Uint64(), offsetClock(skew), func(s *Store) {
					s.seams.OnWrite, s.seams.OnQueue = w.onWrite, w.onQueue
					option(InFlight(turns))(s)
					if l.change != nil {
						l.change(s)
					}
				}, def))
			}
			rng := rand.New(rand.NewPCG(seed, seeds.Uint64()))
			running.Go(func() { l.offer(t.Context(), w, of, def, rng) })
		}
		running.Wait()
		<-time.After(time.Minute) // what goes on in the background ends
		for _, w := range all {
			w.mu.Lock()
			sum.add(w.seen)
			w.mu.Unlock()
		}
	})
	return sum
}

// offer has calls of one process come at random, and waits until they have ended.
func (l *openLoad) offer(ctx context.Context, w *watch, of []*process, def store.Definition, rng *rand.Rand) {
	h := l.history()
	var calling sync.WaitGroup
	for began, n := time.Now(), 0; time.Since(began) < l.duration; n++ {
		<-time.After(time.Duration(float64(time.Second) / l.rate * rng.ExpFloat64()))
		chain := h.chain(rng.IntN(max(1, l.users)))
		if rng.Float64() < l.direct {
			i := rng.IntN(len(chain))
			chain = chain[i : i+1]
		}
		cost, p := l.cost(rng), of[n%len(of)]
		calling.Go(func() { w.acquire(ctx, p, def, chain, cost, cmp.Or(l.budget, time.Second)) })
	}
	calling.Wait()
}

// add adds what another process has seen.
func (s *seen) add(of seen) {
	s.admitted, s.denied, s.failed = s.admitted+of.admitted, s.denied+of.denied, s.failed+of.failed
	s.unsent, s.sent = s.unsent+of.unsent, s.sent+of.sent
	s.failure = cmp.Or(s.failure, of.failure)
	s.writes, s.inFlight = max(s.writes, of.writes), max(s.inFlight, of.inFlight)
	s.lost, s.idle = max(s.lost, of.lost), max(s.idle, of.idle)
	s.passed, s.larger = max(s.passed, of.passed), max(s.larger, of.larger)
}
