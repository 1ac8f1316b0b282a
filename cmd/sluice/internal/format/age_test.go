package format

import (
	"testing"
	"time"
)

func TestParseAge(t *testing.T) {
	const day = 24 * time.Hour
	for text, want := range map[string]time.Duration{"400d": 400 * day, "7d": 7 * day, "36500d": 36_500 * day,
		"90m": 90 * time.Minute} {
		if got, why := ParseAge(text); got != want || why != "" {
			t.Errorf("%s: %v, %s", text, got, why)
		}
	}
	for text, want := range map[string]string{
		"36501d": "is too long: it can be at most 36500d",
		"0d":     "is too short: it must be at least 1ms",
		"-1d":    "", "d": "", "": "", "1.5d": "",
	} {
		if _, why := ParseAge(text); why == "" || want != "" && why != want {
			t.Errorf("%q: %s", text, why)
		}
	}
}
