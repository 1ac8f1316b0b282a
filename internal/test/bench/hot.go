package main

import (
	"context"
	"fmt"
	"time"

	"github.com/sluice-go/sluice/internal/test/bench/generated"
	"github.com/sluice-go/sluice/internal/test/bench/seeds"
	"github.com/sluice-go/sluice/runtime/bucket"
)

// hotExperiments are on one bucket that many want.
func hotExperiments(c conditions) []experiment {
	return []experiment{
		againstSeeds(16, 0.15, 8, c),
		againstSeeds(64, 0.05, 25, c),
		crowd("1 hot key x 64 over 4 processes, per acquire", 4, 16, 0.2, c),
		crowd("1 hot key x 16 processes of 1 goroutine, per acquire", 16, 1, 1.3, c),
	}
}

// againstSeeds has goroutines of one process call on one bucket, in turns with those of the seeds' limiter.
func againstSeeds(goroutines int, units, faster float64, c conditions) experiment {
	what := fmt.Sprintf("1 hot key x %d in one process", goroutines)
	return experiment{
		rows: []row{
			{what + ", per acquire", []figure{
				{name: "units", format: "%.3f units", want: atMost(units)},
				{name: "acquires per second", format: "%.0f/s"},
			}},
			{what + ", acquires/s vs read-then-write", []figure{
				{name: "times faster", format: "%.1fx", want: atLeast(faster)},
				{name: "its acquires per second", format: "%.0f/s theirs"},
			}},
			{what + ", acquires/s vs that with the seeds' Retry", []figure{
				{name: "times faster", format: "%.1fx"},
				{name: "its acquires per second", format: "%.0f/s theirs"},
			}},
		},
		measure: func(ctx context.Context) ([]float64, error) {
			w, ours, err := crowded(ctx, 1, goroutines, c.oneWay)
			if err != nil {
				return nil, err
			}
			again, err := seedsCallers(ctx, seeds.ReadAgain, goroutines, c.oneWay)
			if err != nil {
				return nil, err
			}
			stored, err := seedsCallers(ctx, seeds.TakeStored, goroutines, c.oneWay)
			if err != nil {
				return nil, err
			}
			rates, first, err := alternate(ctx, c.load, ours, again, stored)
			if err != nil {
				return nil, err
			}
			units := w.consumed().units() / float64(first.admitted)
			return []float64{units, rates[0], rates[0] / rates[1], rates[1], rates[0] / rates[2], rates[2]}, nil
		},
	}
}

// alternate runs each loop in turns, in shares of d. It returns how often each admitted per second, and how
// the calls of the first ended.
func alternate(
	ctx context.Context, d time.Duration, loops ...[]caller,
) (rates []float64, first outcome, err error) {
	const turns = 2
	admitted, took := make([]int, len(loops)), make([]time.Duration, len(loops))
	for range turns {
		for i, callers := range loops {
			o, t, err := closedLoop(ctx, callers, d/turns)
			if err != nil {
				return nil, first, err
			}
			if i == 0 {
				first = first.plus(o)
			}
			admitted[i] += o.admitted
			took[i] += t
		}
	}
	for i := range loops {
		rates = append(rates, float64(admitted[i])/took[i].Seconds())
	}
	return rates, first, nil
}

// crowd has goroutines of some processes call on one bucket.
func crowd(what string, processes, goroutines int, units float64, c conditions) experiment {
	return experiment{
		rows: []row{{what, []figure{
			{name: "units", format: "%.3f units", want: atMost(units)},
			{name: "contended, percent", format: "%.1f%% gave up"},
			{name: "milliseconds", format: "%.1f ms each"},
		}}},
		measure: func(ctx context.Context) ([]float64, error) {
			w, callers, err := crowded(ctx, processes, goroutines, c.oneWay)
			if err != nil {
				return nil, err
			}
			o, took, err := closedLoop(ctx, callers, c.load)
			if err != nil {
				return nil, err
			}
			admitted, gaveUp := float64(o.admitted), float64(o.contended)
			return []float64{w.consumed().units() / admitted, 100 * gaveUp / (admitted + gaveUp),
				took.Seconds() * 1000 * float64(len(callers)) / admitted}, nil
		},
	}
}

// crowded returns a world and callers of one bucket in it, so many goroutines of so many processes, who have
// all met it.
func crowded(ctx context.Context, processes, goroutines int, oneWay time.Duration) (*world, []caller, error) {
	w, err := newWorld(ctx, oneWay)
	if err != nil {
		return nil, nil, err
	}
	var callers []caller
	for range processes {
		process, err := w.process()
		if err != nil {
			return nil, nil, err
		}
		first := on(process, "hot")
		if err := first(ctx); err != nil {
			return nil, nil, err
		}
		for range goroutines {
			callers = append(callers, on(process, "hot"))
		}
	}
	w.engine.ResetConsumed()
	return w, callers, nil
}

// seedsCallers returns callers of one bucket by the seeds' limiter, in a world of their own.
func seedsCallers(
	ctx context.Context, lost seeds.Lost, goroutines int, oneWay time.Duration,
) ([]caller, error) {
	w, err := newWorld(ctx, oneWay)
	if err != nil {
		return nil, err
	}
	limit := bucket.Per(100_000, time.Second) // resource hot's
	l := seeds.New(w.engine.Client(), table, generated.Hot,
		[]seeds.Limit{{
			Name: generated.HotRPS.String(), Burst: limit.Burst, Refill: limit.Refill, Period: limit.Period,
		}},
		lost, time.Now)
	cost := []int64{bucket.Milli}
	call := func(ctx context.Context) error { return l.Acquire(ctx, "project-hot", cost) }
	callers := make([]caller, goroutines)
	for i := range callers {
		callers[i] = call
	}
	return callers, call(ctx)
}
