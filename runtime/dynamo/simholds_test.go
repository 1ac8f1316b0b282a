package dynamo

import (
	"context"
	"fmt"
	"log/slog"
	"math"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/sluice-go/sluice/gen/testdata/golden/inflight/out"
	"github.com/sluice-go/sluice/internal/test/longform"
	"github.com/sluice-go/sluice/runtime"
	"github.com/sluice-go/sluice/runtime/dynamo/internal/plan"
	"github.com/sluice-go/sluice/runtime/dynamo/internal/wire"
	"github.com/sluice-go/sluice/runtime/dynamo/operator"
)

// holdHistory is one seeded run of processes with real Limiters, whose leases hold slots and reservations of
// users, and of an org that all users share.
type holdHistory struct {
	seed      uint64
	processes int // at work at the same time
	callers   int // of each
	users     int
	duration  time.Duration
	starts    time.Duration // since the bubble began
	skew      time.Duration // clocks are up to so much off, either way
	faults    faults
	run       func(*rand.Rand) time.Duration // how long a call takes
	more      float64                        // share of calls that take more
	lazy      bool                           // settles wait for the bucket's next write
	kill      time.Duration                  // a process lives for up to twice as long; 0 for ever
	cut       time.Duration                  // a process is cut off as often, at most, for 6 s; 0 for never
	reset     time.Duration                  // an operator resets a bucket as often, at most; 0 for never
	override  time.Duration                  // an operator changes a capacity as often, at most; 0 for never

	choose func(*plan.Demand, plan.State, int64) plan.Plan // of a broken variant
	deaf   bool                                            // callers of a broken variant go on when told to stop
	resets func(wire.API) wire.API                         // for a broken operator
	wraps  func(runtime.Store) runtime.Store               // for a broken store
}

// line is a process's connection to the table.
type line struct {
	wire.API
	mu    sync.Mutex
	dead  bool
	until time.Time // cut off until then
}

// down returns the error of a call that does not get through.
func (l *line) down() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.dead || time.Now().Before(l.until) {
		return errReset
	}
	return nil
}

func (l *line) UpdateItem(
	ctx context.Context, in *dynamodb.UpdateItemInput, o ...func(*dynamodb.Options),
) (*dynamodb.UpdateItemOutput, error) {
	if err := l.down(); err != nil {
		return nil, err
	}
	return l.API.UpdateItem(ctx, in, o...)
}

func (l *line) PutItem(
	ctx context.Context, in *dynamodb.PutItemInput, o ...func(*dynamodb.Options),
) (*dynamodb.PutItemOutput, error) {
	if err := l.down(); err != nil {
		return nil, err
	}
	return l.API.PutItem(ctx, in, o...)
}

func (l *line) GetItem(
	ctx context.Context, in *dynamodb.GetItemInput, o ...func(*dynamodb.Options),
) (*dynamodb.GetItemOutput, error) {
	if err := l.down(); err != nil {
		return nil, err
	}
	return l.API.GetItem(ctx, in, o...)
}

func (l *line) BatchGetItem(
	ctx context.Context, in *dynamodb.BatchGetItemInput, o ...func(*dynamodb.Options),
) (*dynamodb.BatchGetItemOutput, error) {
	if err := l.down(); err != nil {
		return nil, err
	}
	return l.API.BatchGetItem(ctx, in, o...)
}

func (l *line) TransactWriteItems(
	ctx context.Context, in *dynamodb.TransactWriteItemsInput, o ...func(*dynamodb.Options),
) (*dynamodb.TransactWriteItemsOutput, error) {
	if err := l.down(); err != nil {
		return nil, err
	}
	return l.API.TransactWriteItems(ctx, in, o...)
}

// holdProcess is a process of a holdHistory.
type holdProcess struct {
	*holdHistory
	line  *line
	lim   *inflight.Limiter
	dies  context.Context // ends when the process is killed
	judge *holdJudge
}

