package bucket_test

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sluice-go/sluice/runtime/bucket"
)

const (
	hour    = int64(time.Hour / time.Millisecond)
	allDay  = 24 * hour
	rfc3339 = "2006-01-02T15:04:05Z07:00"
)

// zone returns the zone of a name.
func zone(t testing.TB, name string) *time.Location {
	t.Helper()
	z, err := bucket.Zone(name)
	if err != nil {
		t.Fatal(err)
	}
	return z
}

// instant returns the milliseconds of an instant as RFC 3339 writes it.
func instant(t testing.TB, text string) int64 {
	t.Helper()
	at, err := time.Parse(rfc3339, text)
	if err != nil {
		t.Fatal(err)
	}
	return at.UnixMilli()
}

func TestUnits(t *testing.T) {
	for _, test := range []struct {
		unit          bucket.Unit
		name          string
		nominal, half int64
	}{
		{bucket.FirstUse, "first_use", 0, 0},
		{bucket.Day, "day", allDay, 12 * hour},
		{bucket.Week, "week", 7 * allDay, 84 * hour},
		{bucket.Month, "month", 30 * allDay, 14 * allDay},
		{bucket.Quarter, "quarter", 91 * allDay, 45 * allDay},
		{bucket.Year, "year", 365 * allDay, 182 * allDay},
		{0, "unit 0", 0, 0},
		{bucket.Never, "never", 100 * 365 * allDay, 0},
		{bucket.Never + 1, "unit 8", 0, 0},
	} {
		c := bucket.Calendar{Unit: test.unit}
		if c.Unit.String() != test.name || c.Unit.Nominal() != test.nominal || c.Half() != test.half {
			t.Errorf("%v: nominal %d, half %d; want %v", c.Unit, c.Unit.Nominal(), c.Half(), test)
		}
	}
}

func TestZone(t *testing.T) {
	for _, name := range []string{"UTC", "Europe/Berlin", "America/Argentina/Buenos_Aires", "Etc/GMT+5"} {
		if z, err := bucket.Zone(name); err != nil || z.String() != name {
			t.Errorf("%s: %v, %v", name, z, err)
		}
	}
	const (
		cure = "write a name of the IANA database, such as Europe/Berlin or UTC"
		load = cure + "; if it is one, import time/tzdata"
	)
	for name, want := range map[string]string{
		"":                    `zone "" names no time zone: ` + cure,
		"Local":               `zone "Local" is another one on each machine: ` + cure,
		"localtime":           `zone "localtime" is another one on each machine: ` + cure,
		"posixrules":          `zone "posixrules" is another one on each machine: ` + cure,
		"right/Europe/Berlin": `zone "right/Europe/Berlin" is not on each machine: ` + cure,
		"posix/UTC":           `zone "posix/UTC" is not on each machine: ` + cure,
		"/etc/localtime":      `zone "/etc/localtime" names no time zone: ` + cure,
		"Berlin":              `zone "Berlin": unknown time zone Berlin: ` + load,
		"../UTC":              `zone "../UTC": time: invalid location name: ` + load,
	} {
		if z, err := bucket.Zone(name); err == nil || err.Error() != want {
			t.Errorf("%q: %v, %v; want %s", name, z, err, want)
		}
	}
}

