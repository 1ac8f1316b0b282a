package window

import (
	"slices"
	"testing"
	"time"
)

// TestStart: what each unit takes as its start, and what not.
func TestStart(t *testing.T) {
	for _, tc := range []struct{ unit, text, want string }{
		{"day", "00:00", `window: day, starts: "00:00", zone: UTC`},
		{"day", "04:05", `window: day, starts: "04:05", zone: UTC`},
		{"day", "23:59", `window: day, starts: "23:59", zone: UTC`},
		{"day", "entity", "window: day, starts: entity, zone: UTC"},
		{"week", "sunday", "window: week, starts: sunday, zone: UTC"},
		{"week", "saturday", "window: week, starts: saturday, zone: UTC"},
		{"month", "1", "window: month, starts: 1, zone: UTC"},
		{"month", "31", "window: month, starts: 31, zone: UTC"},
		{"quarter", "entity", "window: quarter, starts: entity, zone: UTC"},
		{"year", "entity", "window: year, starts: entity, zone: UTC"},
		{"day", "4:00", ""}, {"day", "24:00", ""}, {"day", "04:00:00", ""}, {"day", "+4:00", ""}, {"day", "", ""},
		{"day", "04-00", ""}, {"day", "monday", ""}, {"day", "240", ""}, {"day", " 4:00", ""},
		{"week", "Sunday", ""}, {"week", "sun", ""}, {"week", "0", ""}, {"week", "04:00", ""},
		{"month", "0", ""}, {"month", "32", ""}, {"month", "01", ""}, {"month", "+1", ""}, {"month", "1.0", ""},
		{"month", "-1", ""}, {"month", "monday", ""},
		{"quarter", "1", ""}, {"year", "january", ""}, {"year", "1", ""},
	} {
		w := Of(tc.unit)
		why := w.Start(tc.text)
		if (why == "") != (tc.want != "") || why == "" && w.String() != tc.want {
			t.Errorf("%s with starts %q: %q, %q; want %q", tc.unit, tc.text, w, why, tc.want)
		}
	}
}

// TestDefaults: midnight, monday and day 1 in UTC, and the lengths that buckets store.
func TestDefaults(t *testing.T) {
	const day = 24 * time.Hour
	for want, length := range map[string]time.Duration{
		`window: day, starts: "00:00", zone: UTC`: day, "window: week, starts: monday, zone: UTC": 7 * day,
		"window: month, starts: 1, zone: UTC": 30 * day, "window: quarter, zone: UTC": 91 * day,
		"window: year, zone: UTC": 365 * day,
	} {
		i := slices.IndexFunc(Units(), func(unit string) bool { return Of(unit).String() == want })
		if i < 0 || Of(Units()[i]).Length != length {
			t.Errorf("no unit is %s, of %s", want, length)
		}
	}
	first := Window{Unit: FirstUse, Length: 36*time.Hour + 90*time.Second}
	if got := first.String(); got != "window: 36h1m30s, starts: first_use" {
		t.Error(got)
	}
	if IsUnit("first_use") || IsUnit("5h") || !IsUnit("quarter") {
		t.Error("units are not those of the key window")
	}
}

// TestSame tells windows of other times from windows of another zone.
func TestSame(t *testing.T) {
	berlin, own, week := Of("day"), Of("day"), Of("week")
	berlin.Zone, own.OwnZone = "Europe/Berlin", true
	utc := Of("day")
	for _, o := range []Window{berlin, own} {
		if !utc.SameTimes(o) || utc.SameZone(o) || !o.NeedsZones() {
			t.Errorf("%s against %s", o, utc)
		}
	}
	if utc.SameTimes(week) || !utc.SameZone(week) || utc.NeedsZones() {
		t.Errorf("%s against %s", week, utc)
	}
	first := Window{Unit: FirstUse, Length: time.Hour}
	if first.NeedsZones() || utc.SameTimes(first) {
		t.Error(first)
	}
}

// TestZones: each name is known by Go's own rules of zones, whatever the machine has, and sorted.
func TestZones(t *testing.T) {
	t.Setenv("ZONEINFO", "/does/not/exist")
	names := Zones()
	if len(names) < 590 || !slices.IsSorted(names) {
		t.Errorf("%d names, sorted: %v", len(names), slices.IsSorted(names))
	}
	for _, name := range names {
		if !KnownZone(name) {
			t.Errorf("%s is not known", name)
		}
	}
	for _, name := range []string{"", "Local", "europe/berlin", "Europe", "../UTC", "Factory", "CEST",
		"+02:00"} {
		if KnownZone(name) {
			t.Errorf("%q is known", name)
		}
	}
}
