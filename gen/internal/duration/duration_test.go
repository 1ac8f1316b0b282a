package duration

import (
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// TestParse holds Parse to what a duration looks like, and to time.ParseDuration, which counts a
// day as 24h.
func TestParse(t *testing.T) {
	form := regexp.MustCompile(`^((0|[1-9][0-9]*)d)?(([0-9]+\.?[0-9]*|\.[0-9]+)(ns|us|µs|μs|ms|s|m|h))*$`)
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.OneOf(
			rapid.StringMatching(`([1-9][0-9]{0,2}d)?([0-9]{1,3}h)?([0-9]{1,2}m)?([0-9]{1,2}(\.[0-9]{1,3})?s)?`),
			rapid.StringMatching(`([0-9.]{1,3}(ns|us|µs|ms|s|m|h|d)){1,3}`),
			rapid.StringMatching(`[0-9]{10,25}(h|d)([0-9]h)?`),
			rapid.StringMatching(`[-+_0-9dhms. ]{0,8}`),
			rapid.String(),
		).Draw(t, "text")
		d, why := Parse(text)
		if text != "" && strings.Trim(text, "0") == "" { // too short in every unit
			if d != 0 || why != "" {
				t.Fatalf("%q is %s: %s", text, d, why)
			}
			return
		}
		if good := text != "" && form.MatchString(text); good != (why == "") {
			t.Fatalf("%q: form is right: %v, but: %q", text, good, why)
		}
		if why != "" {
			return
		}
		days, rest, found := strings.Cut(text, "d")
		if !found {
			days, rest = "0", text
		}
		n, err := strconv.ParseInt(days, 10, 64)
		clock, err2 := time.ParseDuration("0s" + rest)
		if err != nil || err2 != nil || n > MaxDays || clock > MaxDays*Day {
			if d <= MaxDays*Day {
				t.Fatalf("%q is too long, but read as %s", text, d)
			}
			return
		}
		if want := time.Duration(n)*Day + clock; d != want {
			t.Fatalf("%q is %s, want %s", text, d, want)
		}
	})
}

// TestWritten reads back the periods of messages.
func TestWritten(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		unit := rapid.SampledFrom([]time.Duration{time.Millisecond, time.Second, time.Minute, time.Hour,
			Day}).Draw(t, "unit")
		d := unit * time.Duration(rapid.Int64Range(1, int64(MaxDays*Day/unit)).Draw(t, "n"))
		if got, why := Parse(Written(d)); got != d || why != "" {
			t.Fatalf("%s is %s: %s", Written(d), got, why)
		}
	})
}
