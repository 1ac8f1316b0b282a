package traffic_test

import (
	"math"
	"testing"
	"time"

	"github.com/sluice-go/sluice/internal/test/traffic"
)

// TestFigures: the second of two processes got half of its calls admitted, the first all.
func TestFigures(t *testing.T) {
	r := traffic.Result{
		Load: traffic.Load{OneWay: time.Millisecond}, Calls: 8, Errors: map[string]int{"lost": 1, "denied": 1},
		Processes: []traffic.Tally{{Calls: 4, Admitted: 4}, {Calls: 4, Admitted: 2}}, Elapsed: 2 * time.Second,
		Requests: 12, WriteUnits: 9, ReadUnits: 5, Admitted: [3]int{traffic.Recorded: 5, traffic.ByLocal: 1},
	}
	for i := range 100 {
		r.Took = append(r.Took, time.Duration(i)*time.Millisecond)
	}
	for name, figure := range map[string]struct{ got, want float64 }{
		"failed":            {r.Failed(), 25},
		"p50":               {r.P50(), 25},
		"p99":               {r.P99(), 49.5},
		"p99 in ms":         {r.P99ms(), 99},
		"p99 over bare":     {r.P99OverBare(), 49.5},
		"units":             {r.Units(), 2},
		"requests per call": {r.RequestsPerCall(), 1.5},
		"per second":        {r.PerSecond(), 2.5},
		"slowest":           {r.Slowest(), 2. / 3},
		"Jain":              {r.Jain(), 0.9},
		"unrecorded":        {r.Unrecorded(), 1},
		"by allow":          {r.AdmittedByAllow(), 0},
	} {
		if math.Abs(figure.got-figure.want) > 1e-9 {
			t.Errorf("%s is %v, want %v", name, figure.got, figure.want)
		}
	}
}
