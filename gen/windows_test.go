package gen

import (
	"errors"
	"strings"
	"testing"
)

const windowed = `version: 1
owner: acme
revision: 3
go: {package: limits}
entities: {user: {}, org: {}}
resources:
  api:
    limits:
      rps: {capacity: 10, every: 1s}
      daily: {capacity: 100, window: day}
      session: {capacity: 100, window: 24h, starts: first_use}
      parallel: {capacity: 30, in_flight: true}
    entities: {user: {}, org: {daily: {capacity: 20}, parallel: {capacity: 40}}}
    on_unavailable: deny
`

// TestRevisionOfWindows: what buckets store of windows needs a new revision, and their starts and zones do
// not.
func TestRevisionOfWindows(t *testing.T) {
	const reused = "REVISION_REUSED: "
	for _, tc := range []struct{ name, old, new, want string }{
		{"start", "window: day}", `window: day, starts: "04:00"}`, ""},
		{"own start", "window: day}", "window: day, starts: entity}", ""},
		{"zone", "window: day}", "window: day, zone: Europe/Berlin}", ""},
		{"defaults written out", "window: day}", `window: day, starts: "00:00", zone: UTC}`, ""},
		{"a window as long", "window: 24h", "window: 1d", ""},
		{"another window", "window: day}", "window: week}", reused},
		{"a longer window", "window: 24h", "window: 25h", reused},
		{"capacity", "daily: {capacity: 20}", "daily: {capacity: 21}", reused},
		{"a limit that refills", "window: day}", "every: 1d}", reused},
		{"a limit that has windows", "every: 1s}", "window: 1m, starts: first_use}", reused},
		{"default of on_crash written out", "window: day}", "window: day, on_crash: charge}", ""},
		{"on_crash", "window: day}", "window: day, on_crash: release}", reused},
		{"default of per_call written out", "in_flight: true}", "in_flight: true, per_call: 1}", ""},
		{"per_call", "in_flight: true}", "in_flight: true, per_call: 2}", ""},
		{"slots", "capacity: 30", "capacity: 31", reused},
		{"slots of a kind", "parallel: {capacity: 40}", "parallel: {capacity: 41}", reused},
		{"a limit in flight", "every: 1s}", "in_flight: true}", reused},
		{"a limit that refills fast", "in_flight: true}", "every: 1ms}", reused},
	} {
		dir := t.TempDir()
		schemaAt(t, dir, windowed)
		generate(t, dir)
		if !strings.Contains(windowed, tc.old) {
			t.Fatalf("%s: there is no %q", tc.name, tc.old)
		}
		_, err := Run(schemaAt(t, dir, strings.Replace(windowed, tc.old, tc.new, 1)))
		switch _, ok := errors.AsType[Problems](err); {
		case tc.want == "" && err != nil:
			t.Errorf("%s: %v", tc.name, err)
		case tc.want != "" && (!ok || !strings.Contains(err.Error(), tc.want)):
			t.Errorf("%s: %v, want %s", tc.name, err, tc.want)
		}
	}
}

// TestBreakingWindows changes windows. Those that change nothing break nothing.
func TestBreakingWindows(t *testing.T) {
	raised := strings.Replace(windowed, "revision: 3", "revision: 4", 1)
	for _, tc := range []struct{ name, old, new, want string }{
		{"defaults written out", "window: day}", `window: day, starts: "00:00", zone: UTC}`, ""},
		{"a length in other words", "window: 24h", "window: 1d", ""},
		{"raised capacity", "capacity: 100, window: day", "capacity: 200, window: day", ""},
		{"start", "window: day}", `window: day, starts: "04:00"}`, "WINDOW_CHANGED"},
		{"own start", "window: day}", "window: day, starts: entity}", "WINDOW_CHANGED"},
		{"zone", "window: day}", "window: day, zone: Europe/Berlin}", "WINDOW_ZONE_CHANGED"},
		{"own zone", "window: day}", "window: day, zone: entity}", "WINDOW_ZONE_CHANGED"},
		{"window and zone", "window: day}", "window: month, zone: entity}", "WINDOW_CHANGED WINDOW_ZONE_CHANGED"},
		{"a calendar's to one of first use", "window: day}", "window: 1d, starts: first_use}", "WINDOW_CHANGED"},
		{"refills now", "window: day}", "every: 1d}", "HOW_LONG_CHANGED"},
		{"prepaid now", "window: day}", "window: never}", "HOW_LONG_CHANGED"},
		{"has windows now", "every: 1s}", "window: 1m, starts: first_use}", "HOW_LONG_CHANGED"},
		{"lowered capacity", "daily: {capacity: 20}", "daily: {capacity: 19}", "BURST_LOWERED"},
		{"refills fast now", "capacity: 30, in_flight: true}", "capacity: 30, every: 1ms, per_call: 1}",
			"HOW_LONG_CHANGED"},
		{"in flight now", "every: 1s}", "in_flight: true}", "HOW_LONG_CHANGED PER_CALL_CHANGED"},
		{"windows in flight now", "window: day}", "in_flight: true}", "HOW_LONG_CHANGED PER_CALL_CHANGED"},
		{"fewer slots", "capacity: 30", "capacity: 29", "BURST_LOWERED"},
		{"more slots", "capacity: 30", "capacity: 31", ""},
		{"on_crash", "window: day}", "window: day, on_crash: release}", "ON_CRASH_CHANGED"},
		{"default of on_crash written out", "window: day}", "window: day, on_crash: charge}", ""},
		{"default of per_call written out", "in_flight: true}", "in_flight: true, per_call: 1}", ""},
		{"renamed", "daily: {capacity: 100, window: day}", "dayly: {capacity: 100, window: day}", "LIMIT_RENAMED"},
		{"renamed, with another start", "session: {capacity: 100, window: 24h, starts: first_use}",
			"sessions: {capacity: 100, window: day}", "LIMIT_REMOVED"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if !strings.Contains(raised, tc.old) {
				t.Fatalf("there is no %q", tc.old)
			}
			after := strings.Replace(raised, tc.old, tc.new, 1)
			if tc.name == "renamed" {
				after = strings.Replace(after, "{daily:", "{dayly:", 1)
			}
			var fired []string
			for _, c := range breaks(t, t.TempDir(), windowed, after) {
				if c.Rule != "LIMIT_GO_NAME_CHANGED" {
					fired = append(fired, c.Rule)
				}
			}
			if got := strings.Join(fired, " "); got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

// TestZonesImported: code imports the rules of zones only if a limit names a zone, or leaves it to entities.
func TestZonesImported(t *testing.T) {
	for _, tc := range []struct {
		window string
		want   bool
	}{
		{"window: day", false}, {"window: day, starts: entity", false}, {"window: day, zone: UTC", false},
		{"window: 5h, starts: first_use", false}, {"every: 1d", false},
		{"window: day, zone: Europe/Berlin", true}, {"window: day, zone: entity", true},
	} {
		dir := t.TempDir()
		schemaAt(t, dir, strings.Replace(windowed, "window: day", tc.window, 1))
		generate(t, dir)
		if got := strings.Contains(goFiles(t, dir)["limits/limits.go"], `_ "time/tzdata"`); got != tc.want {
			t.Errorf("%s imports the rules of zones: %v, want %v", tc.window, got, tc.want)
		}
	}
}
