package main

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/sluice-go/sluice/internal/test/bench/generated"
	"github.com/sluice-go/sluice/runtime"
)

// hitExperiments are on what an acquire takes whose tokens were prefetched. BenchmarkTake of the runtime has
// the part of it that takes from the pool.
func hitExperiments(c conditions) []experiment {
	return []experiment{{
		rows: []row{{"acquire of prefetched tokens", []figure{
			{name: "times a local denial", format: "%.1fx a local denial", want: atMost(8)},
			{name: "ns", format: "%.0f ns"},
			{name: "allocations", format: "%.0f allocs", want: atMost(3)},
			{name: "percent with a request", format: "%.2f%% with a request", want: atMost(0.1)},
		}}},
		measure: func(ctx context.Context) ([]float64, error) {
			w, err := newWorld(ctx, 0)
			if err != nil {
				return nil, err
			}
			process, err := w.process()
			if err != nil {
				return nil, err
			}
			var who generated.PooledEntity = generated.Project{ID: "1"}
			var empty generated.DrainedEntity = generated.Project{ID: "1"}
			calls, wrong := 0, error(nil)
			hit := func() {
				calls++
				if _, err := process.Pooled.Acquire(ctx, who, generated.PooledCost{}); err != nil {
					wrong = err
				}
			}
			var last error
			refused := func() { _, last = process.Drained.Acquire(ctx, empty, generated.DrainedCost{}) }
			refused()
			for range 200_000 { // so that the process knows the demand
				hit()
			}
			allocs := testing.AllocsPerRun(100, hit)
			w.engine.ResetConsumed()
			calls = 0
			times, perDenial := inTurns(c.timing, hit, refused)
			if _, denied := errors.AsType[*runtime.DeniedError](last); !denied || wrong != nil {
				return nil, fmt.Errorf("want a denial, and no error: %w", errors.Join(last, wrong))
			}
			return []float64{times, times * perDenial, allocs, 100 * w.consumed().units() / float64(calls)}, nil
		},
	}}
}
