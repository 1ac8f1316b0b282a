package bucket_test

import (
	"testing"
	"time"

	"github.com/sluice-go/sluice/runtime/bucket"
)

// TestStepByStoredLength: a binary whose windows have another length than the stored limit opens one of the
// stored length. Control: with the same length, the calendar says when the window ends.
func TestStepByStoredLength(t *testing.T) {
	const hour = int64(time.Hour / time.Millisecond)
	monthly, daily := &bucket.Calendar{Unit: bucket.Month, Date: 1}, &bucket.Calendar{Unit: bucket.Day}
	now := time.Date(2027, 1, 15, 8, 0, 0, 0, time.UTC).UnixMilli()
	b := bucket.Balance{Limit: bucket.InWindows(100, 24*time.Hour), Tokens: 40 * bucket.Milli, Ends: now - hour}
	for name, test := range map[string]struct {
		calendar *bucket.Calendar
		ends     int64
	}{
		"another length":            {monthly, now + 24*hour},
		"control: the length is it": {daily, daily.End(now, b.Ends)},
	} {
		s, ok := b.Step(test.calendar, bucket.Milli, bucket.Milli, 0, now)
		if !ok || s.Ends != test.ends || s.Fill != 60*bucket.Milli || s.Lo != b.Tokens || s.Hi != b.Tokens {
			t.Errorf("%s: %+v, want a claim until %d", name, s, test.ends)
		}
	}
}

// TestFilled: a filled window ends a millisecond later, and one that is too long for its new numbers at once.
func TestFilled(t *testing.T) {
	const day = int64(24 * time.Hour / time.Millisecond)
	daily := bucket.InWindows(100, 24*time.Hour)
	at := time.Date(2027, 1, 15, 8, 0, 0, 0, time.UTC).UnixMilli()
	for name, test := range map[string]struct{ ends, want int64 }{
		"none":             {0, 0},
		"an open one":      {at + day, at + day + 1},
		"one that is over": {at - 1, at},
		"one of a month":   {at + 17*day, at},
	} {
		if got := (bucket.Balance{Limit: daily, Ends: test.ends}).Filled(daily, at); got != test.want {
			t.Errorf("%s: ends at %d, want %d", name, got, test.want)
		}
	}
}

// TestEndOfWindows: the newest charge comes back first, and each part counts only in its own open window.
func TestEndOfWindows(t *testing.T) {
	const now, open = 1000, 2000
	img := &bucket.Image{Balances: []bucket.Balance{
		{Limit: bucket.Per(1, time.Second)}, {Limit: bucket.InWindows(100, 24*time.Hour), Ends: open},
	}}
	charges := []bucket.Charge{
		{Cost: []int64{5, 70}, Ends: []int64{0, 500}}, {Cost: []int64{5, 60}, Ends: []int64{0, open}},
	}
	for _, test := range []struct{ now, back, want int64 }{
		{now, 50, 0}, {now, 60, 0}, {now, 61, 1}, {now, 130, 70}, {now, 140, 80}, {open, 50, 50}, {open - 1, 50, 0},
	} {
		lapsed, moves := bucket.EndOf(img, []int64{-9, -test.back}, charges, test.now)
		if moves != nil {
			t.Errorf("moves %v of limits without holds", moves)
		}
		if lapsed == nil {
			lapsed = make([]int64, 2)
		}
		if lapsed[0] != 0 || lapsed[1] != test.want {
			t.Errorf("%d back at %d: %d lapsed, want 0 and %d", test.back, test.now, lapsed, test.want)
		}
	}
	if got, _ := bucket.EndOf(img, []int64{-9, 3}, charges, now); got != nil {
		t.Errorf("%d lapsed, though nothing comes back to a window", got)
	}
}
