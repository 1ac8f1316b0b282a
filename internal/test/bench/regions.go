package main

import (
	"context"
	"math"
	"runtime"
	"time"

	"github.com/sluice-go/sluice/internal/test/regionscale"
)

// regionExperiments are on one of three regions that divide limits, with windows of 10 s. Four in five of its
// buckets have a stable demand.
func regionExperiments(c conditions) []experiment {
	entities := int(regionscale.Entities * c.load / time.Second)
	return []experiment{regionMonth(entities), regionCycle(entities)}
}

// regionMonth is what a region's sync reads and writes. The simulation has a seed, so all runs are the same
// one, and it is played once.
func regionMonth(entities int) experiment {
	var known []float64
	return experiment{
		rows: []row{{"region of 2,000 entities x 10 resources, a cycle's calls", []figure{
			{name: "read units, percent of a full read's", format: "%.2f%% of a full read", want: atMost(1)},
			{name: "quotas written", format: "%.0f writes", want: atMost(600)},
			{name: "dollars a month", format: "%.2f dollars a month", want: atMost(45)},
		}}},
		measure: func(ctx context.Context) ([]float64, error) {
			if known != nil {
				return known, nil
			}
			var err error
			played := make(chan struct{})
			go func() {
				defer close(played)
				known, err = playMonth(entities)
			}()
			select {
			case <-played:
				return known, err
			case <-ctx.Done():
				return nil, ctx.Err()
			}
		},
	}
}

// playMonth returns the figures of regionMonth. A quota is written for what its own demand does, so fewer
// entities give the same parts of all.
func playMonth(entities int) ([]float64, error) {
	const quotas = regionscale.Entities * regionscale.Resources
	s, err := regionscale.Play(regionscale.World(entities, 0))
	if err != nil {
		return nil, err
	}
	writes := math.Round(s.Writes * quotas) // as docs/regions.md has it
	m, err := regionscale.MonthOf(writes, s.Reads*quotas)
	return []float64{100 * m.PartRead(), writes, m.Dollars()}, err
}

// regionCycle is what a cycle takes of this process. Its garbage, 35 MB, is not collected meanwhile: the heap
// is that of three regions.
func regionCycle(entities int) experiment {
	var c *regionscale.Cycle
	return experiment{
		rows: []row{{"region of 2,000 entities x 10 resources, a cycle in the process", []figure{
			{name: "seconds of CPU", format: "%.2f s CPU", want: atMost(0.3)},
			{name: "thousands of allocations", format: "%.0fk allocs", want: atMost(460)},
		}}},
		measure: func(ctx context.Context) (values []float64, err error) {
			if c == nil {
				if c, err = regionscale.NewCycle(ctx, entities, true); err != nil {
					return nil, err
				}
			}
			if err := c.Others(ctx); err != nil {
				return nil, err
			}
			runtime.GC()
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			began := cpuTime()
			err = c.Own(ctx)
			took := cpuTime() - began
			runtime.ReadMemStats(&after)
			return []float64{took.Seconds(), float64(after.Mallocs-before.Mallocs) / 1000}, err
		},
	}
}
