package bucket_test

import (
	"math"
	"math/big"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/sluice-go/sluice/runtime/bucket"
)

func TestAvailable(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b, span := balances().Draw(t, "balance"), spans().Draw(t, "span")
		got := bucket.Available(b, span[0], span[1])
		if want := oracleAvailable(b, integer(span[0]), integer(span[1])); want.Cmp(integer(got)) != 0 {
			t.Fatalf("Available = %d, want %v", got, want)
		}
	})
}

// served reports whether b can serve cost at now + wait + ms, by the oracle.
func served(b bucket.Balance, rf, now, cost int64, wait time.Duration, ms int64) bool {
	at := new(big.Int).Add(integer(now), integer(wait.Milliseconds()+ms))
	return oracleAvailable(b, integer(rf), at).Cmp(integer(cost)) >= 0
}

// TestRetryAfterIsExact: then, and not a millisecond earlier.
func TestRetryAfterIsExact(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b, span := balances().Draw(t, "balance"), spans().Draw(t, "span")
		cost := rapid.OneOf(rapid.SampledFrom([]int64{0, 1, b.Burst}), rapid.Int64Range(0, b.Burst)).Draw(t, "cost")
		rf, now := span[0], span[1]
		wait := bucket.RetryAfter(b, rf, now, cost)
		switch {
		case wait < 0 || wait != math.MaxInt64 && wait%time.Millisecond != 0:
			t.Fatalf("RetryAfter = %d ns, want whole milliseconds", wait)
		case wait == math.MaxInt64: // saturated, beyond 292 years
			if served(b, rf, now, cost, wait, 0) {
				t.Fatalf("RetryAfter = %v, but %d is there by then", wait, cost)
			}
		case !served(b, rf, now, cost, wait, 0):
			t.Fatalf("RetryAfter = %v is early", wait)
		case wait > 0 && served(b, rf, now, cost, wait, -1):
			t.Fatalf("RetryAfter = %v is late", wait)
		}
	})
}

func TestRetryAfter(t *testing.T) {
	second := bucket.Balance{Limit: perMinute(60)} // 1 token/s, empty at rf
	thirds := bucket.Balance{Limit: bucket.Limit{Burst: 10, Refill: 1, Period: 3}}
	for _, test := range []struct {
		name          string
		b             bucket.Balance
		rf, now, cost int64
		want          time.Duration
	}{
		{"empty", second, 1000, 1000, 1000, time.Second},
		{"part of it has passed", second, 1000, 1400, 1000, 600 * time.Millisecond},
		{"there now", second, 1000, 2000, 1000, 0},
		{"nothing asked for", second, 1000, 1000, 0, 0},
		{"in debt", owing(second, 5000), 1000, 1000, 1000, 6 * time.Second},
		{"nothing asked for, in debt", owing(second, 5000), 1000, 1000, 0, 5 * time.Second},
		{"clock behind rf", second, 1000, 400, 1000, 1600 * time.Millisecond},
		{"rounded up", thirds, 0, 0, 1, 3 * time.Millisecond},
		{"less what rf's floor left over", thirds, 2, 2, 1, time.Millisecond},
		{"above the burst", second, 0, 0, 60_001, math.MaxInt64},
		{"above the burst but not above the balance", owing(second, -70_000), 5000, 9000, 65_000, math.MaxInt64},
		{"no refill", bucket.Balance{Limit: bucket.Limit{Burst: 10}}, 0, year2026, 10, math.MaxInt64},
		{"1 a year, for thousands of years", bucket.Balance{Limit: bucket.Limit{Burst: largest, Refill: 1,
			Period: longest}},
			year2026, year2026, 1000, math.MaxInt64},
	} {
		t.Run(test.name, func(t *testing.T) {
			if got := bucket.RetryAfter(test.b, test.rf, test.now, test.cost); got != test.want {
				t.Errorf("RetryAfter = %v, want %v", got, test.want)
			}
		})
	}
}

func owing(b bucket.Balance, debt int64) bucket.Balance {
	b.Tokens = -debt
	return b
}

func TestReadyAtIsExact(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b, rf := balances().Draw(t, "balance"), instants().Draw(t, "rf")
		level := rapid.Int64Range(-largest, 2*largest).Draw(t, "level")
		checkReady(t, b, rf, level)
	})
}

func TestReadyAtOfAnyNumbers(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b := bucket.Balance{
			Limit: wild().Draw(t, "limit"), Tokens: rapid.Int64().Draw(t, "tokens"),
			Ends: rapid.Int64().Draw(t, "ends"),
		}
		checkReady(t, b, rapid.Int64().Draw(t, "rf"), rapid.Int64().Draw(t, "level"))
	})
}

func checkReady(t *rapid.T, b bucket.Balance, rf, level int64) {
	want := int64(math.MaxInt64)
	if at := oracleReady(b, rf, level); at != nil {
		want = saturated(at)
	}
	if got := bucket.ReadyAt(b, rf, level); got != want {
		t.Fatalf("ReadyAt(%+v, %d, %d) = %d, want %d", b, rf, level, got, want)
	}
}
