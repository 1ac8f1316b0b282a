package bucket_test

import (
	"slices"
	"testing"
	"time"

	"github.com/sluice-go/sluice/internal/test/longform"
	"github.com/sluice-go/sluice/runtime/bucket"
)

// variant returns the boundaries of a broken calendar, ascending, in milliseconds.
type variant func(s *scan, c *bucket.Calendar) []int64

// TestScanCatches: the comparison finds each broken variant of a calendar, first where it is wrong.
func TestScanCatches(t *testing.T) {
	longform.NoRace(t, "a control, whose broken variant ships nowhere")
	york, berlin := span{"America/New_York", 2026, 2026}, span{"Europe/Berlin", 2026, 2026}
	cairo, apia := span{"Africa/Cairo", 2014, 2014}, span{"Pacific/Apia", 2011, 2011}
	daily := func(at time.Duration) bucket.Calendar { return bucket.Calendar{Unit: bucket.Day, At: at} }
	last := bucket.Calendar{Unit: bucket.Month, Date: 31}
	scans := map[span]*scan{}
	for _, test := range []struct {
		name     string
		span     span
		calendar bucket.Calendar
		broken   variant
		want     string
	}{
		{"time.Date in a gap", york, daily(gaps), byDate,
			"boundary 2026-03-08T01:30:00-05:00, want 2026-03-08T03:00:00-04:00"},
		{"time.Date without a midnight", span{"America/Sao_Paulo", 2016, 2016}, daily(midnight), byDate,
			"boundary 2016-10-15T23:00:00-03:00, want 2016-10-16T01:00:00-02:00"},
		{"the second of an overlap", berlin, daily(gaps), second,
			"boundary 2026-10-25T02:30:00+01:00, want 2026-10-25T02:30:00+02:00"},
		{"clamped from the window before", span{"UTC", 2026, 2026}, last, clamped,
			"boundary 2026-03-28T00:00:00Z, want 2026-03-31T00:00:00Z"},
		{"an equal wall clock, in a gap", york, daily(gaps), equal,
			"boundary 2026-03-09T02:30:00-04:00, want 2026-03-08T03:00:00-04:00"},
		{"an equal wall clock, without a midnight", cairo, daily(midnight), equal,
			"boundary 2014-05-17T00:00:00+03:00, want 2014-05-16T01:00:00+03:00"},
		{"a window for a day that is skipped", apia, daily(early), skipped,
			"boundary 2011-12-31T00:00:00+14:00, want 2011-12-31T04:00:00+14:00"},
		{"a window of no length", apia, daily(midnight), skipped,
			"boundary 2011-12-31T00:00:00+14:00, want 2012-01-01T00:00:00+14:00"},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := scans[test.span]
			if s == nil {
				s = test.span.scan(t)
				scans[test.span] = s
			}
			c := test.calendar
			c.Zone = s.zone
			if err := s.compare(&c, (*bucket.Calendar).Next); err != nil {
				t.Fatal(err)
			}
			broken := func(c *bucket.Calendar, after int64, n int) []int64 {
				all := test.broken(s, c)
				i := slices.IndexFunc(all, func(at int64) bool { return at > after })
				return all[i:min(len(all), i+n)]
			}
			want := c.String() + ": " + test.want
			if err := s.compare(&c, broken); err == nil || err.Error() != want {
				t.Errorf("found %v, want %s", err, want)
			}
		})
	}
}

// byDate turns local times into instants by time.Date.
func byDate(s *scan, c *bucket.Calendar) []int64 {
	var all []int64
	for _, day := range s.days(c) {
		year, month, date := time.Unix(day*daySeconds, 0).UTC().Date()
		hour, minute := int(c.At.Hours()), int(c.At.Minutes())%60
		all = append(all, time.Date(year, month, date, hour, minute, 0, 0, s.zone).UnixMilli())
	}
	return all
}

// second takes the second of two instants at which the wall clock shows a boundary.
func second(s *scan, c *bucket.Calendar) []int64 {
	all := s.boundaries(c, s.days(c))
	for i, at := range all {
		for later := at/1000 + quarterHour; later <= at/1000+4*quarterHour; later += quarterHour {
			if clock(s.zone, later) == clock(s.zone, at/1000) {
				all[i] = later * 1000
			}
		}
	}
	return all
}

// clamped clamps the day of the month of the window before, which the last February has shortened for good.
func clamped(s *scan, c *bucket.Calendar) []int64 {
	days := s.days(c)
	for i := 1; i < len(days); i++ {
		before := time.Unix(days[i-1]*daySeconds, 0).UTC()
		end := time.Date(before.Year(), before.Month()+2, 0, 0, 0, 0, 0, time.UTC)
		days[i] = end.AddDate(0, 0, min(0, before.Day()-end.Day())).Unix() / daySeconds
	}
	return s.boundaries(c, days)
}

// equal has only boundaries that the wall clock shows.
func equal(s *scan, c *bucket.Calendar) []int64 {
	return slices.DeleteFunc(s.boundaries(c, s.days(c)), func(at int64) bool {
		wall := clock(s.zone, at/1000)
		return wall%daySeconds != int64(c.At/time.Second)
	})
}

// skipped has a boundary for each day, those too that the wall clock never shows.
func skipped(s *scan, c *bucket.Calendar) []int64 {
	var all []int64
	for _, day := range s.days(c) {
		all = append(all, s.reached[c.At][day-s.first]*1000)
	}
	return all
}
