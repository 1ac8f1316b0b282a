package money_test

import (
	"errors"
	"math"
	"math/big"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/sluice-go/sluice/runtime/bucket"
	"github.com/sluice-go/sluice/runtime/internal/tokens"
	"github.com/sluice-go/sluice/runtime/money"
	"github.com/sluice-go/sluice/runtime/store"
)

// part is a count of units, and their price.
type part struct{ count, price int64 }

// total adds up parts as generated code does.
func total(parts []part) money.Amount {
	var sum money.Total
	for _, p := range parts {
		sum = sum.Add(p.count, money.Price(p.price))
	}
	return sum.Amount()
}

// exact is the sum of parts in pico-units, without bounds.
func exact(parts []part) *big.Int {
	sum := new(big.Int)
	for _, p := range parts {
		sum.Add(sum, new(big.Int).Mul(big.NewInt(p.count), big.NewInt(p.price)))
	}
	return sum
}

// oracle is what total should return: the exact sum, rounded up once, or an amount that is refused.
func oracle(parts []part) money.Amount {
	for _, p := range parts {
		if p.count < 0 || p.price < 0 {
			return math.MinInt64
		}
	}
	nanos := exact(parts)
	nanos.Add(nanos, big.NewInt(999)).Quo(nanos, big.NewInt(1000))
	if nanos.Cmp(big.NewInt(int64(money.Unlimited))) > 0 {
		return math.MaxInt64
	}
	return money.Amount(nanos.Int64())
}

// TestTotal: sums at the bounds, written out.
func TestTotal(t *testing.T) {
	const most = int64(money.Unlimited)
	for _, test := range []struct {
		name  string
		parts []part
		want  money.Amount
	}{
		{"nothing", nil, 0},
		{"free", []part{{5, 0}, {0, 5}}, 0},
		{"a call at 0.01", []part{{1, 10_000_000_000}}, money.Cent},
		{"2.50/1M and 10/1M", []part{{1_200, 2_500_000}, {345, 10_000_000}}, 6_450 * money.Micro},
		{"a trillionth", []part{{1, 1}}, money.Nano},
		{"rounded up once", []part{{1, 400}, {1, 400}, {1, 200}}, money.Nano},
		{"rounded up once, behind the unit", []part{{1, 400}, {1, 400}, {1, 201}}, 2 * money.Nano},
		{"the most of 64 bits", []part{{math.MaxInt64, 2}, {1, 1}}, 18_446_744_073_709_552},
		{"the first of 65 bits", []part{{math.MaxInt64, 2}, {2, 1}}, 18_446_744_073_709_552},
		{"the largest", []part{{most, 1000}}, money.Unlimited},
		{"the largest, rounded up", []part{{most - 1, 1000}, {1, 1}}, money.Unlimited},
		{"a trillionth above the largest", []part{{most, 1000}, {1, 1}}, math.MaxInt64},
		{"a quotient above 64 bits", []part{{math.MaxInt64, 4000}, {math.MaxInt64, 4000}}, math.MaxInt64},
		{"all bits", []part{{math.MaxInt64, math.MaxInt64}}, math.MaxInt64},
		{"a sum that would be 4 in 128 bits", []part{{math.MaxInt64, math.MaxInt64}, {math.MaxInt64, math.MaxInt64},
			{math.MaxInt64, math.MaxInt64}, {math.MaxInt64, math.MaxInt64}, {1 << 62, 16}}, math.MaxInt64},
		{"a negative count", []part{{-1, 1_000_000}}, math.MinInt64},
		{"a negative count that costs nothing", []part{{-1, 0}}, math.MinInt64},
		{"a negative count that others make up for", []part{{-1, 1_000}, {5, 1_000}}, math.MinInt64},
		{"a negative count of a large sum", []part{{math.MaxInt64, math.MaxInt64}, {-1, 1}}, math.MinInt64},
		{"a negative price", []part{{1, -1}}, math.MinInt64},
		{"two negative numbers", []part{{math.MinInt64, math.MinInt64}}, math.MinInt64},
	} {
		t.Run(test.name, func(t *testing.T) {
			if got := total(test.parts); got != test.want || oracle(test.parts) != test.want {
				t.Errorf("got %d, want %d, and the oracle has %d", got, test.want, oracle(test.parts))
			}
		})
	}
}

