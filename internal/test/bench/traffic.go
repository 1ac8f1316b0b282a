package main

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluice-go/sluice/internal/test/bench/seeds"
	"github.com/sluice-go/sluice/internal/test/traffic"
	"github.com/sluice-go/sluice/runtime/bucket"
	"github.com/sluice-go/sluice/runtime/memdynamo"
	"github.com/sluice-go/sluice/runtime/store"
)

// trafficExperiments offer the loads of package traffic, in virtual time, each with its bars. Open loads
// are also offered with prefetch. A load that is compared is offered to the seeds' limiter and to a
// bare write, too.
func trafficExperiments(c conditions) []experiment {
	var all []experiment
	for _, row := range traffic.Rows() {
		all = append(all, offered(row.Name, row, traffic.Sluice, true, c))
		if row.Prefetched {
			all = append(all, offered(row.Name+": prefetch 200 ms", row, traffic.Prefetched, false, c))
		}
		if row.Compared {
			all = append(all,
				offered(row.Name+": the seeds' Retry", row, openSeeds, false, c),
				offered(row.Name+": a bare write", row, traffic.Bare, false, c))
		}
	}
	return all
}

// offered offers a row's load to a limiter, in each run with other arrivals. If held is false, its figures
// are only stated.
func offered(what string, of traffic.Row, open traffic.Open, held bool, c conditions) experiment {
	figures := make([]figure, len(of.Bars))
	for i, b := range of.Bars {
		f := figure{name: b.Name, format: b.Format, every: true}
		switch {
		case held && b.AtLeast:
			f.want = atLeast(b.Value)
		case held:
			f.want = atMost(b.Value)
		}
		figures[i] = f
	}
	load := of.Load
	load.For = time.Duration(float64(load.For) * c.load.Seconds())
	return experiment{
		rows: []row{{what, figures}},
		measure: func(context.Context) ([]float64, error) {
			var result *traffic.Result
			err := c.bubble(func(ctx context.Context) (err error) {
				result, err = traffic.Run(ctx, load, open)
				return err
			})
			if err != nil {
				return nil, err
			}
			load.Seed++
			values := make([]float64, len(of.Bars))
			for i, b := range of.Bars {
				values[i] = b.Of(result)
			}
			return values, nil
		},
	}
}

// bubble calls a function in a bubble of testing/synctest, where time is virtual.
type bubble func(func(context.Context) error) error

// bubbles returns what opens bubbles in t.
func bubbles(t *testing.T) bubble {
	t.Helper()
	return func(f func(context.Context) error) (err error) {
		synctest.Test(t, func(t *testing.T) { err = f(t.Context()) })
		return err
	}
}

// seedsProcess is a process of the seeds' limiter. Its calls have the deadline that sluice's have.
type seedsProcess struct{ limiter *seeds.Limiter }

// openSeeds starts one.
func openSeeds(engine *memdynamo.Engine, load *traffic.Load) (traffic.Process, error) {
	limit := bucket.Per(load.PerSecond(), time.Second)
	return seedsProcess{seeds.New(engine.Client(), traffic.Table, load.Resource,
		[]seeds.Limit{{Name: "rps", Burst: limit.Burst, Refill: limit.Refill, Period: limit.Period}},
		seeds.TakeStored, time.Now)}, nil
}

// Acquire implements traffic.Process.
func (p seedsProcess) Acquire(ctx context.Context, who traffic.Entity) (traffic.Admission, error) {
	ctx, cancel := context.WithTimeout(ctx, store.DefaultBudget)
	defer cancel()
	return traffic.Recorded, p.limiter.Acquire(ctx, "project-"+who.Project, []int64{bucket.Milli})
}

// Close implements traffic.Process.
func (seedsProcess) Close(context.Context) error { return nil }
