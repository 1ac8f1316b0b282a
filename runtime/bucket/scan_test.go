package bucket_test

import (
	"fmt"
	"math"
	"testing"
	"time"
	_ "time/tzdata" // the tests are of these zones, whatever the machine has

	"github.com/sluice-go/sluice/internal/test/longform"
	"github.com/sluice-go/sluice/runtime/bucket"
)

const (
	quarterHour = 15 * 60
	daySeconds  = 24 * 3600
	near        = 2 * daySeconds // of a transition: there the scan goes by the second
)

// scan is what a walk over the instants of a zone saw of its wall clock. It knows no rule of any zone, asks
// for no bounds, and never turns a local time into an instant. Times, local ones too, are in seconds since
// 1970.
type scan struct {
	zone        *time.Location
	first, last int64                     // local days, the last one not included
	reached     map[time.Duration][]int64 // by time of day: when the wall clock reached it, each day
	shown       map[int64]bool            // the local days that the wall clock showed
}

// clock reads the wall clock of zone.
func clock(zone *time.Location, at int64) int64 {
	t := time.Unix(at, 0).In(zone)
	year, month, date := t.Date()
	hour, minute, second := t.Clock()
	return time.Date(year, month, date, hour, minute, second, 0, time.UTC).Unix()
}

// quick is clock in a fifth of the time.
func quick(zone *time.Location, at int64) int64 {
	_, offset := time.Unix(at, 0).In(zone).Zone()
	return at + int64(offset)
}

// scanned walks from two days before the first local day to two days after the last. It goes by the second
// within two days of each transition, and in each quarter of an hour that leads to a boundary. Elsewhere it
// goes by the quarter of an hour: two days around each boundary would be all of time.
func scanned(zone *time.Location, first, last int64, times []time.Duration) *scan {
	s := &scan{zone: zone, first: first, last: last}
	s.reached, s.shown = map[time.Duration][]int64{}, map[int64]bool{}
	from, until := (first-2)*daySeconds, (last+2)*daySeconds
	var jumps []int64
	for at := from; at < until; at += quarterHour {
		if clock(zone, at+quarterHour)-clock(zone, at) != quarterHour {
			jumps = append(jumps, at)
		}
	}
	day, shown := first, int64(math.MinInt64)
	due := func(i int) int64 { return day*daySeconds + int64(times[i]/time.Second) }
	i := 0
	for at := from; at < until; at += quarterHour {
		for len(jumps) > 0 && jumps[0] < at-near {
			jumps = jumps[1:]
		}
		step := int64(quarterHour)
		end := clock(zone, at+quarterHour)
		if len(jumps) > 0 && jumps[0] <= at+near || due(i) <= end {
			step = 1
		}
		for now := at + step; now <= at+quarterHour; now += step {
			wall := quick(zone, now)
			if now == at+quarterHour {
				wall = end
			}
			if today := (wall - wall%daySeconds) / daySeconds; today != shown {
				s.shown[today], shown = true, today
			}
			for due(i) <= wall && day < last {
				s.reached[times[i]] = append(s.reached[times[i]], now)
				if i++; i == len(times) {
					i, day = 0, day+1
				}
			}
		}
	}
	return s
}

// starts reports whether a window of c starts on a local day.
func starts(c *bucket.Calendar, day int64) bool {
	t := time.Unix(day*daySeconds, 0).UTC()
	end := t.AddDate(0, 0, 1).Day() == 1
	dated := t.Day() == c.Date || end && t.Day() < c.Date
	switch c.Unit {
	case bucket.Day:
		return true
	case bucket.Week:
		return t.Weekday() == c.Weekday
	case bucket.Quarter:
		return dated && (t.Month()-c.Month)%3 == 0
	case bucket.Year:
		return dated && t.Month() == c.Month
	}
	return dated
}

// days returns the local days on which windows of c start.
func (s *scan) days(c *bucket.Calendar) []int64 {
	var days []int64
	for day := s.first; day < s.last; day++ {
		if starts(c, day) {
			days = append(days, day)
		}
	}
	return days
}

// boundaries returns those of c, in milliseconds, by the days on which windows start.
func (s *scan) boundaries(c *bucket.Calendar, days []int64) []int64 {
	var all []int64
	for _, day := range days {
		for !s.shown[day] {
			day++
		}
		if day >= s.last {
			break
		}
		at := s.reached[c.At][day-s.first] * 1000
		if len(all) == 0 || at > all[len(all)-1] {
			all = append(all, at)
		}
	}
	return all
}

// next is Calendar.Next, or a variant of it.
type next func(c *bucket.Calendar, after int64, n int) []int64

// compare returns the first boundary of c that next does not have as the scan does.
func (s *scan) compare(c *bucket.Calendar, next next) error {
	want := s.boundaries(c, s.days(c))
	if len(want) == 0 {
		return fmt.Errorf("%v: the scan has no boundary", c)
	}
	got := next(c, want[0]-1, len(want))
	for i := range want {
		if i >= len(got) {
			return fmt.Errorf("%v: no boundary %s", c, s.show(want[i]))
		}
		if got[i] != want[i] {
			return fmt.Errorf("%v: boundary %s, want %s", c, s.show(got[i]), s.show(want[i]))
		}
	}
	return nil
}

