package prefetch_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/sluice-go/sluice/internal/test/longform"
	"github.com/sluice-go/sluice/internal/test/simulated"
	"github.com/sluice-go/sluice/runtime"
	"github.com/sluice-go/sluice/runtime/bucket"
	"github.com/sluice-go/sluice/runtime/dynamo"
	"github.com/sluice-go/sluice/runtime/memdynamo"
	"github.com/sluice-go/sluice/runtime/store"
)

// Limits of the histories: of the project and of each user, of rpm and tpm alike.
const (
	projectRate, projectBurst = 1_000, 3_000
	userRate, userBurst       = 300, 900
)

// history is what happens in one test.
type history struct {
	prefetch time.Duration // of the processes
	bound    time.Duration // the prefetch that the bound has
	rates    []float64     // calls a second of each process, by second
	lasts    time.Duration
	users    int // of the project; 0 for calls on the project alone
	skew     time.Duration
	windows  bool // tpm has windows, and no bound that is reached
	settles  bool // leases are settled some time later, for more or for less, or get more
	kills    int  // processes that die
	lost     float64
	silent   float64 // the portion of a process's calls of its store that do not arrive, and of answers

	sends, writes func(*store.Part) // break a rule, as a ledger says
}

// skewed is a clock that is off.
type skewed struct {
	store.Clock
	by time.Duration
}

// Now implements store.Clock.
func (s skewed) Now() time.Time { return s.Clock.Now().Add(s.by) }

// mortal is the connection of a process that may be killed.
type mortal struct {
	dynamodb.HTTPClient
	dead atomic.Bool
}

// Do implements dynamodb.HTTPClient.
func (m *mortal) Do(r *http.Request) (*http.Response, error) {
	if m.dead.Load() {
		return nil, errors.New("the process is dead")
	}
	return m.HTTPClient.Do(r)
}

// world is a history under way.
type world struct {
	*history
	t       *testing.T
	engine  *memdynamo.Engine
	books   *books
	all     []*process
	hearts  []*mortal
	ledgers []*ledger // of the processes
	calls   sync.WaitGroup
}

// play plays h, closes the processes that live, and returns the world.
func (h *history) play(t *testing.T, seed uint64) *world {
	t.Helper()
	w := &world{history: h, t: t, engine: newEngine(t, memdynamo.WithSeed(seed)), books: newBooks()}
	def := prefetching(t, h.prefetch, alike(projectRate, projectBurst), alike(userRate, userBurst))
	if h.windows {
		alike := def
		def = windowedBy(t, 1_000_000)
		def.Numbers.Prefetch = h.prefetch
		for i := range def.Numbers.Kinds {
			k := &def.Numbers.Kinds[i]
			k.Limits = []bucket.Limit{alike.Numbers.Kinds[i].Limits[0], k.Limits[1]}
		}
	}
	w.engine.Faults().Latency(memdynamo.LogNormal(2*time.Millisecond, 0.3))
	var arriving sync.WaitGroup
	for i := range 16 {
		rng := rand.New(rand.NewPCG(seed, uint64(i)))
		heart := &mortal{HTTPClient: w.engine.HTTPClient()}
		client := simulated.Client(w.engine, func(o *dynamodb.Options) { o.HTTPClient = heart })
		clock := skewed{store.SystemClock(), time.Duration(rng.Int64N(int64(h.skew) + 1))}
		l := &ledger{
			Store: dynamo.New(client, table), dead: &heart.dead, lost: h.silent, sends: h.sends,
			writes: h.writes, rng: rand.New(rand.NewPCG(seed, uint64(32+i))),
		}
		w.hearts, w.ledgers = append(w.hearts, heart), append(w.ledgers, l)
		w.all = append(w.all, openOn(t, l, def, runtime.WithClock(clock)))
	}
	for i, heart := range w.hearts {
		rng := rand.New(rand.NewPCG(seed, uint64(16+i)))
		arriving.Go(func() { w.offer(i, rng) })
		if i < h.kills {
			arriving.Go(func() {
				sleep(h.lasts / time.Duration(h.kills+1) * time.Duration(i+1))
				heart.dead.Store(true)
			})
		}
	}
	sleep(100 * time.Millisecond)
	w.engine.Faults().LoseReplies(h.lost)
	arriving.Wait()
	w.engine.Faults().LoseReplies(0)
	w.calls.Wait()
	for i, p := range w.all {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), time.Minute)
		if err := p.Close(ctx); err != nil && !w.hearts[i].dead.Load() {
			t.Error("close:", err)
		}
		cancel()
	}
	sleep(time.Minute) // what dead processes had under way ends
	return w
}

