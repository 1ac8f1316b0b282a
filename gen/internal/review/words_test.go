package review

import (
	"testing"
	"time"

	"github.com/sluice-go/sluice/gen/internal/schema"
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
		if got := limit(n); got != want {
			t.Errorf("%+v is %q, want %q", n, got, want)
		}
	}
}
