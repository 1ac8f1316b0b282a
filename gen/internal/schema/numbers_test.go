package schema

import (
	"math"
	"math/big"
	"math/bits"
	"regexp"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// TestParseCount holds parseCount to what a number looks like, and to math/big.
func TestParseCount(t *testing.T) {
	form := regexp.MustCompile(`^(0|[1-9][0-9]*(_[0-9]+)*)$`)
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.OneOf(
			rapid.StringMatching(`[1-9][0-9]{0,3}(_[0-9]{1,3}){0,8}`),
			rapid.StringMatching(`[0-9_]{0,8}`),
			rapid.StringMatching(`[-+]?[0-9_.eExX]{0,6}`),
			rapid.String(),
		).Draw(t, "text")
		n, why := parseCount(text, 1, maxTokens)
		if good := form.MatchString(text); good != (why == "") {
			t.Fatalf("%q: form is right: %v, but: %q", text, good, why)
		}
		if why != "" {
			return
		}
		want, _ := new(big.Int).SetString(strings.ReplaceAll(text, "_", ""), 10)
		if !want.IsInt64() {
			want.SetInt64(math.MaxInt64)
		}
		if n != want.Int64() {
			t.Fatalf("%q is %d, want %s", text, n, want)
		}
	})
}

// TestGrouped reads back what messages show.
func TestGrouped(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.Int64Min(0).Draw(t, "n")
		if got, why := parseCount(grouped(n), 1, maxTokens); got != n || why != "" {
			t.Fatalf("%s is %d: %s", grouped(n), got, why)
		}
	})
}

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
