package lua

import (
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// early says how a script's waits are wrong for a bucket of so many tokens, by so many of which a ms: "" if whoever waits is
// served, and nobody who waits 1 ms less. Before each refusal calls take what they like, when they like.
func (s *server) early(t *rapid.T, tb testing.TB, script string, burst, refill float64) string {
	buckets := []bucket{{key: "k", missing: true, burst: burst, refill: refill}}
	s.store("", buckets)
	now := int64(1_700_000_000_000)
	whole := func(most float64, what string) float64 {
		return float64(rapid.Int64Range(1, int64(most*1000)).Draw(t, what)) / 1000
	}
	take := func(at int64, fit bool, cost float64) (refused bool, wait int64) {
		reply := s.run(tb, script, "", at, buckets, call{fit: fit, costs: []float64{cost}})
		if reply[2] == 0 {
			return false, 0
		}
		return true, reply[3]
	}
	for range rapid.IntRange(1, 6).Draw(t, "refusals") {
		for range rapid.IntRange(0, 3).Draw(t, "before") {
			take(now, false, whole(burst, "taken"))
			now += rapid.Int64Range(0, int64(2*burst/refill)).Draw(t, "later")
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

// TestWait: whoever waits as long as a script says is served, and not a millisecond earlier, whatever floats do to the rate.
func TestWait(t *testing.T) {
	s := newServer(t)
	script := scriptOf(1, "rpm")
	for _, l := range limits() {
		t.Run(l.name, func(t *testing.T) {
			rapid.Check(t, func(rt *rapid.T) {
				if wrong := s.early(rt, t, script, l.burst, l.refill); wrong != "" {
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
		{"1000 per minute, burst a billion", 1e9, 1000 / 6e4},
		{"a trillion per 3650 days", 1e12, 1e12 / (3650 * 864e5)},
	}
}

// TestWaitSpoilt is the control of TestWait: without the tolerance, or without the sum, somebody waits in vain.
func TestWaitSpoilt(t *testing.T) {
	s := newServer(t)
	for part, instead := range map[string]string{" + 1e-9 >= ": " >= ", "do ms = ms + 1 end": "do break end"} {
		script := strings.ReplaceAll(scriptOf(1, "rpm"), part, instead)
		histories := rapid.Custom(func(rt *rapid.T) (wrong string) {
			for _, l := range limits() {
				wrong += s.early(rt, t, script, l.burst, l.refill)
			}
			return wrong
		})
		caught := 0
		for seed := 0; seed < 200; seed++ {
			if histories.Example(seed) != "" {
				caught++
			}
		}
		t.Log(part, caught)
		if caught == 0 {
			t.Errorf("without %q all waits are right", part)
		}
	}
}
