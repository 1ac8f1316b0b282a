package emit_test

import (
	"math"
	"testing"

	budgets "github.com/sluice-go/sluice/gen/testdata/golden/money/out"
	"github.com/sluice-go/sluice/internal/test/longform"
	"github.com/sluice-go/sluice/runtime/money"
)

var costSink budgets.GPT4Cost

// BenchmarkUsageCost measures Cost of a resource with four prices. The goal is 20 ns.
func BenchmarkUsageCost(b *testing.B) {
	u := budgets.GPT4Usage{Input: 1_200, Cached: 800, Output: 345, Call: 1}
	b.ReportAllocs()
	for b.Loop() {
		u.Output++
		costSink = u.Cost()
	}
}

// TestUsageCost: Cost adds up tokens and prices, saturates, and allocates nothing.
func TestUsageCost(t *testing.T) {
	for _, test := range []struct {
		u   budgets.GPT4Usage
		tpm int64
		usd money.Amount
	}{
		{budgets.GPT4Usage{}, 0, 0},
		{budgets.GPT4Usage{Call: 1}, 0, 4 * money.Unit / 1000},
		{budgets.GPT4Usage{Cached: 1}, 0, 251 * money.Nano},                                // 250.009
		{budgets.GPT4Usage{Input: 1, Cached: 1, Output: 1}, 2, 12_751 * money.Nano},        // 12,750.017
		{budgets.GPT4Usage{Cached: 1_000, Image: 9}, 0, 250_009 * money.Nano},              // exact
		{budgets.GPT4Usage{Input: -1, Output: 5}, math.MinInt64, math.MinInt64},            // takes from nothing
		{budgets.GPT4Usage{Image: -1}, 0, math.MinInt64},                                   // without a price
		{budgets.GPT4Usage{Output: math.MaxInt64}, math.MaxInt64, math.MaxInt64},           // beyond 10^17
		{budgets.GPT4Usage{Input: math.MaxInt64, Output: 1}, math.MaxInt64, math.MaxInt64}, // of tokens too
	} {
		want := budgets.GPT4Cost{TPM: test.tpm, Day: test.usd, Month: test.usd}
		if got := test.u.Cost(); got != want {
			t.Errorf("%+v costs %v, want %v", test.u, got, want)
		}
	}
	longform.NoRace(t, "the race detector allocates")
	u := budgets.GPT4Usage{Input: 1_200, Cached: 800, Output: 345, Call: 1}
	if n := testing.AllocsPerRun(100, func() { costSink = u.Cost() }); n != 0 {
		t.Errorf("%v allocations, want none", n)
	}
}

// TestCountsAlone: a resource without money counts its usage.
func TestCountsAlone(t *testing.T) {
	if got := (budgets.TokensUsage{Input: 3, Output: 4}).Cost(); got.TPM != 7 {
		t.Errorf("%v, want 7", got)
	}
}
