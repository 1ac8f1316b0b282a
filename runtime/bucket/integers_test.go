package bucket_test

import (
	"math"
	"math/big"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/sluice-go/sluice/runtime/bucket"
)

// TestSaturation holds Add, Sub and Mul against math/big, at random and at every pair of edges.
func TestSaturation(t *testing.T) {
	for _, op := range []struct {
		name  string
		ours  func(a, b int64) int64
		exact func(z, a, b *big.Int) *big.Int
	}{
		{"Add", bucket.Add, (*big.Int).Add},
		{"Sub", bucket.Sub, (*big.Int).Sub},
		{"Mul", bucket.Mul, (*big.Int).Mul},
	} {
		t.Run(op.name, func(t *testing.T) {
			check := func(t rapid.TB, a, b int64) {
				want := saturated(op.exact(new(big.Int), integer(a), integer(b)))
				if got := op.ours(a, b); got != want {
					t.Errorf("%s(%d, %d) = %d, want %d", op.name, a, b, got, want)
				}
			}
			edges := []int64{math.MinInt64, math.MinInt64 + 1, math.MinInt64 / 2, -1 << 32, -2, -1, 0, 1, 2, 1 << 32,
				math.MaxInt64 / 2, math.MaxInt64 - 1, math.MaxInt64}
			for _, a := range edges {
				for _, b := range edges {
					check(t, a, b)
				}
			}
			rapid.Check(t, func(t *rapid.T) {
				check(t, rapid.Int64().Draw(t, "a"), rapid.Int64().Draw(t, "b"))
			})
		})
	}
}

func TestPer(t *testing.T) {
	for _, test := range []struct {
		name      string
		got, want bucket.Limit
	}{
		{"60 a minute", bucket.Per(60, time.Minute), bucket.Limit{60_000, 60_000, 60_000, 60_000}},
		{"with burst", bucket.Per(60, time.Minute).WithBurst(90), bucket.Limit{60_000, 90_000, 60_000, 60_000}},
		{"parts of a millisecond", bucket.Per(1, 1_999_999*time.Nanosecond), bucket.Limit{1000, 1000, 1000, 1}},
		{"saturated", bucket.Per(math.MaxInt64, time.Second).WithBurst(math.MinInt64),
			bucket.Limit{math.MaxInt64, math.MinInt64, math.MaxInt64, 1000}},
	} {
		t.Run(test.name, func(t *testing.T) {
			if test.got != test.want {
				t.Errorf("got %+v, want %+v", test.got, test.want)
			}
		})
	}
}

func TestFull(t *testing.T) {
	rpm, tpm := bucket.Per(60, time.Minute), bucket.Per(100, time.Second).WithBurst(500)
	want := []bucket.Balance{{Limit: rpm, Tokens: 60_000}, {Limit: tpm, Tokens: 500_000}}
	if diff := cmp.Diff(want, bucket.Full([]bucket.Limit{rpm, tpm})); diff != "" {
		t.Errorf("Full (-want +got):\n%s", diff)
	}
}
