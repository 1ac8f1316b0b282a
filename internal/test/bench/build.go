package main

import (
	"context"
	"os"

	"github.com/sluice-go/sluice/internal/test/buildcost"
)

// buildExperiment is what a resource adds to a build of its package.
func buildExperiment() experiment {
	return experiment{
		rows: []row{{"compile one more resource of 3 limits for 2 kinds, both stores", []figure{
			{name: "seconds of CPU", format: "%.2f s CPU", want: atMost(0.12)},
			{name: "MB at the peak", format: "%.1f MB", want: atMost(8)},
			{name: "KB compiled", format: "%.0f KB compiled"},
			{name: "lines of EXPRESSIONS.md", format: "%.0f lines of EXPRESSIONS.md", want: atMost(90)},
		}}},
		measure: func(ctx context.Context) (values []float64, err error) {
			dir, err := os.MkdirTemp("", "sluice-build-")
			if err != nil {
				return nil, err
			}
			defer func() {
				if left := os.RemoveAll(dir); err == nil {
					err = left
				}
			}()
			c, err := buildcost.Measure(ctx, dir)
			return []float64{c.CPU.Seconds(), c.Memory / (1 << 20), c.Archive / (1 << 10), c.Review}, err
		},
	}
}
