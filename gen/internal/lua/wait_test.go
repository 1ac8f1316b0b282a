package lua

import (
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// early returns the fault of a script's wait for a bucket of that many tokens, which gets rate tokens a ms.
// It is "" if a call after the wait is admitted, and a call 1 ms earlier is not.
func (s *server) early(t testing.TB, rt *rapid.T, script string, burst, refill float64) string {
	t.Helper()
	buckets := []bucket{{key: "k", missing: true, burst: burst, refill: refill}}
	s.store(t, "", buckets)
	now := int64(1_700_000_000_000)
	whole := func(most float64, what string) float64 {
		return float64(rapid.Int64Range(1, int64(most*1000)).Draw(rt, what)) / 1000
	}
	take := func(at int64, fit bool, cost float64) (refused bool, wait int64) {
		reply := s.run(t, script, "", at, buckets, call{fit: fit, costs: []float64{cost}})
		if reply[2] == 0 {
			return false, 0
		}
		return true, reply[3]
	}
	for range rapid.IntRange(1, 6).Draw(rt, "refusals") {
		for range rapid.IntRange(0, 3).Draw(rt, "before") {
			take(now, false, whole(burst, "taken"))
			now += rapid.Int64Range(0, int64(2*burst/refill)).Draw(rt, "later")
		}
		cost := whole(burst, "cost")
		refused, wait := take(now, true, cost)
		if !refused {
			continue
		}
		if refused, _ := take(now+wait-1, true, cost); !refused {
			return fmt.Sprintf("%v tokens are there 1 ms before the %d ms of the reply", cost, wait)
		}
		if refused, again := take(now+wait, true, cost); refused {
			return fmt.Sprintf("%v tokens are not there after the %d ms of the reply, but %d later", cost, wait, again)
		}
		now += wait
	}
	return ""
}

// TestWait: a call after the wait that a script returns is admitted, and not a millisecond earlier, whatever
// floats do to the rate.
func TestWait(t *testing.T) {
	s := newServer(t)
	script := scriptOf(1, "rpm")
	for _, l := range limits() {
		t.Run(l.name, func(t *testing.T) {
			rapid.Check(t, func(rt *rapid.T) {
				if wrong := s.early(t, rt, script, l.burst, l.refill); wrong != "" {
					rt.Fatal(wrong)
				}
			})
		})
	}
}

type limit struct {
	name          string
	burst, refill float64
}

func limits() []limit {
	return []limit{
		{"1000 per day", 1000, 1000 / 864e5},
		{"100 per minute", 100, 100 / 6e4},
		{"ten million per second", 1e7, 1e4},
		{"seven per 1500 ms", 7, 7 / 1500.0},
		{"a trillion per 3650 days", 1e12, 1e12 / (3650 * 864e5)},
	}
}

// TestWaitSpoilt is the control of TestWait: without the tolerance somebody waits in vain.
func TestWaitSpoilt(t *testing.T) {
	s := newServer(t)
	script := strings.ReplaceAll(scriptOf(1, "rpm"), " + 1e-9 >= ", " >= ")
	histories := rapid.Custom(func(rt *rapid.T) string { return s.early(t, rt, script, 1000, 1000/864e5) })
	for seed := range 500 {
		if histories.Example(seed) != "" {
			return
		}
	}
	t.Error("without the tolerance all waits are right")
}

// TestWaitSum: where 1e-9 is less than the rounding of a balance, the quotient alone is a millisecond short.
func TestWaitSum(t *testing.T) {
	const now, cost = 1_700_000_000_000, 940467555
	s, whole := newServer(t), scriptOf(1, "rpm")
	for script, served := range map[string]bool{whole: true,
		strings.ReplaceAll(whole, "do ms = ms + 1 end", "do break end"): false} {
		b := []bucket{{key: "k", tokens: 66067270.049999997, since: now, burst: 1e9, refill: 1000 / 6e4}}
		s.store(t, "", b)
		try := call{fit: true, costs: []float64{cost}}
		wait := s.run(t, script, "", now, b, try)[3]
		if got := s.run(t, script, "", now+wait, b, try)[2] == 0; got != served {
			t.Errorf("served after %d ms: %v, want %v", wait, got, served)
		}
	}
}
