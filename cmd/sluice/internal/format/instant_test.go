package format

import (
	"testing"
	"time"

	"github.com/sluice-go/sluice/runtime/bucket"
)

func TestDays(t *testing.T) {
	for d, want := range map[time.Duration]string{
		23 * time.Hour: "23h", 24 * time.Hour: "1d", 25 * time.Hour: "1d 1h",
		23*time.Hour + 30*time.Minute: "23h30m",
		31 * 24 * time.Hour:           "31d", 30*24*time.Hour + time.Hour: "30d 1h", 5 * time.Hour: "5h",
		7*24*time.Hour - time.Hour: "6d 23h",
	} {
		if got := Days(d); got != want {
			t.Errorf("%v: %s, want %s", d, got, want)
		}
	}
}

func TestResets(t *testing.T) {
	berlin := bucket.MustZone("Europe/Berlin")
	at := time.Date(2026, 12, 1, 0, 0, 0, 0, berlin)
	for left, want := range map[time.Duration]string{
		8*24*time.Hour + 3*time.Hour + 1:  "resets 2026-12-01 00:00 Europe/Berlin, in 8d 4h",
		24 * time.Hour:                    "resets 2026-12-01 00:00 Europe/Berlin, in 1d",
		23*time.Hour + 59*time.Minute + 1: "resets 2026-12-01 00:00 Europe/Berlin, in 1d",
		time.Hour + time.Minute:           "resets 2026-12-01 00:00 Europe/Berlin, in 1h1m",
		59*time.Second + 1:                "resets 2026-12-01 00:00 Europe/Berlin, in 1m",
		time.Millisecond:                  "resets 2026-12-01 00:00 Europe/Berlin, in 1s",
		-time.Hour:                        "resets 2026-12-01 00:00 Europe/Berlin, in 0s",
	} {
		if got := Resets(at, left); got != want {
			t.Errorf("%v: %s, want %s", left, got, want)
		}
	}
	firstUse := time.Date(2026, 11, 26, 14, 3, 7, 250e6, time.UTC)
	if got := Resets(firstUse, 5*time.Hour); got != "resets 2026-11-26 14:03:07 UTC, in 5h" {
		t.Error(got)
	}
}

func TestLimitOfWindows(t *testing.T) {
	got := Limit(bucket.InWindows(10_000, 30*24*time.Hour), "")
	if got[0] != "10,000" || got[1] != "10,000" || got[2] != "windows of 30d" {
		t.Error(got)
	}
}

func TestLimitInFlight(t *testing.T) {
	got := Limit(bucket.InFlight(1_200), "")
	if got[0] != "1,200" || got[1] != "1,200" || got[2] != "in flight" {
		t.Error(got)
	}
}
