package schema

import (
	"fmt"
	"time"
)

// Cure ends a message about text, which is none of known: with what was probably meant, or else with all there is.
func Cure(text string, known []string) string { return new(reader).cure(text, known) }

// String returns n as limits.yaml has it: 10_000 every 1m, burst 15_000.
func (n Numbers) String() string {
	s := grouped(n.Capacity) + " every " + written(n.Period)
	if n.Refill != n.Capacity {
		s += ", refill " + grouped(n.Refill)
	}
	if n.Burst != n.Capacity {
		s += ", burst " + grouped(n.Burst)
	}
	return s
}

// Count writes n as limits.yaml has it: 10_000.
func Count(n int64) string { return grouped(n) }

// Period writes d as limits.yaml has it: 90s, 12h, 1d.
func Period(d time.Duration) string { return written(d) }

// ParseCount reads a whole number as limits.yaml has it: digits, and '_' between digits. What int64 does not hold is
// math.MaxInt64. Why says what is wrong with text, in words that follow it, "" if nothing is.
func ParseCount(text string) (n int64, why string) { return parseCount(text) }

// ParsePeriod reads what every can be in limits.yaml: 90s, 1h30m, 1d12h. Why says what is wrong with text, in words that
// follow it, "" if nothing is.
func ParsePeriod(text string) (d time.Duration, why string) {
	switch d, why = parsePeriod(text); {
	case why != "":
		return 0, why
	case d < minPeriod:
		return 0, "is too short: it must be at least 1ms"
	case d > maxPeriod:
		return 0, fmt.Sprintf("is too long: it can be at most %dd", maxPeriodDays)
	case d%time.Millisecond != 0:
		return 0, "is too fine: it must be whole milliseconds"
	}
	return d, ""
}