// TestTotalExact holds sums against math/big, near each bound.
func TestTotalExact(t *testing.T) {
	seen := map[string]int{}
	rapid.Check(t, func(t *rapid.T) {
		list := rapid.SliceOfN(rapid.Custom(drawPart), 0, 8).Draw(t, "parts")
		got, want := total(list), oracle(list)
		if got != want {
			t.Errorf("%d, want %d", got, want)
		}
		switch {
		case want == math.MaxInt64:
			seen["too large"]++
		case want == math.MinInt64:
			seen["negative"]++
		case exact(list).BitLen() > 64:
			seen["above 64 bits"]++
		case want > 0:
			seen["small"]++
		}
	})
	for _, class := range []string{"too large", "negative", "above 64 bits", "small"} {
		if seen[class] < 10 {
			t.Errorf("only %d sums are %s: %v", seen[class], class, seen)
		}
	}
}

// TestMonotone: neither another usage nor another unit makes a call cheaper, and saturation is no exception.
func TestMonotone(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		list := rapid.SliceOfN(rapid.Custom(positivePart), 1, 6).Draw(t, "parts")
		least := total(list)
		if got := total(slices.Concat(list, []part{positivePart(t)})); got < least {
			t.Errorf("%d with another usage, %d without", got, least)
		}
		list[0].count = bucket.Add(list[0].count, 1) // the largest count stays
		if got := total(list); got < least {
			t.Errorf("%d with another unit, %d without", got, least)
		}
	})
}

// TestSaturatedIsRefused: no call is admitted for an amount that Total could not count.
func TestSaturatedIsRefused(t *testing.T) {
	spec := &store.Spec{Resource: "gpt-4", Limits: []string{"month"}, Kinds: []store.Kind{{Name: "user"}}}
	for reason, parts := range map[string][]part{
		"comes from a negative count of a usage: pass counts from 0 up": {{-1, 1}, {5, 1_000}},
		"is above 1000000000000, the most that one call can take":       {{math.MaxInt64, math.MaxInt64}},
		"": {{1, 1_000}}, // control: an amount that fits
	} {
		_, err := tokens.Scale(spec, 0, true, []int64{int64(total(parts))})
		e, ok := errors.AsType[*store.InvalidError](err)
		if (reason == "") != (err == nil) || reason != "" && (!ok || e.Reason != reason) {
			t.Errorf("%v: %v, want %q", parts, err, reason)
		}
	}
}

// drawPart draws any part, often one that is not negative, or almost the largest.
func drawPart(t *rapid.T) part {
	switch rapid.IntRange(0, 15).Draw(t, "kind") {
	case 0:
		return part{rapid.Int64().Draw(t, "count"), rapid.Int64().Draw(t, "price")}
	case 1:
		most := int64(money.Unlimited)
		return part{rapid.Int64Range(most/4, most+most/16).Draw(t, "count"), 1000}
	}
	return positivePart(t)
}

// positivePart draws numbers of all lengths, so that sums meet each bound.
func positivePart(t *rapid.T) part {
	number := func(name string) int64 {
		return rapid.Int64Range(0, math.MaxInt64).Draw(t, name) >> rapid.IntRange(0, 62).Draw(t, name+" bits")
	}
	return part{number("count"), number("price")}
}

// TestPriceText: prices are written as limits.yaml has them.
func TestPriceText(t *testing.T) {
	for price, want := range map[money.Price]string{
		2_500_000: "2.5/1M", 250_000: "0.25/1M", 10_000_000: "10/1M", 1: "0.000001/1M", 0: "0",
		999_999_999: "999.999999/1M", 1_000_000_000: "0.001", 10_000_000_000: "0.01",
		1_000_000_000_000_000_001: "1000000.000000000001", -250_000: "-0.25/1M", -1_000_000_000: "-0.001",
	} {
		if got := price.String(); got != want {
			t.Errorf("%d is %q, want %q", int64(price), got, want)
		}
	}
}
