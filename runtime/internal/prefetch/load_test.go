package prefetch_test

import (
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluice-go/sluice/internal/test/longform"
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
					p := open(t, engine.Client(), def)
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

// TestNoStarving has one process with 98 % of a demand above the limit, and 15 with the rest of it. Each of
// the 15 asks for less than a fair share. They get what they get without prefetch, within 2 %.
func TestNoStarving(t *testing.T) {
	exact, asked := ofFifteen(t, 0)
	pooled, _ := ofFifteen(t, 200*time.Millisecond)
	t.Logf("of %d, the 15 got %d without prefetch, and %d with it", asked, exact, pooled)
	if float64(pooled) < float64(exact)-0.02*float64(asked) {
		t.Errorf("the 15 got %d of %d, want as many as without prefetch: %d", pooled, asked, exact)
	}
}

// ofFifteen returns how many calls of the 15 processes of TestNoStarving are admitted, and how many come.
func ofFifteen(t *testing.T, prefetch time.Duration) (admitted, asked int) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		engine := newEngine(t)
		def := prefetching(t, prefetch, alike(1_000, 1_000), alike(1, 1))
		engine.Faults().Latency(memdynamo.Constant(2 * time.Millisecond))
		var all []*process
		for range 16 {
			p := open(t, engine.Client(), def)
			defer p.close(t)
			all = append(all, p)
		}
		var greedy *measured
		var running sync.WaitGroup
		running.Go(func() { greedy = demand{1, 1_080, 20 * time.Second}.offer(t, engine, all[:1], 1) })
		others := demand{15, 22, 20 * time.Second}.offer(t, engine, all[1:], 2)
		running.Wait()
		if greedy.denied == 0 {
			t.Error("the limit is not exhausted")
		}
		admitted, asked = others.admitted, len(others.took)
	})
	return admitted, asked
}
