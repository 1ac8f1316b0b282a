package main

import (
	"context"
	"math/rand/v2"
	"strconv"

	"github.com/sluice-go/sluice/internal/test/bench/generated"
)

// on returns a caller of a project's bucket. The entity's interface value is made once.
func on(process *generated.Limiter, project string) caller {
	var who generated.HotEntity = generated.Project{ID: project}
	return func(ctx context.Context) error {
		_, err := process.Hot.Acquire(ctx, who, generated.HotCost{})
		return err
	}
}

// capacityExperiments are on what an acquire consumes that nobody contends with.
func capacityExperiments(c conditions) []experiment {
	return []experiment{
		steady("1 key x 1 goroutine, per acquire", 1, 1, 1.00, c),
		steady("1000 keys x 16 goroutines, per acquire", 1000, 16, 1.01, c),
	}
}

// steady has goroutines of one process call on keys by chance, of which it has met each before.
func steady(what string, keys, goroutines int, most float64, c conditions) experiment {
	return experiment{
		rows: []row{{what, []figure{
			{name: "units", format: "%.2f units", want: atMost(most)},
			{name: "calls", format: "%.2f calls", want: atMost(most)},
			{name: "reads", format: "%.2f reads", want: atMost(0)},
			{name: "milliseconds", format: "%.1f ms each"},
		}}},
		measure: func(ctx context.Context) ([]float64, error) {
			w, err := newWorld(ctx, c.oneWay)
			if err != nil {
				return nil, err
			}
			process, err := w.process()
			if err != nil {
				return nil, err
			}
			all := make([]caller, keys)
			for i := range all {
				all[i] = on(process, strconv.Itoa(i))
			}
			if err := once(ctx, all); err != nil {
				return nil, err
			}
			random := make([]caller, goroutines)
			for i := range random {
				rng := rand.New(rand.NewPCG(uint64(i), 1))
				random[i] = func(ctx context.Context) error { return all[rng.IntN(keys)](ctx) }
			}
			w.engine.ResetConsumed()
			o, took, err := closedLoop(ctx, random, c.load)
			if err != nil {
				return nil, err
			}
			used, n := w.consumed(), float64(o.admitted)
			return []float64{used.units() / n, float64(used.calls) / n, float64(used.reads) / n,
				took.Seconds() * 1000 * float64(goroutines) / n}, nil
		},
	}
}
