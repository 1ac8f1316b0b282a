package number

import (
	"math"
	"math/big"
	"regexp"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// TestParse holds Parse to what a number looks like, and to math/big.
func TestParse(t *testing.T) {
	form := regexp.MustCompile(`^(0|[1-9][0-9]*(_[0-9]+)*)$`)
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.OneOf(
			rapid.StringMatching(`[1-9][0-9]{0,3}(_[0-9]{1,3}){0,8}`),
			rapid.StringMatching(`[0-9_]{0,8}`),
			rapid.StringMatching(`[-+]?[0-9_.eExX]{0,6}`),
			rapid.String(),
		).Draw(t, "text")
		n, why := Parse(text, 1, math.MaxInt64)
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
		if got, why := Parse(Grouped(n), 1, math.MaxInt64); got != n || why != "" {
			t.Fatalf("%s is %d: %s", Grouped(n), got, why)
		}
	})
}
