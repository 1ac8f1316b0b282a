package bucket_test

import (
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/sluice-go/sluice/runtime/bucket"
	"github.com/sluice-go/sluice/runtime/money"
)

func TestCheck(t *testing.T) {
	const (
		most = 1_000_000_000_000 // tokens
		day  = 24 * time.Hour
	)
	refilled := func(l bucket.Limit, milli int64) bucket.Limit {
		l.Refill = milli
		return l
	}
	for _, test := range []struct {
		name  string
		limit bucket.Limit
		want  string
	}{
		{"a minute", bucket.Per(100, time.Minute), ""},
		{"with burst", bucket.Per(100, time.Minute).WithBurst(150), ""},
		{"the smallest", bucket.Limit{Capacity: 1, Burst: 1, Refill: 1, Period: 1}, ""},
		{"the largest", bucket.Per(most, 366*day), ""},
		{"the fastest", bucket.Per(10_000, time.Millisecond), ""},
		{"the slowest", refilled(bucket.Per(3650, day), bucket.Milli), ""},
		{"nothing", bucket.Limit{}, "capacity 0 is not above 0: a limit that admits nothing is none, raise it"},
		{"negative", bucket.Per(-5, time.Minute),
			"capacity -5 is not above 0: a limit that admits nothing is none, raise it"},
		{"no burst", bucket.Per(5, time.Minute).WithBurst(0),
			"burst 0 is not above 0: a limit that admits nothing is none, raise it"},
		{"no refill", refilled(bucket.Per(5, time.Minute), -1),
			"refill -0.001 is not above 0: a limit that admits nothing is none, raise it"},
		{"large capacity", bucket.Per(most+1, 366*day), "capacity 1000000000001 is above 1000000000000: lower it"},
		{"large burst", bucket.Per(most, 366*day).WithBurst(most + 1),
			"burst 1000000000001 is above 1000000000000: lower it"},
		{"large refill", refilled(bucket.Per(most, 366*day), most*bucket.Milli+1),
			"refill 1000000000000.001 is above 1000000000000: lower it"},
		{"no period", bucket.Per(5, 0), "period 0ms is below 1ms: raise it"},
		{"period below 0", bucket.Per(5, -time.Second), "period -1000ms is below 1ms: raise it"},
		{"long period", bucket.Per(5, 366*day+time.Millisecond),
			"period 31622400001ms is above 366 days: shorten it"},
		{"endless period", bucket.Limit{Capacity: 1, Burst: 1, Refill: 1, Period: math.MaxInt64},
			"period 9223372036854775807ms is above 366 days: shorten it"},
		{"burst below capacity", bucket.Per(5, time.Minute).WithBurst(3),
			"burst 3 is below the capacity 5: raise the burst or lower the capacity"},
		{"by less than a token", bucket.Limit{Capacity: 5500, Burst: 5250, Refill: 1000, Period: 1000},
			"burst 5.25 is below the capacity 5.5: raise the burst or lower the capacity"},
		{"too fast", bucket.Per(10_001, time.Millisecond),
			"refill 10001 every 1ms is above 10000000 a second: lower the refill or raise the period"},
		{"too fast by less than a token", refilled(bucket.Per(10_000, time.Millisecond), 10_000_001),
			"refill 10000.001 every 1ms is above 10000000 a second: lower the refill or raise the period"},
		{"too slow", refilled(bucket.Per(3650, day).WithBurst(3651), bucket.Milli),
			"burst 3651 takes more than 3650 days to be full from empty, at 1 every 24h0m0s: raise the refill or " +
				"lower the burst"},
		{"too slow by less than a millisecond", bucket.Limit{Capacity: 1, Burst: 7*315_360_000_000 + 1, Refill: 7,
			Period: 1},
			"burst 2207520000.001 takes more than 3650 days to be full from empty, at 0.007 every 1ms: raise the " +
				"refill or lower the burst"},
		{"slower than int64 holds", refilled(bucket.Per(most, 366*day), 1),
			"burst 1000000000000 takes more than 3650 days to be full from empty, at 0.001 every 8784h0m0s: raise " +
				"the refill or lower the burst"},
	} {
		t.Run(test.name, func(t *testing.T) {
			if got := test.limit.Check(0); got != test.want {
				t.Errorf("%+v: %s\nwant: %s", test.limit, got, test.want)
			}
		})
	}

	const below = "burst 5.5 is below the 6 that a call takes (per_call), so that none could be served: raise it"
	half := bucket.Limit{Capacity: 5500, Burst: 5500, Refill: 1000, Period: 1000}
	if got := half.Check(5); got != "" {
		t.Errorf("for calls that take 5: %s", got)
	}
	if got := half.Check(6); got != below {
		t.Errorf("for calls that take 6: %s\nwant: %s", got, below)
	}
}