// start returns a process whose clock is off by skew.
func (h *holdHistory) start(
	t testing.TB, dies context.Context, api wire.API, judge *holdJudge, skew time.Duration, seed uint64,
) *holdProcess {
	t.Helper()
	p := &holdProcess{holdHistory: h, line: &line{API: api}, dies: dies, judge: judge}
	rng := rand.New(rand.NewPCG(seed, 2))
	var mu sync.Mutex
	var table runtime.Store = newStore(p.line, "sim", func(s *Store) {
		s.seams.Jitter = func() float64 {
			mu.Lock()
			defer mu.Unlock()
			return rng.Float64()
		}
		if h.choose != nil {
			s.seams.Choose = h.choose
		}
	})
	if h.wraps != nil {
		table = h.wraps(table)
	}
	lim, err := inflight.New(table, runtime.WithClock(offsetClock(skew)), runtime.WithCacheTTL(20*time.Second),
		runtime.WithLogger(slog.New(slog.DiscardHandler)),
		runtime.WithCallDefaults(runtime.Budget(2*time.Second), runtime.LazySettle(h.lazy)))
	if err != nil {
		t.Fatal(err)
	}
	p.lim = lim
	return p
}

// work has a caller call until its process is killed, or the history ends.
func (p *holdProcess) work(rng *rand.Rand, until time.Time) {
	for time.Now().Before(until) && p.dies.Err() == nil {
		p.call(rng)
		<-time.After(time.Duration(rng.Int64N(int64(2 * time.Second))))
	}
}

// call acquires, runs for a while, and ends the lease.
func (p *holdProcess) call(rng *rand.Rand) {
	n := rng.IntN(p.users)
	org := inflight.Org{ID: "1"}
	user := inflight.User{ID: fmt.Sprint(n + 1), Org: org}
	cost := inflight.CallsCost{RPM: 1, Month: 1 + rng.Int64N(4), Parallel: 1 + rng.Int64N(2)}
	buckets := []string{"user-" + user.ID, "org-1"}
	lease, err := p.lim.Calls.Acquire(p.dies, user, cost)
	if p.dies.Err() != nil {
		return
	}
	if err != nil {
		p.judge.refused(err)
		return
	}
	b := p.judge.began(buckets, cost.Parallel)
	defer p.judge.ended(b)
	stop := lease.Context(p.dies)
	if p.deaf {
		stop = p.dies
	}
	ends := time.After(p.run(rng))
	if rng.Float64() < p.more {
		select {
		case <-time.After(p.run(rng) / 2):
			extra := inflight.CallsCost{Month: 1 + rng.Int64N(3)}
			if err := lease.More(p.dies, extra); err == nil {
				cost.Month += extra.Month
			}
		case <-stop.Done():
		}
	}
	select {
	case <-ends:
	case <-stop.Done():
	}
	p.judge.ended(b)
	if p.dies.Err() != nil { // a killed process ends no lease, and its charge may come back or not
		return
	}
	actual := cost
	switch rng.IntN(3) {
	case 0:
		lease.Keep(context.Background())
		p.judge.settled(buckets, cost.Month, p.faults == faults{} && p.cut == 0 && p.kill == 0)
	case 1:
		lease.Release(context.Background())
	default:
		actual.Month = rng.Int64N(2*cost.Month+1) + 1
		err := lease.Settle(context.Background(), actual)
		p.judge.settled(buckets, actual.Month, err == nil && !p.lazy && p.dies.Err() == nil)
	}
}

// play plays h in a bubble of virtual time, and returns what is wrong.
func (h holdHistory) play(t *testing.T) (judge *holdJudge) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		all := inflightResources(t)
		table := newSimTable(h.seed, all[inflight.Calls].Decode)
		table.faults = h.faults
		judge = &holdJudge{table: table, sums: map[string]*settledSum{}, resets: map[string][]time.Time{}}
		<-time.After(h.starts)
		until, seeds := time.Now().Add(h.duration), rand.New(rand.NewPCG(h.seed, 4))
		var wg sync.WaitGroup
		for range h.processes {
			seed := seeds.Uint64()
			wg.Go(func() { h.lives(t, table, judge, seed, until) })
		}
		if h.reset > 0 || h.override > 0 {
			seed := seeds.Uint64()
			wg.Go(func() { h.operate(t, table, judge, seed, until) })
		}
		wg.Wait()
		h.settle(t, table, judge)
	})
	return judge
}

