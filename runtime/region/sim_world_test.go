package region_test

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/sluice-go/sluice/internal/test/regionsim"
	"github.com/sluice-go/sluice/runtime/bucket"
)

// window is that of all worlds here.
const window = 10 * time.Second

// names are of up to so many regions.
func names(n int) []string { return []string{"ap", "eu", "sa", "us"}[:n] }

// small is a world of a few buckets that a seed makes: all shapes of traffic, all scarcities.
func small(seed uint64, sync func(w *regionsim.World)) regionsim.World {
	rng := rand.New(rand.NewPCG(seed, 1))
	w := regionsim.World{
		Seed: seed, Names: names(2 + rng.IntN(3)), Window: window, Floor: 5, Entities: 1 + rng.IntN(2), Books: true,
		Settles:  2,
		Duration: 60 * window, Calm: 30 * window,
		Skew: []time.Duration{0, 50 * time.Millisecond, time.Second, window / 4}[rng.IntN(4)],
	}
	for r := range 1 + rng.IntN(2) {
		res := regionsim.Resource{Name: fmt.Sprint("r", r)}
		for l := range 1 + rng.IntN(2) {
			whole := []int64{1000, 100, 60_000, 10_000_000, 7, 2, 1}[rng.IntN(7)]
			limit := bucket.Per(whole, []time.Duration{time.Second, 10 * time.Second, time.Minute}[rng.IntN(3)])
			if rng.IntN(3) == 0 {
				limit = limit.WithBurst(whole + rng.Int64N(whole+1))
			}
			res.Limits = append(res.Limits, regionsim.Limit{Name: []string{"rpm", "tpm"}[l], Whole: limit})
		}
		w.Resources = append(w.Resources, res)
	}
	loads := map[[2]int]regionsim.Load{}
	for e := range w.Entities {
		for r := range w.Resources {
			loads[[2]int{e, r}] = load(rng, len(w.Names))
		}
	}
	w.Load = func(entity, resource int) regionsim.Load { return loads[[2]int{entity, resource}] }
	sync(&w)
	return w
}

// load is a random one.
func load(rng *rand.Rand, regions int) regionsim.Load {
	shapes := regionsim.Shapes()
	l := regionsim.Load{
		Shape: shapes[rng.IntN(len(shapes))], Total: 100 + rng.Int64N(1500),
		Period: window * time.Duration(2+rng.IntN(40)),
	}
	for range regions {
		l.Weights = append(l.Weights, rng.Int64N(10))
	}
	if slices.Max(l.Weights) == 0 {
		l.Weights[0] = 1
	}
	return l
}

// play plays w; where something was violated, it plays it again, for the trace.
func play(t logger, w regionsim.World) *regionsim.Result {
	t.Helper()
	r := w.Run()
	if len(r.Violations) > 0 {
		var trace []string
		w.Trace = func(line string) { trace = append(trace, line) }
		w.Run()
		t.Log(strings.Join(trace[max(0, len(trace)-100):], "\n"))
		t.Logf("seed %d, faults:", w.Seed)
		for _, f := range w.Faults {
			t.Log("  ", f)
		}
	}
	return r
}

// judged returns what is wrong with how a world went that was left in peace at the end.
func judged(r *regionsim.Result) error {
	if len(r.Violations) > 0 {
		return errors.New(r.Violations[0].String())
	}
	if math.Abs(r.Last.Unheld) > 1e-9 {
		return fmt.Errorf("long after the last fault %.6f of all is in nobody's hands", r.Last.Unheld)
	}
	return nil
}

// logger is a *testing.T, or a *rapid.T.
type logger interface {
	Helper()
	Log(...any)
	Logf(string, ...any)
}