// TestCheckMoney: money has bounds and texts of its own, as its millitokens are nano-units.
func TestCheckMoney(t *testing.T) {
	const most = int64(money.Unlimited)
	of := func(nanos int64) bucket.Limit {
		return bucket.Limit{Capacity: nanos, Burst: nanos, Period: (24 * time.Hour).Milliseconds()}
	}
	for _, test := range []struct {
		limit   bucket.Limit
		perCall money.Amount
		want    string
	}{
		{of(1), 0, ""},
		{of(most), 0, ""},
		{of(int64(money.Cent)), money.Cent, ""},
		{of(0), 0, "capacity 0 is not above 0: a limit that admits nothing is none, raise it"},
		{of(-5), 0, "capacity -0.000000005 is not above 0: a limit that admits nothing is none, raise it"},
		{of(most + 1), 0, "capacity 100000000.000000001 is above 100000000: lower it"},
		{of(math.MaxInt64), 0, "capacity is above 100000000: lower it"},
		{of(int64(money.Cent)), money.Cent + 1,
			"burst 0.01 is below the 0.010000001 that a call takes (per_call), so that none could be served: raise " +
				"it"},
	} {
		if got := test.limit.CheckMoney(int64(test.perCall)); got != test.want {
			t.Errorf("%+v: %s\nwant: %s", test.limit, got, test.want)
		}
	}
	if got := of(most).Check(0); got == "" {
		t.Error("as tokens, 10^17 millitokens pass: the bounds are the same")
	}
}

// TestString: what Config's Get, Explain and All return can be read, and balances in test failures as well.
func TestString(t *testing.T) {
	limit := bucket.Per(5, time.Minute)
	named := bucket.Named{"rpm", bucket.Balance{Limit: limit.WithBurst(8), Tokens: -500, Consumed: 120_000}}
	for want, of := range map[string]any{
		"5 per 1m0s":                      limit,
		"5 per 1m0s, burst 8":             limit.WithBurst(8),
		"5 per 1m0s, burst 8, refill 2.5": bucket.Limit{5_000, 8_000, 2_500, 60_000},
		"0 per 0s":                        bucket.Limit{},
		"{5 per 1m0s <nil>}":              struct{ RPM, TPM *bucket.Limit }{RPM: &limit},
		"rpm: -0.5 of 5 per 1m0s, burst 8, consumed 120": named,
		"-0.5 of 5 per 1m0s, burst 8, consumed 120":      named.Balance,
	} {
		if got := fmt.Sprint(of); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}

// TestUnlimited: what limits.yaml has for unlimited passes Check, as it is the largest limit that does.
func TestUnlimited(t *testing.T) {
	const day = 86_400_000
	const most = 1_000_000_000_000 * bucket.Milli
	for _, period := range []int64{1, 60_000, 366 * day} {
		l := bucket.Limit{Capacity: most, Burst: most, Refill: min(most, 10_000_000*period), Period: period}
		if wrong := l.Check(1); !l.Unlimited(false) || wrong != "" {
			t.Errorf("%+v is not unlimited: %s", l, wrong)
		}
		for name, less := range map[string]bucket.Limit{
			"capacity": {Capacity: most - 1, Burst: most, Refill: l.Refill, Period: period},
			"burst":    {Capacity: most, Burst: most - 1, Refill: l.Refill, Period: period},
			"refill":   {Capacity: most, Burst: most, Refill: l.Refill - 1, Period: period},
		} {
			if less.Unlimited(false) {
				t.Errorf("%+v is unlimited, with less %s", less, name)
			}
		}
		if l.Unlimited(true) {
			t.Errorf("%+v is unlimited as money", l)
		}
	}
	budget := bucket.Limit{Capacity: int64(money.Unlimited), Burst: int64(money.Unlimited), Period: day}
	if wrong := budget.CheckMoney(0); !budget.Unlimited(true) || wrong != "" {
		t.Errorf("%+v is not unlimited: %s", budget, wrong)
	}
}