// offer has calls of the i-th process come, until it dies.
func (w *world) offer(i int, rng *rand.Rand) {
	began := time.Now()
	for time.Since(began) < w.lasts && !w.hearts[i].dead.Load() {
		at := time.Since(began)
		rate := w.rates[int(at/time.Second)%len(w.rates)]
		if rate == 0 {
			sleep(time.Second - at%time.Second)
			continue
		}
		sleep(time.Duration(float64(time.Second) / rate * rng.ExpFloat64()))
		entity := hot()
		if w.users > 0 {
			entity = userOf(fmt.Sprint(rng.IntN(w.users)))
		}
		one := rand.New(rand.NewPCG(rng.Uint64(), 0))
		w.calls.Go(func() { w.call(i, entity, one) })
	}
}

// call is one call of the i-th process.
func (w *world) call(i int, entity of, rng *rand.Rand) {
	called, cost := time.Now(), int64(1)
	if w.settles {
		cost = 1 + rng.Int64N(4)
	}
	lease, err := w.all[i].Acquire(context.WithoutCancel(w.t.Context()), entity, [2]int64{cost, cost})
	took := time.Since(called)
	switch {
	case w.hearts[i].dead.Load():
		if err == nil {
			w.books.lose(entity, cost)
		}
		return
	case err != nil:
		w.books.refuse(err)
		return
	}
	if w.books.admit(entity, cost, took); w.settles {
		w.settle(i, entity, cost, lease, rng)
	}
}

// settle ends a lease of cost some time later, in one of several ways.
func (w *world) settle(i int, entity of, cost int64, lease *runtime.Lease[[2]int64], rng *rand.Rand) {
	ctx := context.WithoutCancel(w.t.Context())
	sleep(time.Duration(rng.Int64N(int64(600 * time.Millisecond))))
	if w.hearts[i].dead.Load() {
		return
	}
	more := time.Now()
	if rng.IntN(8) == 0 && lease.More(ctx, [2]int64{2, 2}) == nil {
		w.books.add(entity, 2, time.Since(more))
		cost += 2
	}
	actual := cost
	switch rng.IntN(4) {
	case 0:
		lease.Release(ctx)
		actual = 0
	case 1, 2: // less or more
		actual = max(1, rng.Int64N(2*cost))
		err := lease.Settle(ctx, [2]int64{actual, actual})
		if err != nil && !w.hearts[i].dead.Load() && w.lost+w.silent == 0 {
			w.t.Error("settle:", err)
		}
	}
	if actual != cost {
		w.books.add(entity, actual-cost, 0)
	}
}

// entities returns the buckets of w, with their limits.
func (w *world) entities() map[string][2]float64 {
	all := map[string][2]float64{"project-hot": {projectRate, projectBurst}}
	for i := range w.users {
		all[fmt.Sprint("user-", i)] = [2]float64{userRate, userBurst}
	}
	return all
}

// worst returns the excess over the bound of the worst bucket.
func (w *world) worst() int64 {
	worst := int64(math.MinInt64)
	for entity, limit := range w.entities() {
		worst = max(worst, w.books.excess(entity, limit[0], limit[1], w.bound+w.skew))
	}
	return worst
}