// lives has one process after the other work in one place: each is killed, or closes at the end.
func (h *holdHistory) lives(t *testing.T, table *simTable, judge *holdJudge, seed uint64, until time.Time) {
	t.Helper()
	rng := rand.New(rand.NewPCG(seed, 5))
	for time.Now().Before(until) {
		skew := time.Duration(0)
		if h.skew > 0 {
			skew = time.Duration(rng.Int64N(int64(2*h.skew))) - h.skew
		}
		life := time.Until(until)
		if h.kill > 0 {
			life = min(life, time.Duration(rng.Int64N(int64(2*h.kill))))
		}
		dies, kill := context.WithCancel(context.Background())
		p := h.start(t, dies, table, judge, skew, rng.Uint64())
		var callers sync.WaitGroup
		for range h.callers {
			own := rand.New(rand.NewPCG(rng.Uint64(), 6))
			callers.Go(func() { p.work(own, until) })
		}
		end := time.Now().Add(life)
		for h.cut > 0 && time.Now().Before(end) {
			<-time.After(min(time.Until(end), time.Duration(rng.Int64N(int64(2*h.cut)))))
			p.line.mu.Lock()
			p.line.until = time.Now().Add(6 * time.Second)
			p.line.mu.Unlock()
		}
		<-time.After(time.Until(end))
		if time.Now().Before(until) {
			p.line.mu.Lock()
			p.line.dead = true
			p.line.mu.Unlock()
			kill()
		}
		callers.Wait()
		kill()
		closing, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		_ = p.lim.Close(closing)
		cancel()
	}
}

// operate resets buckets, and overrides their capacity.
func (h *holdHistory) operate(t *testing.T, table *simTable, judge *holdJudge, seed uint64, until time.Time) {
	t.Helper()
	rng := rand.New(rand.NewPCG(seed, 7))
	p := h.start(t, context.Background(), table, judge, 0, rng.Uint64())
	defer func() { _ = p.lim.Close(context.Background()) }()
	before := map[string]time.Time{} // resets, by entity
	for {
		<-time.After(time.Duration(rng.Int64N(int64(2 * max(h.reset, h.override)))))
		if !time.Now().Before(until) {
			return
		}
		n := rng.IntN(h.users + 1)
		entity := fmt.Sprint("user-", n)
		if n == 0 {
			entity = "org-1"
		}
		if h.reset > 0 && (h.override == 0 || rng.IntN(2) == 0) {
			if last, ok := before[entity]; ok && time.Since(last) < 2*time.Minute {
				continue // each such reset would keep slots for two minutes more
			}
			before[entity] = time.Now()
			var api wire.API = table
			if h.resets != nil {
				api = h.resets(api)
			}
			_, _ = operator.Reset(context.Background(), api, "sim", entity, inflight.Calls)
			judge.reset(entity)
			continue
		}
		config := p.lim.Config.Calls.Entity(inflight.Org{ID: "1"})
		if n > 0 {
			config = p.lim.Config.Calls.Entity(inflight.User{ID: fmt.Sprint(n), Org: inflight.Org{ID: "1"}})
		}
		slots := 2 + rng.Int64N(8)
		if _, revision, err := config.Get(context.Background()); err == nil {
			_, _ = config.Set(context.Background(), inflight.CallsLimits{Parallel: &slots}, revision)
		}
	}
}

