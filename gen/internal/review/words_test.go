package review

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/sluice-go/sluice/gen/internal/schema"
	"github.com/sluice-go/sluice/gen/internal/window"
	"github.com/sluice-go/sluice/gen/internal/words"
	"github.com/sluice-go/sluice/runtime/bucket"
)

func TestLimit(t *testing.T) {
	const day = 24 * time.Hour
	for want, n := range map[string]schema.Numbers{
		"100 per minute, burst 150: 1 token every 600 ms, empty to full in 90 s": {Capacity: 100, Burst: 150,
			Refill: 100, Period: time.Minute},
		"100 per minute: 1 token every 600 ms, empty to full in 60 s": {Capacity: 100, Burst: 100,
			Refill: 100, Period: time.Minute},
		"1 per second: 1 token every 1 s, empty to full in 1 s": {Capacity: 1, Burst: 1, Refill: 1,
			Period: time.Second},
		"1,000 per second: 1 token every 1 ms, empty to full in 1 s": {Capacity: 1000, Burst: 1000,
			Refill: 1000, Period: time.Second},
		"100,000 per minute, burst 150,000: about 1.67 tokens every ms, empty to full in 90 s": {
			Capacity: 100_000, Burst: 150_000, Refill: 100_000, Period: time.Minute,
		},
		"100,000 per second: 100 tokens every ms, empty to full in 1 s": {Capacity: 100_000,
			Burst: 100_000, Refill: 100_000, Period: time.Second},
		"1,000 per day: 1 token every 86.4 s, empty to full in 24 h": {Capacity: 1000, Burst: 1000,
			Refill: 1000, Period: day},
		"7 per second: 1 token about every 143 ms, empty to full in 1 s": {Capacity: 7, Burst: 7,
			Refill: 7, Period: time.Second},
		"5 per day: 1 token every 4.8 h, empty to full in 24 h": {Capacity: 5, Burst: 5,
			Refill: 5, Period: day},
		"2 per day, burst 9: 1 token every 12 h, empty to full in 4.5 days": {Capacity: 2, Burst: 9,
			Refill: 2, Period: day},
		"1 per 3,650 days: 1 token every 3,650 days, empty to full in 3,650 days": {Capacity: 1, Burst: 1,
			Refill: 1, Period: 3650 * day},
		"10, refilled by 3 per 90 seconds, burst 25: 1 token every 30 s, empty to full in 12.5 min": {
			Capacity: 10, Burst: 25, Refill: 3, Period: 90 * time.Second,
		},
		"3, refilled by 7 per minute: 1 token about every 8.57 s, empty to full in about 25.7 s": {
			Capacity: 3, Burst: 3, Refill: 7, Period: time.Minute,
		},
		"1, refilled by 10,000,000 per second: 10,000 tokens every ms, empty to full in 0.0001 ms": {
			Capacity: 1, Burst: 1, Refill: 10_000_000, Period: time.Second,
		},
	} {
		if got := limit(n, nil); got != want {
			t.Errorf("%+v is %q, want %q", n, got, want)
		}
	}
}

// TestLimitOfWindows: nothing is said of a pace, which a limit with windows does not have.
func TestLimitOfWindows(t *testing.T) {
	w := window.Of("month")
	n := schema.Numbers{Capacity: 10_000, Burst: 10_000, Period: w.Length}
	const want = "10,000 per month from day 1 in UTC: all of it comes back when the window ends"
	if got := limit(n, &w); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// TestKeeps holds what every region keeps against the arithmetic of the runtime.
func TestKeeps(t *testing.T) {
	regions := &schema.Regions{Names: []string{"eu", "us"}, Floor: 5}
	for _, tc := range []struct {
		capacity, burst int64
		want            string
	}{
		{1, 2, "0"}, {2, 2, "1"}, {2, 9, "1, burst 4.5"}, {100, 150, "5, burst 7.5"},
		{10_000, 15_000, "500, burst 750"},
		{300, 1_000, "15, burst 50"}, {70, 100, "3, burst 4.285"}, {1_000_000_000_000, 1_000_000_000_000,
			"50,000,000,000"}, {999_999_999_999, 1_000_000_000_000, "49,999,999,999, burst 49,999,999,999.049"},
	} {
		n := schema.Numbers{Capacity: tc.capacity, Burst: tc.burst, Refill: tc.capacity, Period: time.Second}
		if got := keeps(regions, n); got != tc.want {
			t.Errorf("of %d, burst %d: %q, want %q", tc.capacity, tc.burst, got, tc.want)
		}
		whole := bucket.Limit{Capacity: tc.capacity * milli, Burst: tc.burst * milli, Refill: tc.capacity * milli,
			Period: 1000}
		quota := whole.Quota(bucket.Floor(tc.capacity, len(regions.Names), regions.Floor))
		var shown string
		if shown = words.Digits(quota.Capacity/milli, ","); quota.Capacity > 0 && tc.burst != tc.capacity {
			shown += ", burst " + strings.TrimSuffix(strings.TrimRight(words.Digits(quota.Burst/milli, ",")+
				fmt.Sprintf(".%03d", quota.Burst%milli), "0"), ".")
		}
		if shown != tc.want {
			t.Errorf("the runtime keeps %s of %d, burst %d, want %s", shown, tc.capacity, tc.burst, tc.want)
		}
	}
}
