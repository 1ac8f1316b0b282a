package format

import "time"

const day = 24 * time.Hour

// UTC writes t in UTC, to the second, with its zone: for what another machine has recorded.
func UTC(t time.Time) string { return t.UTC().Format(time.DateTime) + " UTC" }

// Instant writes the local time of t, to the minute, or to the second if it is not at one.
func Instant(t time.Time) string {
	if t.Second() != 0 {
		return t.Format(time.DateTime)
	}
	return t.Format("2006-01-02 15:04")
}

// Days writes the length of a window: 30d 1h, 23h30m, 1d.
func Days(d time.Duration) string {
	if d <= day || d%day == 0 {
		return Span(d)
	}
	return Span(d.Truncate(day)) + " " + Span(d%day)
}

// Resets writes when a window ends, in the zone of at, and the time left until then. That is rounded up to an
// hour from a day on, to a minute from an hour on, else to a second.
func Resets(at time.Time, left time.Duration) string {
	unit := time.Second
	switch {
	case left >= day:
		unit = time.Hour
	case left >= time.Hour:
		unit = time.Minute
	}
	left = roundUp(left, unit)
	return "resets " + Instant(at) + " " + at.Location().String() + ", in " + Days(max(0, left))
}

// roundUp rounds d up to a multiple of unit.
func roundUp(d, unit time.Duration) time.Duration {
	if rest := d % unit; rest > 0 {
		d += unit - rest
	}
	return d
}
