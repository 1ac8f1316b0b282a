package prefetch_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluice-go/sluice/internal/test/longform"
	"github.com/sluice-go/sluice/internal/test/simulated"
	"github.com/sluice-go/sluice/runtime"
	"github.com/sluice-go/sluice/runtime/bucket"
	"github.com/sluice-go/sluice/runtime/memdynamo"
)

// demand is calls that come at random, whether or not earlier ones have ended.
type demand struct {
	processes int
	rate      float64 // calls a second, of all processes together
	lasts     time.Duration
}

// measured is how the calls of a demand have ended.
type measured struct {
	outcomes
	took []time.Duration
	used memdynamo.Units
}

// percentile returns the p-th percentile of the time that calls took.
func (m *measured) percentile(p float64) time.Duration {
	slices.Sort(m.took)
	return m.took[int(p*float64(len(m.took)-1))]
}

// readPrice is the price of a read unit, in write units.
const readPrice = 0.2

// units returns the units of an admitted call.
func (m *measured) units() float64 {
	return (m.used.Write + readPrice*m.used.Read) / float64(m.admitted)
}

// offer offers d to processes on an engine.
func (d demand) offer(t *testing.T, engine *memdynamo.Engine, all []*process, seed uint64) *measured {
	t.Helper()
	m := &measured{}
	var running sync.WaitGroup
	engine.ResetConsumed()
	for i, p := range all {
		rng := rand.New(rand.NewPCG(seed, uint64(i)))
		running.Go(func() {
			for began := time.Now(); time.Since(began) < d.lasts; {
				sleep(time.Duration(float64(time.Second) / d.rate * float64(d.processes) * rng.ExpFloat64()))
				running.Go(func() {
					called := time.Now()
					_, err := p.Acquire(t.Context(), hot(), [2]int64{1, 1})
					took := time.Since(called)
					m.add(err)
					m.mu.Lock()
					m.took = append(m.took, took)
					m.mu.Unlock()
				})
			}
		})
	}
	running.Wait()
	m.used = engine.Consumed().Total().Total()
	return m
}

// TestUnits has 16 processes on a hot bucket, at 0.7 of its limit: a call takes no time, and next to nothing
// of the table's throughput.
func TestUnits(t *testing.T) {
	for _, c := range []struct {
		name     string
		prefetch time.Duration
		units    float64
		p50, p99 time.Duration
	}{
		{"none", 0, 0.6, 8 * time.Millisecond, 15 * time.Millisecond},
		{"100 ms", 100 * time.Millisecond, 0.05, 0, 0},
		{"200 ms", 200 * time.Millisecond, 0.02, 0, 0},
		{"1 s", time.Second, 0.006, 0, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.prefetch != 200*time.Millisecond {
				longform.Only(t, "the row of 200 ms")
			}
			synctest.Test(t, func(t *testing.T) {
				engine := newEngine(t)
				def := prefetching(t, c.prefetch, alike(10_000, 10_000), alike(1, 1))
				var all []*process
				for range 16 {
					p := open(t, simulated.Client(engine), def)
					defer p.close(t)
					all = append(all, p)
				}
				engine.Faults().Latency(memdynamo.Constant(2 * time.Millisecond))
				demand{16, 7_000, 2 * time.Second}.offer(t, engine, all, 0)
				m := demand{16, 7_000, 3 * time.Second}.offer(t, engine, all, 1)
				units, p50, p99 := m.units(), m.percentile(0.5), m.percentile(0.99)
				t.Logf("%d admitted, %d denied; %.4f units, p50 %v, p99 %v", m.admitted, m.denied, units, p50, p99)
				if units > c.units || p50 > c.p50 || p99 > c.p99 || m.denied > 0 || len(m.others) > 0 {
					t.Errorf("want at most %v units, %v, %v, and no errors; others: %v", c.units, c.p50, c.p99, m.others)
				}
			})
		})
	}
}

// TestNoStarving has one process with 99 % of a demand above the limit, and 15 with the rest of it. Each of
// the 15 asks for less than a fair share, and gets what it asks, within 2 %. Without prefetch the 15 get
// little: an empty bucket goes to the process that writes most often.
func TestNoStarving(t *testing.T) {
	longform.NoRace(t, "it measures who gets tokens")
	for _, times := range []float64{1.1, 3} {
		t.Run(fmt.Sprint(times, " times the limit"), func(t *testing.T) {
			if times < 2 {
				longform.Only(t, "three times the limit")
			}
			exact, asked := ofFifteen(t, 0, times)
			pooled, _ := ofFifteen(t, 200*time.Millisecond, times)
			t.Logf("of %d, the 15 got %d without prefetch, and %d with it", sum(asked), sum(exact), sum(pooled))
			for i, n := range pooled {
				if float64(n) < 0.98*float64(asked[i]) {
					t.Errorf("process %d got %d of %d", i+1, n, asked[i])
				}
			}
			if times > 2 && sum(exact) > sum(asked)/2 {
				t.Error("without prefetch nobody starves: the test tells nothing")
			}
		})
	}
}

// TestExhausted has 16 processes that ask for three times the limit. They get as much as without prefetch,
// for no more units. Once the burst is used up, next to no call is denied while another process holds a
// token.
func TestExhausted(t *testing.T) {
	longform.NoRace(t, "it measures what is denied")
	seconds := longform.Count(t, "seconds of demand", 10, 4)
	exact, _, _ := exhausted(t, 0, seconds)
	pooled, admitted, beside := exhausted(t, 200*time.Millisecond, seconds)
	portion := float64(beside) / float64(len(pooled.took))
	t.Logf("%d admitted, %d in all, %.3f units each; without prefetch %d, %.3f; %.3f %% denied beside tokens",
		pooled.admitted, admitted, pooled.units(), exact.admitted, exact.units(), 100*portion)
	if portion > 0.003 {
		t.Errorf("%d of %d calls were denied while another process held a token", beside, len(pooled.took))
	}
	varies := 1 + 0.4/float64(seconds) // the turns of goroutines differ
	ideal := 1_000 + 1_000*(usesUpBurst+seconds)
	if admitted < ideal || pooled.units() > varies*exact.units() {
		t.Errorf("%d admitted in all, for %.3f units each, want %d, for %.3f as without prefetch", admitted,
			pooled.units(), ideal, exact.units())
	}
}

