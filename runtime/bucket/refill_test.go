package bucket_test

import (
	"fmt"
	"math"
	"math/big"
	"testing"

	"pgregory.net/rapid"

	"github.com/sluice-go/sluice/runtime/bucket"
)

func TestRefillIsExact(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l, span := limits().Draw(t, "limit"), spans().Draw(t, "span")
		checkRefill(t, l, span[0], span[1])
	})
}

func TestRefillOfAnyNumbers(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		checkRefill(t, wild().Draw(t, "limit"), rapid.Int64().Draw(t, "rf"), rapid.Int64().Draw(t, "now"))
	})
}

func checkRefill(t *rapid.T, l bucket.Limit, rf, now int64) {
	got := bucket.Refill(l, rf, now)
	if want := saturated(oracleRefill(l, integer(rf), integer(now))); got != want {
		t.Fatalf("Refill(%+v, %d, %d) = %d, want %d", l, rf, now, got, want)
	}
}

func TestRefillAtItsEdges(t *testing.T) {
	fast := bucket.Limit{Refill: 10_000_000_000, Period: 1000} // 10^7 tokens/s
	third := bucket.Limit{Refill: 1, Period: 3}
	for _, test := range []struct {
		name    string
		limit   bucket.Limit
		rf, now int64
		want    int64
	}{
		{"ten years at the fastest", fast, year2026, year2026 + tenYears, 10_000_000 * tenYears},
		{"now is rf", fast, year2026, year2026, 0},
		{"now before rf", fast, year2026, year2026 - 1, 0},
		{"below a whole millitoken", third, 0, 2, 0},
		{"the whole millitoken", third, 2, 3, 1},
		{"floored below 0", third, -1, 0, 1},
		{"floored below 0, nothing crossed", third, -3, -1, 0},
		{"across 0", third, -2, 2, 1},
		{"no refill", bucket.Limit{Period: 1}, 0, 1000, 0},
		{"negative refill", bucket.Limit{Refill: -1, Period: 1}, 0, 1000, 0},
		{"no period", bucket.Limit{Refill: 1}, 0, 1000, 0},
		{"all of time saturates", bucket.Limit{Refill: math.MaxInt64, Period: 1}, math.MinInt64, math.MaxInt64,
			math.MaxInt64},
		{"all of time, 1 per ms, saturates", bucket.Limit{Refill: 1, Period: 1}, math.MinInt64, math.MaxInt64,
			math.MaxInt64},
		{"all of time, 1 per 2 ms", bucket.Limit{Refill: 1, Period: 2}, math.MinInt64, math.MaxInt64,
			math.MaxInt64},
		{"all of time, 1 per 3 ms", bucket.Limit{Refill: 1, Period: 3}, math.MinInt64, math.MaxInt64,
			6148914691236517205},
	} {
		t.Run(test.name, func(t *testing.T) {
			if got := bucket.Refill(test.limit, test.rf, test.now); got != test.want {
				t.Errorf("Refill(%+v, %d, %d) = %d, want %d", test.limit, test.rf, test.now, got, test.want)
			}
		})
	}
}

// walk is a limit, and the instants of the writes that claim its refill, ascending.
type walk struct {
	limit bucket.Limit
	at    []int64
}

func walks() *rapid.Generator[walk] {
	return rapid.Custom(func(t *rapid.T) walk {
		w := walk{limit: limits().Draw(t, "limit"), at: []int64{instants().Draw(t, "start")}}
		gaps := rapid.SliceOfN(rapid.OneOf(rapid.Int64Range(0, 20), rapid.Int64Range(0, longest/10)), 1, 50).Draw(t,
			"gaps")
		for _, gap := range gaps {
			w.at = append(w.at, w.at[len(w.at)-1]+gap)
		}
		return w
	})
}

// telescopes returns what is wrong with a refill that is claimed in steps. It should be what one step would
// have claimed, and less than 1 millitoken away from the ideal bucket's.
func telescopes(refill func(l bucket.Limit, rf, now int64) int64, w walk) error {
	sum := new(big.Int)
	for i := 1; i < len(w.at); i++ {
		sum.Add(sum, integer(refill(w.limit, w.at[i-1], w.at[i])))
	}
	first, last := w.at[0], w.at[len(w.at)-1]
	if once := oracleRefill(w.limit, integer(first), integer(last)); sum.Cmp(once) != 0 {
		return fmt.Errorf("%d writes claimed %v, one would have claimed %v", len(w.at)-1, sum, once)
	}
	ideal := new(big.Rat).SetFrac(new(big.Int).Mul(integer(last-first), integer(w.limit.Refill)),
		integer(w.limit.Period))
	ahead := new(big.Rat).Sub(new(big.Rat).SetInt(sum), ideal)
	if one := big.NewRat(1, 1); ahead.Abs(ahead).Cmp(one) >= 0 {
		return fmt.Errorf("claimed %v, the ideal bucket %v", sum, ideal)
	}
	return nil
}

func TestRefillTelescopes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		if err := telescopes(bucket.Refill, walks().Draw(t, "walk")); err != nil {
			t.Fatal(err)
		}
	})
}

// TestSlowBesideFast: 10 an hour and 1000 a second share one rf, which a write moves every few milliseconds.
func TestSlowBesideFast(t *testing.T) {
	const hour = 3_600_000
	slow := bucket.Limit{Refill: 10_000, Period: hour}
	fast := bucket.Limit{Refill: 1_000_000, Period: 1000}
	var slowGot, fastGot int64
	rng := seeded()
	rf := int64(year2026)
	for rf < year2026+hour {
		now := min(rf+1+rng.Int64N(7), year2026+hour)
		slowGot += bucket.Refill(slow, rf, now)
		fastGot += bucket.Refill(fast, rf, now)
		rf = now
	}
	if slowGot != 10_000 || fastGot != 1_000_000*3600 {
		t.Errorf("an hour brought %d and %d millitokens, want 10000 and 3600000000", slowGot, fastGot)
	}
}
