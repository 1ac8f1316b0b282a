package perlimit

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/sluice-go/sluice/runtime/bucket"
)

// TestCarriedWithinAMillitoken: a balance that was carried over is that of an item never carried over, or one
// millitoken less. It stays so, however often the bucket is written later, since its own refill telescopes.
func TestCarriedWithinAMillitoken(t *testing.T) {
	lower, equal := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		l := bucket.Limit{
			Refill: rapid.Int64Range(1, 1_000_000).Draw(t, "refill"),
			Period: rapid.Int64Range(1, 86_400_000).Draw(t, "period"),
			Burst:  1 << 60, // never full
		}
		refilled := rapid.Int64Range(1_700_000_000_000, 1_800_000_000_000).Draw(t, "refilled")
		now := refilled + rapid.Int64Range(0, 1_000_000_000).Draw(t, "until it is carried over")
		later := now + rapid.Int64Range(0, 1_000_000_000).Draw(t, "later")
		item := Item{Balance: bucket.Balance{Limit: l, Tokens: -40_000_000}, Refilled: refilled}
		never := bucket.Available(item.Balance, refilled, later)
		carried := bucket.Available(bucket.Balance{Limit: l, Tokens: item.At(now)}, now, later)
		switch carried - never {
		case 0:
			equal++
		case -1:
			lower++
		default:
			t.Fatalf("%d carried over, %d without", carried, never)
		}
	})
	if lower == 0 || equal == 0 { // else the bound is not the least one
		t.Errorf("%d balances were a millitoken lower, %d were equal", lower, equal)
	}
}