func TestCalendarString(t *testing.T) {
	york, berlin := zone(t, "America/New_York"), zone(t, "Europe/Berlin")
	for want, c := range map[string]bucket.Calendar{
		"5h0m0s from first use":           {Unit: bucket.FirstUse, Length: 5 * hour},
		"day from 00:00 UTC":              {Unit: bucket.Day},
		"day from 04:00 America/New_York": {Unit: bucket.Day, At: early, Zone: york},
		"week from Monday UTC":            {Unit: bucket.Week, Weekday: time.Monday},
		"week from Sunday 23:30 UTC":      {Unit: bucket.Week, At: late},
		"month from day 1 UTC":            {Unit: bucket.Month},
		"month from day 15 Europe/Berlin": {Unit: bucket.Month, Date: 15, Zone: berlin},
		"quarter from January 1 UTC":      {Unit: bucket.Quarter, Date: 1},
		"year from February 29 02:30 UTC": {Unit: bucket.Year, Month: time.February, Date: 29, At: gaps},
		"year from the entity's own start, in Europe/Berlin": {
			Unit: bucket.Year, Zone: berlin, OwnStarts: true},
		"month from the entity's own start, in its zone": {
			Unit: bucket.Month, OwnStarts: true, OwnZone: true},
		"day from 04:00 in the entity's own zone": {Unit: bucket.Day, At: early, OwnZone: true},
	} {
		if got := c.String(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

func TestOf(t *testing.T) {
	chatham, berlin := zone(t, "Pacific/Chatham"), zone(t, "Europe/Berlin")
	since := time.Date(2024, time.February, 29, 9, 30, 59, 999, chatham) // 28 February 20:45 UTC
	base := bucket.Calendar{Unit: bucket.Month, Length: 30 * allDay, At: early, Weekday: time.Monday, Date: 1,
		Month: time.January, Zone: berlin}
	for _, test := range []struct {
		name              string
		ownStarts, noZone bool
		ownZone           bool
		want              string
	}{
		{"zone", false, false, true, "month from day 1 04:00 Pacific/Chatham"},
		{"starts", true, false, false, "month from day 28 20:45 Europe/Berlin"},
		{"starts in UTC", true, true, false, "month from day 28 19:45 UTC"},
		{"both", true, false, true, "month from day 29 09:30 Pacific/Chatham"},
	} {
		t.Run(test.name, func(t *testing.T) {
			c := base
			c.OwnStarts, c.OwnZone = test.ownStarts, test.ownZone
			if test.noZone {
				c.Zone = nil
			}
			before := c
			own := c.Of(since)
			if own.String() != test.want || own.Own() || !c.Own() || c != before {
				t.Errorf("%v of %v, want %s", own, c, test.want)
			}
			if again := own.Of(since.AddDate(1, 2, 3)); again != own {
				t.Errorf("a calendar of an entity has another: %v", again)
			}
		})
	}
	if c := base; c.Own() || c.Of(since) != &c {
		t.Error("a calendar that all entities share is not their own")
	}
	c := bucket.Calendar{Unit: bucket.Year, OwnStarts: true}
	if own := c.Of(since); own.Weekday != time.Wednesday || own.Month != time.February {
		t.Errorf("%+v", own)
	}
}

// TestBoundaries is of the surprises by name. The first instant is a boundary's, and so are the others.
func TestBoundaries(t *testing.T) {
	type calendar = bucket.Calendar
	for _, test := range []struct {
		name, zone string
		calendar   calendar
		want       string
	}{
		{"Apia skips a day", "Pacific/Apia", calendar{Unit: bucket.Day},
			"2011-12-29T00:00:00-10:00 2011-12-31T00:00:00+14:00 2012-01-01T00:00:00+14:00"},
		{"Apia skips a day, at four", "Pacific/Apia", calendar{Unit: bucket.Day, At: early},
			"2011-12-29T04:00:00-10:00 2011-12-31T04:00:00+14:00 2012-01-01T04:00:00+14:00"},
		{"Apia skips the start of a week", "Pacific/Apia", calendar{Unit: bucket.Week, Weekday: time.Friday},
			"2011-12-23T00:00:00-10:00 2011-12-31T00:00:00+14:00 2012-01-06T00:00:00+14:00"},
		{"Apia skips a month's start", "Pacific/Apia", calendar{Unit: bucket.Month, Date: 30, At: early},
			"2011-11-30T04:00:00-10:00 2011-12-31T04:00:00+14:00 2012-01-30T04:00:00+14:00"},
		{"Kiritimati skips a year's last day", "Pacific/Kiritimati", calendar{Unit: bucket.Month, Date: 31},
			"1994-11-30T00:00:00-10:00 1995-01-01T00:00:00+14:00 1995-01-31T00:00:00+14:00"},
		{"Lord Howe's gap is half an hour", "Australia/Lord_Howe",
			calendar{Unit: bucket.Day, At: 2*time.Hour + 15*time.Minute},
			"2026-10-03T02:15:00+10:30 2026-10-04T02:30:00+11:00 2026-10-05T02:15:00+11:00"},
		{"Lord Howe's overlap", "Australia/Lord_Howe", calendar{Unit: bucket.Day, At: time.Hour + 45*time.Minute},
			"2026-04-04T01:45:00+11:00 2026-04-05T01:45:00+11:00 2026-04-06T01:45:00+10:30"},
		{"Cairo has no midnight", "Africa/Cairo", calendar{Unit: bucket.Day},
			"2026-04-23T00:00:00+02:00 2026-04-24T01:00:00+03:00 2026-04-25T00:00:00+03:00"},
		{"Cairo's midnight comes when the clock has gone back", "Africa/Cairo", calendar{Unit: bucket.Day},
			"2026-10-29T00:00:00+03:00 2026-10-30T00:00:00+02:00 2026-10-31T00:00:00+02:00"},
		{"Sao Paulo has no midnight", "America/Sao_Paulo", calendar{Unit: bucket.Day},
			"2018-11-03T00:00:00-03:00 2018-11-04T01:00:00-02:00 2018-11-05T00:00:00-02:00"},
		{"Saint John's has two midnights", "America/St_Johns", calendar{Unit: bucket.Day},
			"2006-10-28T00:00:00-02:30 2006-10-29T00:00:00-02:30 2006-10-30T00:00:00-03:30"},
		{"half past two in a gap", "America/New_York", calendar{Unit: bucket.Day, At: gaps},
			"2026-03-07T02:30:00-05:00 2026-03-08T03:00:00-04:00 2026-03-09T02:30:00-04:00"},
		{"half past two in an overlap", "Europe/Berlin", calendar{Unit: bucket.Day, At: gaps},
			"2026-10-24T02:30:00+02:00 2026-10-25T02:30:00+02:00 2026-10-26T02:30:00+01:00"},
		{"the last rules, in a leap year", "America/New_York", calendar{Unit: bucket.Day},
			"2048-12-31T00:00:00-05:00 2049-01-01T00:00:00-05:00 2049-01-02T00:00:00-05:00"},
		{"offsets of whole seconds", "Africa/Monrovia", calendar{Unit: bucket.Month},
			"1971-12-01T00:00:00-00:44:30 1972-01-01T00:00:00-00:44:30 1972-02-01T00:00:00Z"},
		{"a month of 31", "UTC", calendar{Unit: bucket.Month, Date: 31},
			"2026-01-31T00:00:00Z 2026-02-28T00:00:00Z 2026-03-31T00:00:00Z 2026-04-30T00:00:00Z"},
		{"a month of 29 in a leap year", "UTC", calendar{Unit: bucket.Month, Date: 29},
			"2028-01-29T00:00:00Z 2028-02-29T00:00:00Z 2028-03-29T00:00:00Z"},
		{"a quarter from November", "UTC", calendar{Unit: bucket.Quarter, Month: time.November, Date: 30},
			"2025-11-30T00:00:00Z 2026-02-28T00:00:00Z 2026-05-30T00:00:00Z 2026-08-30T00:00:00Z"},
		{"a quarter by default", "UTC", calendar{Unit: bucket.Quarter},
			"2025-10-01T00:00:00Z 2026-01-01T00:00:00Z 2026-04-01T00:00:00Z"},
		{"a year from 29 February", "UTC", calendar{Unit: bucket.Year, Month: time.February, Date: 29},
			"2096-02-29T00:00:00Z 2097-02-28T00:00:00Z 2098-02-28T00:00:00Z 2099-02-28T00:00:00Z " +
				"2100-02-28T00:00:00Z 2101-02-28T00:00:00Z"},
		{"weeks before 1970", "UTC", calendar{Unit: bucket.Week, Weekday: time.Monday},
			"1969-12-22T00:00:00Z 1969-12-29T00:00:00Z 1970-01-05T00:00:00Z"},
		{"months before 1970", "UTC", calendar{Unit: bucket.Month, Date: 31},
			"1969-11-30T00:00:00Z 1969-12-31T00:00:00Z 1970-01-31T00:00:00Z"},
	} {
		t.Run(test.name, func(t *testing.T) {
			c := test.calendar
			c.Zone = zone(t, test.zone)
			layout := rfc3339
			if strings.Contains(test.want, "-00:44:30") {
				layout = "2006-01-02T15:04:05Z07:00:00"
			}
			want := strings.Fields(test.want)
			first, err := time.Parse(layout, want[0])
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, at := range c.Next(first.UnixMilli()-1, len(want)) {
				got = append(got, time.UnixMilli(at).In(c.Zone).Format(layout))
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("boundaries (-want +got):\n%s", diff)
			}
		})
	}
}

// TestOldWindow: a window that follows another lasts at least half, whatever the calendar says now.
func TestOldWindow(t *testing.T) {
	midnight := &bucket.Calendar{Unit: bucket.Day}
	for _, test := range []struct {
		name           string
		now, old, want string
	}{
		{"the next boundary", "2026-03-02T00:00:01Z", "2026-03-02T00:00:00Z", "2026-03-03T00:00:00Z"},
		{"the end was in another zone", "2026-03-01T18:00:01Z", "2026-03-01T18:00:00Z", "2026-03-03T00:00:00Z"},
		{"the end was half before", "2026-03-01T12:00:01Z", "2026-03-01T12:00:00Z", "2026-03-03T00:00:00Z"},
		{"the end was a little earlier", "2026-03-01T12:00:01Z", "2026-03-01T11:59:59Z", "2026-03-02T00:00:00Z"},
		{"the end was long ago", "2026-03-01T23:59:59Z", "2026-02-01T00:00:00Z", "2026-03-02T00:00:00Z"},
		{"now is a boundary", "2026-03-02T00:00:00Z", "2026-02-01T00:00:00Z", "2026-03-03T00:00:00Z"},
		{"none was open", "2026-03-01T23:59:59Z", "1970-01-01T00:00:00Z", "2026-03-02T00:00:00Z"},
		{"none was open, before 1970", "1969-12-31T23:59:59Z", "1970-01-01T00:00:00Z", "1970-01-01T00:00:00Z"},
	} {
		t.Run(test.name, func(t *testing.T) {
			got := midnight.End(instant(t, test.now), instant(t, test.old))
			if got != instant(t, test.want) {
				t.Errorf("ends at %v, want %s", time.UnixMilli(got).UTC(), test.want)
			}
		})
	}
}

// TestEndOfTime: what int64 cannot hold is math.MaxInt64.
func TestEndOfTime(t *testing.T) {
	daily := &bucket.Calendar{Unit: bucket.Day}
	session := &bucket.Calendar{Unit: bucket.FirstUse, Length: 5 * hour}
	for _, test := range []struct {
		name           string
		calendar       *bucket.Calendar
		now, old, want int64
	}{
		{"year 9999", daily, bucket.LastExpiry*1000 + 999, 0, (bucket.LastExpiry + 1) * 1000},
		{"the last day that ends", daily, math.MaxInt64 - allDay, 0, math.MaxInt64 / allDay * allDay},
		{"the last day", daily, math.MaxInt64 / allDay * allDay, 0, math.MaxInt64},
		{"the last instant", daily, math.MaxInt64, 0, math.MaxInt64},
		{"after the last window", daily, 0, math.MaxInt64, math.MaxInt64},
		{"the first instant", daily, math.MinInt64, 0, math.MinInt64 / allDay * allDay},
		{"a session at the end", session, math.MaxInt64 - 1, 0, math.MaxInt64},
	} {
		if end := test.calendar.End(test.now, test.old); end != test.want {
			t.Errorf("%s: ends at %d, want %d", test.name, end, test.want)
		}
	}
}
