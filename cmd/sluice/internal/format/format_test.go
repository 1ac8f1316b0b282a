package format

import (
	"strings"
	"testing"
	"time"

	"github.com/sluice-go/sluice/runtime/bucket"
)

func TestTokens(t *testing.T) {
	for milli, want := range map[int64]string{
		0: "0", 66_666: "66.6", 66_000: "66", 66_099: "66", 99: "0", 100: "0.1",
		-1: "-0.1", -100: "-0.1", -1_000: "-1", -3_450: "-3.5",
		999_999: "999.9", 1_000_000: "1,000", -1_234_567_800: "-1,234,567.8",
	} {
		if got := Tokens(milli); got != want {
			t.Errorf("tokens(%d) = %s, want %s", milli, got, want)
		}
	}
}

func TestSpan(t *testing.T) {
	for d, want := range map[time.Duration]string{
		time.Millisecond:               "1ms",
		1500 * time.Millisecond:        "1.5s",
		time.Minute:                    "1m",
		90 * time.Second:               "1m30s",
		10 * time.Minute:               "10m",
		time.Hour:                      "1h",
		20 * time.Hour:                 "20h",
		time.Hour + time.Minute:        "1h1m",
		24 * time.Hour:                 "1d",
		366 * 24 * time.Hour:           "366d",
		25 * time.Hour:                 "25h",
		time.Hour + 30*time.Second:     "1h0m30s",
		10*time.Hour + 100*time.Second: "10h1m40s",
	} {
		if got := Span(d); got != want {
			t.Errorf("span(%v) = %s, want %s", d, got, want)
		}
	}
}

func TestFullIn(t *testing.T) {
	for d, want := range map[time.Duration]string{
		0:                       "now",
		time.Millisecond:        "100ms",
		100 * time.Millisecond:  "100ms",
		1201 * time.Millisecond: "1.3s",
		time.Minute:             "1m",

		24*time.Hour - time.Millisecond: "1d", 24*time.Hour + time.Millisecond: "1d 1h", 30 * 24 * time.Hour: "30d",
	} {
		if got := FullIn(d); got != want {
			t.Errorf("fullIn(%v) = %s, want %s", d, got, want)
		}
	}
}

// TestUnlimited: a limit that is unlimited is printed as that, and one that has a little less as its numbers.
func TestUnlimited(t *testing.T) {
	const most = 1_000_000_000_000_000 // 10^12 tokens
	of := func(capacity, refill, period int64) bucket.Limit {
		return bucket.Limit{Capacity: capacity, Burst: capacity, Refill: refill, Period: period}
	}
	for want, of := range map[string]struct {
		limit bucket.Limit
		unit  string
	}{
		"unlimited unlimited unlimited":                      {of(most, 600_000_000_000, 60_000), ""},
		"unlimited unlimited windows of 1d":                  {of(most, 0, 86_400_000), ""},
		"unlimited unlimited windows of 2m":                  {of(100*most, 0, 120_000), "USD"},
		"unlimited unlimited in flight":                      {bucket.InFlight(most / 1000), ""},
		"1,000,000 USD 1,000,000 USD windows of 2m":          {of(most, 0, 120_000), "USD"},
		"1,000,000,000,000 1,000,000,000,000 1,000 every 1m": {of(most, 1_000_000, 60_000), ""},
	} {
		if got := strings.Join(Limit(of.limit, of.unit), " "); got != want {
			t.Errorf("%+v is %q, want %q", of.limit, got, want)
		}
	}
}
