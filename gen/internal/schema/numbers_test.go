package schema

import (
	"math/big"
	"math/bits"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// TestFillsInTime holds fillsInTime to math/big, at its edge too.
func TestFillsInTime(t *testing.T) {
	const most = maxFillDays * int64(day/time.Millisecond)
	rapid.Check(t, func(t *rapid.T) {
		refill := rapid.Int64Range(1, maxTokens).Draw(t, "refill")
		milli := rapid.Int64Range(1, int64(maxPeriod/time.Millisecond)).Draw(t, "milli")
		burst := rapid.Int64Range(1, maxTokens).Draw(t, "burst")
		if hi, lo := bits.Mul64(uint64(refill), uint64(most)); hi < uint64(milli) && rapid.Bool().Draw(t, "edge") {
			edge, _ := bits.Div64(hi, lo, uint64(milli))
			burst = int64(min(edge, maxTokens)) + rapid.Int64Range(0, 1).Draw(t, "over")
		}
		need := new(big.Int).Mul(big.NewInt(burst), big.NewInt(milli))
		have := new(big.Int).Mul(big.NewInt(refill), big.NewInt(most))
		if got, want := fillsInTime(burst, refill, milli), need.Cmp(have) <= 0; got != want {
			t.Fatalf("burst %d, refill %d every %d ms: %v, want %v", burst, refill, milli, got, want)
		}
	})
}