// usesUpBurst is the seconds in which a demand of three times the limit uses up the burst, and what processes
// hold of it.
const usesUpBurst = 2

// exhausted returns how the calls of TestExhausted have ended, and how many of them were denied while another
// process held a token. admitted is with the calls that used up the burst.
func exhausted(t *testing.T, prefetch time.Duration, seconds int) (m *measured, admitted int, beside int64) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		engine := newEngine(t)
		def := prefetching(t, prefetch, alike(1_000, 1_000), alike(1, 1))
		engine.Faults().Latency(memdynamo.Constant(2 * time.Millisecond))
		var all []*process
		var denied atomic.Int64
		holders := make([]holder, 16)
		for i := range holders {
			spy := &runtime.Observer{Denied: func(context.Context, runtime.Event) {
				for j := range holders {
					if j != i && holders[j].held.Load() >= bucket.Milli {
						denied.Add(1)
						return
					}
				}
			}}
			p := open(t, simulated.Client(engine), def,
				runtime.WithObserver(runtime.Observers(holders[i].observer(), spy)))
			defer p.close(t)
			all = append(all, p)
		}
		var first *measured
		var running sync.WaitGroup // its last calls end during the next demand: in a pause, the bucket would fill
		running.Go(func() { first = demand{16, 3_000, usesUpBurst * time.Second}.offer(t, engine, all, 1) })
		sleep(usesUpBurst * time.Second)
		t.Logf("prefetch %v: %d calls denied beside tokens, until the burst was used up", prefetch, denied.Swap(0))
		m = demand{16, 3_000, time.Duration(seconds) * time.Second}.offer(t, engine, all, 2)
		running.Wait()
		admitted, beside = first.admitted+m.admitted, denied.Load()
	})
	return m, admitted, beside
}

// sum adds up numbers.
func sum(numbers []int) (n int) {
	for _, one := range numbers {
		n += one
	}
	return n
}

// ofFifteen returns how many calls of each of the 15 processes of TestNoStarving are admitted, and how many
// come. All processes together ask for so many times the limit.
func ofFifteen(t *testing.T, prefetch time.Duration, times float64) (admitted, asked []int) {
	t.Helper()
	const limit = 1_000
	synctest.Test(t, func(t *testing.T) {
		engine := newEngine(t)
		def := prefetching(t, prefetch, alike(limit, limit), alike(1, 1))
		engine.Faults().Latency(memdynamo.Constant(2 * time.Millisecond))
		var all []*process
		for range 16 {
			p := open(t, simulated.Client(engine), def)
			defer p.close(t)
			all = append(all, p)
		}
		var greedy *measured
		others := make([]*measured, 15)
		var running sync.WaitGroup
		much := demand{1, 0.99 * times * limit, 20 * time.Second}
		running.Go(func() { greedy = much.offer(t, engine, all[:1], 1) })
		for i := range others {
			one := demand{1, 0.01 / 15 * times * limit, 20 * time.Second}
			running.Go(func() { others[i] = one.offer(t, engine, all[i+1:i+2], uint64(i+2)) })
		}
		running.Wait()
		if greedy.admitted > 21*limit || float64(greedy.admitted) < 0.98*20*limit {
			t.Errorf("the greedy process got %d of a limit of 1,000 a second in 20 s", greedy.admitted)
		}
		for _, one := range others {
			admitted, asked = append(admitted, one.admitted), append(asked, len(one.took))
		}
	})
	return admitted, asked
}

// TestLargeWaits has a call that waits for nearly all of a bucket's burst, while its process and another one
// prefetch for small calls, which ask for half of the refill. It is served as soon as without prefetch, but
// for what blocks hold.
func TestLargeWaits(t *testing.T) {
	exact, pooled := largeWaits(t, 0), largeWaits(t, life)
	t.Logf("served after %v without prefetch, and after %v with it", exact, pooled)
	if pooled > exact+life {
		t.Errorf("served after %v, want at most %v later than after %v", pooled, life, exact)
	}
}

// largeWaits returns how long the large call of TestLargeWaits waits.
func largeWaits(t *testing.T, prefetch time.Duration) (took time.Duration) {
	t.Helper()
	const limit = 400
	synctest.Test(t, func(t *testing.T) {
		engine := newEngine(t)
		def := prefetching(t, prefetch, alike(limit, limit), alike(1, 1))
		engine.Faults().Latency(memdynamo.Constant(2 * time.Millisecond))
		var all []*process
		for range 2 {
			p := open(t, simulated.Client(engine), def)
			defer p.close(t)
			all = append(all, p)
		}
		var running sync.WaitGroup
		running.Go(func() { demand{2, limit / 2, 6 * time.Second}.offer(t, engine, all, 1) })
		sleep(time.Second)
		drain, err := all[1].Acquire(t.Context(), hot(), [2]int64{limit / 2, limit / 2})
		if err != nil {
			t.Error(err)
		}
		drain.Keep(t.Context())
		began := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if _, err := all[0].Wait(ctx, hot(), [2]int64{limit * 9 / 10, limit * 9 / 10}); err != nil {
			t.Error(err)
		}
		took = time.Since(began)
		running.Wait()
	})
	return took
}
