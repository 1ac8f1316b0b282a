package bucket

import "time"

// A calendar's windows are numbered, and each starts on a local day. Local days are counted since 1970-01-01;
// instants and wall clocks are in seconds since its midnight. A boundary is the first instant at which the
// zone's wall clock is not before the start of a window.

const (
	daySeconds = 24 * 3600

	// farthest is above every offset from UTC: RFC 9636 (TZif), section 3.2, has less than 26 hours.
	farthest = 26 * 3600
)

// window returns the first window that may start after an instant in milliseconds. Every window before it
// starts at that instant or earlier.
func (c *Calendar) window(after int64) int64 {
	at := floor(after, 1000)
	_, offset := time.Unix(at, 0).In(c.zone()).Zone()
	// Windows of earlier days have started. So have those of this day, unless the zone skips it. Later ones may
	// have started too, if the wall clock went back since.
	n := floor(at+int64(offset)-c.at(), daySeconds)
	switch c.Unit {
	case Day:
		return n
	case Week:
		return floor(n-c.weekday(), 7)
	}
	year, month, _ := time.Unix(n*daySeconds, 0).UTC().Date()
	return floor(12*int64(year)+int64(month-1)-c.month(), units[c.Unit].months)
}

// day returns the local day on which window k starts.
func (c *Calendar) day(k int64) int64 {
	switch c.Unit {
	case Day:
		return k
	case Week:
		return 7*k + c.weekday()
	}
	months := k*units[c.Unit].months + c.month()
	year := floor(months, 12)
	// Day 0 of the next month is the last of this one.
	last := time.Date(int(year), time.Month(months-12*year+2), 0, 0, 0, 0, 0, time.UTC)
	return floor(last.Unix(), daySeconds) - int64(max(0, last.Day()-c.date()))
}

// start returns the boundary at which window k starts, in milliseconds. A day that the zone skips starts with
// the next day, at the same time of day.
func (c *Calendar) start(k int64) int64 {
	n := c.day(k)
	at, shown := reach(c.zone(), n*daySeconds+c.at())
	if shown >= (n+1)*daySeconds { // a gap up to another day: is n all of it?
		_, morning := reach(c.zone(), n*daySeconds)
		if next := floor(morning, daySeconds); next > n {
			at, _ = reach(c.zone(), next*daySeconds+c.at())
		}
	}
	return Mul(at, 1000)
}

// reach returns the first instant at which the zone's wall clock is not before wall, and what it shows then.
func reach(zone *time.Location, wall int64) (at, shown int64) {
	at = wall - farthest // no wall clock is there yet
	for {
		t := time.Unix(at, 0).In(zone)
		_, offset := t.Zone()
		_, end := t.ZoneBounds()
		first := max(at, wall-int64(offset))
		if end.IsZero() {
			return first, first + int64(offset)
		}
		until := end.Unix()
		if until <= at {
			// On 31 December of a leap year beyond a zone's table, ZoneBounds returns the midnight before.
			until = (floor(at, daySeconds) + 1) * daySeconds
		}
		if first < until {
			return first, first + int64(offset)
		}
		at = until
	}
}

// at returns the time of day of a start, in seconds.
func (c *Calendar) at() int64 { return int64(c.At / time.Second) }

// weekday returns the first day of a week, in days from Thursday, the weekday of 1970-01-01.
func (c *Calendar) weekday() int64 { return modulo(int64(c.Weekday-time.Thursday), 7) }

// date returns the day of the month of a start.
func (c *Calendar) date() int { return max(1, c.Date) }

// month returns the month of a start, from 0 for January. Window 0 starts in that month of year 0.
func (c *Calendar) month() int64 { return modulo(int64(max(1, c.Month)-1), 12) }

// floor returns x/y, rounded down, for y above 0.
func floor(x, y int64) int64 {
	if x%y < 0 {
		return x/y - 1
	}
	return x / y
}

// modulo returns x less y*floor(x, y), for y above 0.
func modulo(x, y int64) int64 { return (x%y + y) % y }
