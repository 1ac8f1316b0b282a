package bucket_test

import (
	"math"
	"testing"

	"pgregory.net/rapid"

	"github.com/sluice-go/sluice/runtime/bucket"
)

const year9999 = 253402300799 // its last second

// TestExpiryIsWhenFull: what is deleted at its ttl was full, even if all of it was spent since.
func TestExpiryIsWhenFull(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b, rf := balances().Draw(t, "balance"), instants().Draw(t, "rf")
		got := bucket.Expiry(b, rf)
		if want := oracleExpiry(b, rf); want.Cmp(integer(got)) != 0 {
			t.Fatalf("Expiry(%+v, %d) = %d, want %v", b, rf, got, want)
		}
		if got == year9999 {
			return
		}
		b.Tokens = min(b.Tokens, 0)
		if level := oracleAvailable(b, integer(rf), integer(got*1000)); level.Cmp(integer(b.Burst)) != 0 {
			t.Fatalf("at ttl %d only %v of %d are there", got, level, b.Burst)
		}
	})
}

func TestExpiry(t *testing.T) {
	limit := perMinute(60) // full from empty in a minute
	for _, test := range []struct {
		name string
		b    bucket.Balance
		rf   int64
		want int64
	}{
		{"full counts as empty", bucket.Balance{Limit: limit, Tokens: 60_000}, 1_000_000, 1120},
		{"empty", bucket.Balance{Limit: limit}, 1_000_000, 1120},
		{"debt counts", bucket.Balance{Limit: limit, Tokens: -60_000}, 1_000_000, 1240},
		{"a millisecond more is a second more", bucket.Balance{Limit: limit}, 1_000_001, 1121},
		{"negative rf is rounded up too", bucket.Balance{Limit: limit}, -120_500, 0},
		{"more burst takes longer", bucket.Balance{Limit: limit.WithBurst(120)}, 0, 240},
		{"no refill", bucket.Balance{Limit: bucket.Limit{Burst: 1}}, year2026, year9999},
		{"the last second", bucket.Balance{}, year9999 * 1000, year9999},
		{"the last second but one", bucket.Balance{}, year9999*1000 - 1000, year9999 - 1},
		{"a millisecond after the last second", bucket.Balance{}, year9999*1000 + 1, year9999},
		{"far debt", bucket.Balance{Limit: limit, Tokens: math.MinInt64}, year2026, year9999},
	} {
		t.Run(test.name, func(t *testing.T) {
			if got := bucket.Expiry(test.b, test.rf); got != test.want {
				t.Errorf("Expiry = %d, want %d", got, test.want)
			}
		})
	}
}
