package bucket_test

import (
	"math"
	"testing"

	"github.com/sluice-go/sluice/runtime/bucket"
)

// FuzzTotal: no int64 makes any function panic or leave its range, and where the oracle saturates they do.
func FuzzTotal(f *testing.F) {
	edges := []int64{math.MinInt64, -1, 0, 1, 1000, year2026, math.MaxInt64}
	for _, a := range edges {
		for _, b := range edges {
			f.Add(a, b, b, a, a, b, a)
			f.Add(b, int64(60_000), int64(60_000), a, b, int64(year2026), a)
		}
	}
	f.Fuzz(func(t *testing.T, burst, refill, period, tokens, rf, now, cost int64) {
		b := bucket.Balance{Limit: bucket.Limit{Burst: burst, Refill: refill, Period: period}, Tokens: tokens}
		if got, want := bucket.Refill(b.Limit, rf, now),
			saturated(oracleRefill(b.Limit, integer(rf), integer(now))); got != want {
			t.Errorf("Refill = %d, want %d", got, want)
		}
		available := bucket.Available(b, rf, now)
		if want := saturated(oracleAvailable(b, integer(rf), integer(now))); available != want {
			t.Errorf("Available = %d, want %d", available, want)
		}
		ready := int64(math.MaxInt64)
		if at := oracleReady(b, rf, cost); at != nil {
			ready = saturated(at)
		}
		if got := bucket.ReadyAt(b, rf, cost); got != ready {
			t.Errorf("ReadyAt = %d, want %d", got, ready)
		}
		if wait := bucket.RetryAfter(b, rf, now, cost); wait < 0 || available >= cost && cost <= burst &&
			wait != 0 {
			t.Errorf("RetryAfter = %v, with %d of %d there", wait, available, cost)
		}
		if ttl := bucket.Expiry(b, rf); ttl > year9999 || ttl < rf/1000 && rf/1000 <= year9999 {
			t.Errorf("Expiry = %d, with rf = %d", ttl, rf)
		}
	})
}