// settle waits until every hold is over, and has a last process take all slots.
func (h *holdHistory) settle(t *testing.T, table *simTable, judge *holdJudge) {
	t.Helper()
	wait := 2 * time.Minute
	if h.reset > 0 || h.override > 0 {
		wait = 4 * time.Minute
	}
	<-time.After(wait + time.Second)
	table.mu.Lock()
	table.faults = faults{}
	table.mu.Unlock()
	p := h.start(t, context.Background(), table, judge, 0, 1)
	defer func() { _ = p.lim.Close(context.Background()) }()
	org := inflight.Org{ID: "1"}
	for n := range h.users + 1 {
		var snap *runtime.Snapshot[inflight.CallsCost]
		var err error
		entity := "org-1"
		if n == 0 {
			snap, err = p.lim.Calls.Peek(context.Background(), org)
		} else {
			entity = fmt.Sprint("user-", n)
			snap, err = p.lim.Calls.Peek(context.Background(), inflight.User{ID: fmt.Sprint(n), Org: org})
		}
		if err != nil {
			t.Fatal(err)
		}
		b := snap.Buckets[0]
		if got := b.Available.Parallel; got != b.Capacity.Parallel {
			judge.find("%s: %d of %d slots are back %v after the last death", entity, got, b.Capacity.Parallel, wait)
		}
		if h.reset == 0 && h.starts < 24*time.Hour {
			judge.checkUse(entity)
		}
	}
	judge.replay()
}

// lasting returns how long calls take: mostly seconds, now and then minutes.
func lasting(median time.Duration) func(*rand.Rand) time.Duration {
	return func(r *rand.Rand) time.Duration {
		return min(6*time.Minute, time.Duration(float64(median)*math.Exp(1.4*r.NormFloat64())))
	}
}

// holdHistories are histories of holds, by name.
func holdHistories() map[string]holdHistory {
	base := holdHistory{
		processes: 5, callers: 3, users: 2, duration: 12 * time.Minute, skew: 100 * time.Millisecond,
		run: lasting(8 * time.Second), more: 0.2, starts: time.Hour,
	}
	change := func(f ...func(*holdHistory)) holdHistory {
		h := base
		for _, f := range f {
			f(&h)
		}
		return h
	}
	lossy := func(h *holdHistory) {
		h.faults = faults{lostRequest: 0.015, lostReply: 0.015, late: 0.01, throttled: 0.01, unread: 0.03}
	}
	third := func(h *holdHistory) {
		h.faults = faults{lostRequest: 0.12, lostReply: 0.12, late: 0.09, unread: 0.1, conflict: 0.03}
	}
	kills := func(h *holdHistory) { h.kill = time.Minute }
	cuts := func(h *holdHistory) { h.cut = time.Minute }
	return map[string]holdHistory{
		"calm":                          base,
		"lazy settles":                  change(func(h *holdHistory) { h.lazy = true }),
		"lazy settles, a fault in 20":   change(lossy, func(h *holdHistory) { h.lazy = true }),
		"kills":                         change(kills),
		"kills and cuts, a fault in 20": change(kills, cuts, lossy),
		"a fault in three":              change(third),
		"kills, a fault in three":       change(third, kills),
		"resets":                        change(lossy, kills, func(h *holdHistory) { h.reset = time.Minute }),
		"overrides":                     change(lossy, kills, func(h *holdHistory) { h.override = time.Minute }),
		"resets and overrides": change(lossy, cuts, func(h *holdHistory) {
			h.reset, h.override = 2*time.Minute, time.Minute
		}),
		"over the end of a month": change(lossy, kills, func(h *holdHistory) {
			h.starts = 31*24*time.Hour - 6*time.Minute
		}),
	}
}

// TestSimulationOfHolds plays histories of slots and reservations. Nothing is forged or lost, no more calls
// run than there are slots, and all slots are back two minutes after the last death.
func TestSimulationOfHolds(t *testing.T) {
	skipOnLocal(t)
	longform.NoRace(t, "TestSimulationOfCrowds runs the same goroutines")
	t.Parallel()
	for name, h := range holdHistories() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			admitted := 0
			for seed := range longform.Count(t, "histories of each kind", 20, 1) {
				h.seed = uint64(seed + 1)
				judge := h.play(t)
				if admitted += judge.admitted; judge.wrong != "" {
					t.Fatalf("seed %d: %s", h.seed, judge.wrong)
				}
			}
			t.Logf("%d admitted", admitted)
		})
	}
}