// histories are those that the bound is held against.
func histories() map[string]history {
	const ms = time.Millisecond
	spikes, waves := []float64{180, 0, 0, 0, 360, 0, 0, 0}, []float64{40, 140, 0, 100}
	return map[string]history{
		"spikes":  {prefetch: 100 * ms, bound: 100 * ms, rates: spikes, lasts: 6 * time.Second},
		"skew":    {prefetch: 200 * ms, bound: 200 * ms, rates: spikes, lasts: 6 * time.Second, skew: 50 * ms},
		"chains":  {prefetch: 200 * ms, bound: 200 * ms, rates: waves, lasts: 4 * time.Second, users: 4},
		"settles": {prefetch: 200 * ms, bound: 200 * ms, rates: waves, lasts: 4 * time.Second, settles: true},
		"settles over chains": {
			prefetch: 200 * ms, bound: 200 * ms, rates: waves, lasts: 4 * time.Second, users: 4, settles: true,
		},
		"kills": {
			prefetch: 500 * ms, bound: 500 * ms, rates: waves, lasts: 4 * time.Second, users: 4, settles: true,
			kills: 8,
		},
		"windows": {
			prefetch: 300 * ms, bound: 300 * ms, rates: waves, lasts: 7 * time.Second, users: 4, settles: true,
			kills: 4, windows: true,
		},
		"silence": {
			prefetch: 200 * ms, bound: 200 * ms, rates: waves, lasts: 4 * time.Second, users: 4, settles: true,
			kills: 4, silent: 0.03,
		},
		"lost replies": {
			prefetch: 200 * ms, bound: 200 * ms, rates: waves, lasts: 4 * time.Second, users: 4, settles: true,
			lost: 0.05,
		},
	}
}

// TestHistories plays histories of 16 processes. They admit no more than the bound, in all intervals. In the
// end, the table has charged exactly the tokens that calls used, and those that were lost.
func TestHistories(t *testing.T) {
	seeds := longform.Count[uint64](t, "seeds of each history", 8, 1)
	alike := map[string]string{
		"skew": "spikes", "chains": "silence", "settles over chains": "silence", "kills": "silence",
	}
	for name, h := range histories() {
		for seed := range seeds {
			t.Run(fmt.Sprint(name, " ", seed), func(t *testing.T) {
				if other, ok := alike[name]; ok {
					longform.NoRace(t, other+" runs the same goroutines")
				}
				synctest.Test(t, func(t *testing.T) {
					w := h.play(t, seed)
					worst := w.worst()
					t.Logf("%d admitted, %d denied, %v; %d tokens beyond the bound, d %v; %s", w.books.admitted,
						w.books.refused, w.books.others, worst, w.books.waited, w.losses())
					if worst > 0 {
						t.Errorf("%d tokens beyond the bound", worst)
					}
					w.balance()
				})
			})
		}
	}
}

// balance checks that the accounts of w balance, to the millitoken. If replies of the table get lost, the
// processes do not know either what it has applied: it has charged at least what calls used.
func (w *world) balance() {
	w.t.Helper()
	processes, table := w.imbalance()
	for at, n := range processes {
		w.t.Errorf("%v: processes took %d millitokens more than they gave back and calls had", at, n)
	}
	for at, n := range table {
		if n < 0 || w.lost == 0 {
			w.t.Errorf("%v: the table charged %d millitokens more than was taken, less what came back", at, n)
		}
	}
}

// TestHistoriesAreSeen breaks rules: TestHistories would notice.
func TestHistoriesAreSeen(t *testing.T) {
	longform.NoRace(t, "a control, whose broken variant ships nowhere")
	broken := histories()["spikes"]
	broken.prefetch = 5 * time.Second // blocks live for longer than is said
	synctest.Test(t, func(t *testing.T) {
		w := broken.play(t, 0)
		worst := w.worst()
		t.Logf("%d admitted, %d denied, %v; %d tokens beyond the bound, d %v", w.books.admitted, w.books.refused,
			w.books.others, worst, w.books.waited)
		if worst <= 0 {
			t.Error("nobody noticed")
		}
	})
}