// ends compares End at the start, in the middle and at the last millisecond of each window.
func (s *scan) ends(c *bucket.Calendar) error {
	all := s.boundaries(c, s.days(c))
	for i := 1; i < len(all); i++ {
		start, end := all[i-1], all[i]
		for _, now := range []int64{start, start + (end-start)/2, end - 1} {
			if got := c.End(now, 0); got != end {
				return fmt.Errorf("%v: opened at %s, ends at %s, want %s", c, s.show(now), s.show(got), s.show(end))
			}
		}
	}
	return nil
}

// show writes an instant in milliseconds, by the zone's wall clock.
func (s *scan) show(ms int64) string {
	return time.UnixMilli(ms).In(s.zone).Format("2006-01-02T15:04:05Z07:00")
}

// Windows start at these times of day, which ascend. Many transitions are at midnight or at two o'clock, and
// some go back from midnight to 23:00.
const (
	midnight = 0
	gaps     = 2*time.Hour + 30*time.Minute
	early    = 4 * time.Hour
	late     = 23*time.Hour + 30*time.Minute
)

var timesOfDay = []time.Duration{midnight, gaps, early, late}

// calendars returns those that are compared in a zone.
func calendars(zone *time.Location) []*bucket.Calendar {
	all := []*bucket.Calendar{{Unit: bucket.Day}}
	for weekday := time.Sunday; weekday <= time.Saturday; weekday++ {
		all = append(all, &bucket.Calendar{Unit: bucket.Week, Weekday: weekday})
	}
	for _, date := range []int{1, 15, 29, 30, 31} {
		all = append(all, &bucket.Calendar{Unit: bucket.Month, Date: date})
	}
	for _, day := range []struct {
		month time.Month
		date  int
	}{{time.January, 1}, {time.February, 29}, {time.January, 31}, {time.December, 31}, {time.August, 30}} {
		all = append(all, &bucket.Calendar{Unit: bucket.Quarter, Month: day.month, Date: day.date},
			&bucket.Calendar{Unit: bucket.Year, Month: day.month, Date: day.date})
	}
	var timed []*bucket.Calendar
	for _, c := range all {
		for _, at := range timesOfDay {
			c := *c
			c.Length, c.At, c.Zone = c.Unit.Nominal(), at, zone
			timed = append(timed, &c)
		}
	}
	return timed
}

// span is the years of a zone, the last one included.
type span struct {
	zone        string
	first, last int
}

// zones are those with the most surprises.
var zones = []string{
	"Pacific/Apia",        // no 30 December 2011
	"Pacific/Kiritimati",  // no 31 December 1994
	"Pacific/Kwajalein",   // no 21 August 1993
	"Pacific/Chatham",     // offsets of 12:45 and 13:45
	"Australia/Lord_Howe", // shifts of half an hour
	"Africa/Cairo",        // no midnight on some days of spring
	"Africa/Casablanca",   // shifts around each Ramadan
	"America/Sao_Paulo",   // two midnights a day, or none
	"America/New_York",    // no 02:30 on a day of spring
	"America/St_Johns",    // shifts at 00:01
	"America/Havana",      // shifts at midnight
	"Asia/Gaza",           // rules that changed almost every year
	"Asia/Tehran",         // shifts at midnight, by another calendar
	"Asia/Kathmandu",      // an offset of 5:45
	"Europe/Berlin",       // shifts at 02:00
	"UTC",
}

// surprises are the spans of the usual form.
var surprises = []span{
	{"Pacific/Apia", 2011, 2011},
	{"Pacific/Kiritimati", 1994, 1994},
	{"Australia/Lord_Howe", 2026, 2026},
	{"Africa/Cairo", 2014, 2014},
	{"America/Sao_Paulo", 2016, 2016},
	{"America/St_Johns", 2007, 2007},
	{"America/New_York", 2040, 2040}, // by the last rules, and a leap year
}

// scan walks over the years of s, and a week more on each side.
func (s span) scan(t testing.TB) *scan {
	t.Helper()
	zone, err := bucket.Zone(s.zone)
	if err != nil {
		t.Fatal(err)
	}
	first := time.Date(s.first, time.January, -6, 0, 0, 0, 0, time.UTC).Unix() / daySeconds
	last := time.Date(s.last+1, time.January, 8, 0, 0, 0, 0, time.UTC).Unix() / daySeconds
	return scanned(zone, first, last, timesOfDay)
}

// TestCalendarAgainstScan: the long form walks over 1990 to 2040 in each zone.
func TestCalendarAgainstScan(t *testing.T) {
	longform.NoRace(t, "one goroutine calls")
	t.Parallel()
	spans := surprises
	if all := 51 * len(zones); longform.Count(t, "years of zones", all, len(surprises)) == all {
		spans = nil
		for _, zone := range zones {
			spans = append(spans, span{zone, 1990, 2040})
		}
	}
	for _, span := range spans {
		t.Run(fmt.Sprint(span.zone, span.first), func(t *testing.T) {
			t.Parallel()
			s := span.scan(t)
			for _, c := range calendars(s.zone) {
				if err := s.compare(c, (*bucket.Calendar).Next); err != nil {
					t.Error(err)
				}
				if err := s.ends(c); err != nil {
					t.Error(err)
				}
			}
		})
	}
}
