package main

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/sluice-go/sluice/internal/test/bench/generated"
	"github.com/sluice-go/sluice/runtime"
)

// denialExperiments are on what a denial takes that this process could give by itself.
func denialExperiments(c conditions) []experiment {
	return []experiment{
		denial("local denial in a flood, one bucket", atMost(150), atMost(0), c,
			func(process *generated.Limiter) caller {
				var who generated.DrainedEntity = generated.Project{ID: "1"}
				return func(ctx context.Context) error {
					_, err := process.Drained.Acquire(ctx, who, generated.DrainedCost{})
					return err
				}
			}),
		denial("local denial in a flood, a chain of two", bound{}, bound{}, c,
			func(process *generated.Limiter) caller {
				var who generated.ChainedEntity = generated.User{ID: "1", Project: generated.Project{ID: "1"}}
				return func(ctx context.Context) error {
					_, err := process.Chained.Acquire(ctx, who, generated.ChainedCost{})
					return err
				}
			}),
	}
}

// denial has one goroutine call on buckets that are empty, as fast as it can: those of a millisecond share
// what the first allocates.
func denial(what string, ns, allocs bound, c conditions, on func(*generated.Limiter) caller) experiment {
	return experiment{
		rows: []row{{what, []figure{
			{name: "ns", format: "%.0f ns", want: ns},
			{name: "allocations", format: "%.0f allocs", want: allocs},
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
			call := on(process)
			if err := call(ctx); err != nil { // takes all there is
				return nil, err
			}
			var last error
			refused := func() { last = call(ctx) }
			refused()
			allocs := testing.AllocsPerRun(100, refused)
			perCall := alone(c.timing, refused)
			if _, denied := errors.AsType[*runtime.DeniedError](last); !denied {
				return nil, fmt.Errorf("want a denial: %w", last)
			}
			return []float64{perCall, allocs}, nil
		},
	}
}
