package bucket_test

import (
	"math"
	"testing"
	"time"

	"github.com/sluice-go/sluice/runtime/bucket"
	"github.com/sluice-go/sluice/runtime/money"
)

// never is the calendar of a prepaid limit.
func never() *bucket.Calendar { return &bucket.Calendar{Unit: bucket.Never} }

// prepaid returns a prepaid limit that begins with so many tokens.
func prepaid(capacity int64) bucket.Limit {
	return bucket.InWindows(capacity, time.Duration(bucket.Never.Nominal())*time.Millisecond)
}

// TestNever: a prepaid limit has a window from its first write on, and no write claims another one. Control:
// a window of a day opens with the first cost.
func TestNever(t *testing.T) {
	const now = int64(1_800_000_000_000)
	daily := &bucket.Calendar{Unit: bucket.Day}
	for _, cost := range []int64{0, 5} {
		if got := never().First(cost, now); got != 253_402_300_799_000 {
			t.Errorf("the first write, of cost %d, opens a window until %d", cost, got)
		}
		if got, want := daily.First(cost, now) != 0, cost > 0; got != want {
			t.Errorf("control: cost %d opens a window: %t", cost, got)
		}
	}
	if next := never().Next(now, 3); next != nil {
		t.Errorf("boundaries %v", next)
	}
	limit := prepaid(5)
	if !limit.Prepaid() || !limit.Windowed() || bucket.InWindows(5, 366*24*time.Hour).Prepaid() {
		t.Errorf("%v is prepaid: %t", limit, limit.Prepaid())
	}
	b := bucket.Balance{Limit: limit, Tokens: 3 * bucket.Milli, Ends: bucket.NeverEnds}
	if s, ok := b.Step(never(), 4000, 4000, 0, now+1_000_000); ok || s.Fill != 0 {
		t.Errorf("a cost above the balance: %+v, %t", s, ok)
	}
	if got := bucket.Expiry(b, now); got != bucket.LastExpiry {
		t.Errorf("its item expires at %d", got)
	}
	if got := limit.String(); got != "5 prepaid" {
		t.Errorf("it is written %s", got)
	}
	if got := never().String(); got != "never" {
		t.Errorf("its calendar is written %s", got)
	}
}

// TestNeverReshape: another capacity keeps what was used and granted, and the window.
func TestNeverReshape(t *testing.T) {
	const now = int64(1_800_000_000_000)
	b := bucket.Balance{Limit: prepaid(5), Tokens: 40 * bucket.Milli, Ends: bucket.NeverEnds}
	for to, want := range map[int64]int64{0: 35, 5: 40, 12: 47} {
		s, ok := b.Reshape(never(), prepaid(to), 0, now)
		if got := (b.Tokens + s.Fill) / bucket.Milli; !ok || got != want || s.Ends != bucket.NeverEnds {
			t.Errorf("a capacity of %d leaves %d until %d, want %d", to, got, s.Ends, want)
		}
	}
}

// TestNeverRetryAfter: time brings a prepaid limit nothing, and no cost is too large for it. A grant may lift
// a window above the burst, which then serves more than that.
func TestNeverRetryAfter(t *testing.T) {
	const now, day = int64(1_800_000_000_000), int64(24 * time.Hour / time.Millisecond)
	credits := bucket.Balance{Limit: prepaid(0), Tokens: 3000, Ends: bucket.NeverEnds}
	granted := bucket.Balance{Limit: bucket.InWindows(2, 24*time.Hour), Tokens: 7000, Ends: now + day}
	for name, test := range map[string]struct {
		b          bucket.Balance
		cost, at   int64
		retryAfter time.Duration
		tooLarge   bool
	}{
		"credits that suffice":   {credits, 3000, now, 0, false},
		"too few credits":        {credits, 3001, now, math.MaxInt64, false},
		"granted, in its window": {granted, 7000, now, 0, false},
		"above it":               {granted, 7001, now, math.MaxInt64, true},
		"within the burst":       {granted, 2000, now + day, 0, false},
		"granted, window over":   {granted, 7000, now + day, math.MaxInt64, true},
		"used up":                {bucket.Balance{Limit: granted.Limit, Ends: now + 5}, 2000, now, 5e6, false},
	} {
		if got := bucket.RetryAfter(test.b, now, test.at, test.cost); got != test.retryAfter {
			t.Errorf("%s: retry after %d, want %d", name, got, test.retryAfter)
		}
		if got := test.b.TooLarge(test.cost, test.at); got != test.tooLarge {
			t.Errorf("%s: too large %t", name, got)
		}
	}
}

// TestNeverCheck: a prepaid limit may begin with nothing, of money too, and may take more per call than that.
// Control: a limit with windows that end may not.
func TestNeverCheck(t *testing.T) {
	daily := bucket.InWindows(0, 24*time.Hour)
	for name, got := range map[string]string{
		"tokens": prepaid(0).Check(7), "money": prepaid(0).CheckMoney(int64(money.Unit)),
		"some": prepaid(3).Check(7),
	} {
		if got != "" {
			t.Errorf("%s: %s", name, got)
		}
	}
	for name, got := range map[string]string{
		"window": daily.Check(0), "negative": prepaid(-1).Check(0), "too many": prepaid(2e12).Check(0),
		"money": daily.CheckMoney(0),
	} {
		if got == "" {
			t.Errorf("control: %s passes", name)
		}
	}
}
