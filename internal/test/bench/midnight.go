package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/sluice-go/sluice/internal/test/bench/generated"
	"github.com/sluice-go/sluice/runtime"
)

// The callers of a limit a day, half of whom the next day's allowance serves.
const (
	daily          = 3_200
	sleepers       = 2 * daily
	midnightSpread = time.Minute
)

// midnightExperiments are on the end of a window, when all who were denied come back.
func midnightExperiments(c conditions) []experiment {
	return []experiment{
		midnight("all at once", 0, bound{}, c),
		midnight("Spread of a minute", midnightSpread, atMost(1.5*sleepers/midnightSpread.Seconds()), c),
	}
}

// midnight has callers of 64 processes denied in the last ten minutes of a window, at random instants. Each
// comes back after its RetryAfter, and as much more as the spread adds, and tries until it is decided.
func midnight(how string, spread time.Duration, peak bound, c conditions) experiment {
	return experiment{
		rows: []row{{fmt.Sprintf("%d callers of 64 processes at the end of a day, %s", sleepers, how), []figure{
			{name: "calls in the fullest second", format: "%.0f/s", want: peak, every: true},
			{name: "admitted", format: "%.0f admitted", want: atLeast(daily), every: true},
			{name: "attempts that lost every race, percent", format: "%.1f%% lost every race"},
		}}},
		measure: func(context.Context) ([]float64, error) {
			var m midnightCallers
			err := c.bubble(func(ctx context.Context) error {
				w, err := newWorld(ctx, c.oneWay)
				if err != nil {
					return err
				}
				return m.run(ctx, w, spread)
			})
			if err != nil {
				return nil, err
			}
			most := 0
			for _, n := range m.seconds {
				most = max(most, n)
			}
			if m.ends.admitted > daily {
				return nil, fmt.Errorf("%d were admitted, of %d", m.ends.admitted, daily)
			}
			lost := float64(m.ends.contended) / float64(m.ends.contended+sleepers)
			return []float64{float64(most), float64(m.ends.admitted), 100 * lost}, nil
		},
	}
}

// midnightCallers are the callers and how their calls ended.
type midnightCallers struct {
	mu      sync.Mutex
	seconds map[int64]int // calls by the second in which they began
	ends    outcome
	err     error
}

// run empties the window, has the callers denied, and waits until each has been decided in the next one.
func (m *midnightCallers) run(ctx context.Context, w *world, spread time.Duration) error {
	m.seconds = make(map[int64]int)
	processes := make([]*generated.Limiter, 64)
	for i := range processes {
		var err error
		if processes[i], err = w.process(); err != nil {
			return err
		}
	}
	who := generated.Project{ID: "daily"}
	day := time.Now().UTC().Truncate(24 * time.Hour).Add(24 * time.Hour)
	time.Sleep(time.Until(day.Add(-10 * time.Minute)))
	if _, err := processes[0].Daily.Acquire(ctx, who, generated.DailyCost{RPD: daily}); err != nil {
		return err
	}
	var running sync.WaitGroup
	for i := range sleepers {
		rng := rand.New(rand.NewPCG(uint64(i), 3))
		running.Go(func() {
			time.Sleep(time.Duration(rng.Int64N(int64(9 * time.Minute))))
			m.call(ctx, processes[i%len(processes)], rng, spread)
		})
	}
	running.Wait()
	return m.err
}

// call is denied once, comes back when the window has ended, and tries until it is admitted or denied again.
func (m *midnightCallers) call(
	ctx context.Context, p *generated.Limiter, rng *rand.Rand, spread time.Duration,
) {
	who := generated.Project{ID: "daily"}
	_, err := p.Daily.Acquire(ctx, who, generated.DailyCost{})
	denied, ok := errors.AsType[*runtime.DeniedError](err)
	if !ok {
		m.end(fmt.Errorf("not denied on the day before: %w", err))
		return
	}
	wait := denied.RetryAfter
	if spread > 0 {
		wait += time.Duration(rng.Int64N(int64(spread)))
	}
	time.Sleep(wait)
	for {
		m.mu.Lock()
		m.seconds[time.Now().Unix()]++
		m.mu.Unlock()
		_, err := p.Daily.Acquire(ctx, who, generated.DailyCost{})
		if m.end(err); !errors.As(err, new(*runtime.ContendedError)) {
			return
		}
	}
}

// end counts a call that ended with err.
func (m *midnightCallers) end(err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err = m.ends.add(err); err != nil && m.err == nil {
		m.err = err
	}
}
