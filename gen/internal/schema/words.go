package schema

import (
	"fmt"
	"time"

	"github.com/sluice-go/sluice/gen/internal/decimal"
	"github.com/sluice-go/sluice/gen/internal/duration"
	"github.com/sluice-go/sluice/gen/internal/number"
)

// Cure returns the end of a message about text that is none of known: the probable name, or else all of them.
func Cure(text string, known []string) string { return new(reader).Cure(text, known) }

// String returns n as limits.yaml has it: 10_000 every 1m, burst 15_000.
func (n Numbers) String() string {
	s := n.WrittenCapacity() + " every " + duration.Written(n.Period)
	if n.Unlimited() {
		return s
	}
	if n.Refill != n.Capacity {
		s += ", refill " + number.Grouped(n.Refill)
	}
	if n.Burst != n.Capacity {
		s += ", burst " + number.Grouped(n.Burst)
	}
	return s
}

// Written returns n, which are numbers of l, as limits.yaml has them: 10_000 every 1m, or 500 with window:
// month, starts: 1, zone: UTC; or 20 with in_flight: true.
func (l *Limit) Written(n Numbers) string {
	switch {
	case l.InFlight:
		return n.WrittenCapacity() + " with in_flight: true"
	case l.Window == nil:
		return n.String()
	}
	s := n.WrittenCapacity() + " with " + l.Window.String()
	if n.Currency != "" {
		s = "money: " + n.Currency + " and " + s
	}
	if l.Release {
		s += ", on_crash: " + crashRelease
	}
	return s
}

// Count writes a number of a limit as limits.yaml has it: 10_000, or 12.5 of money.
func (n Numbers) Count(of int64) string {
	if n.Currency != "" {
		return amount(of)
	}
	return number.Grouped(of)
}

// ParseAmount reads an amount of money as limits.yaml has it, in nano-units: 12.50. One that int64 does not
// hold becomes math.MaxInt64. why is the mistake in text, in words that follow it, or "".
func ParseAmount(text string) (nanos int64, why string) { return decimal.Amount(text) }

// Amount writes an amount of money in nano-units as limits.yaml has it: 12.5.
func Amount(nanos int64) string { return amount(nanos) }

// Count writes n as limits.yaml has it: 10_000.
func Count(n int64) string { return number.Grouped(n) }

// Period writes d as limits.yaml has it: 90s, 12h, 1d.
func Period(d time.Duration) string { return duration.Written(d) }

// ParseCount reads a whole number as limits.yaml has it: digits, and '_' between digits. A number that int64
// does not hold becomes math.MaxInt64. why is the mistake in text, in words that follow it, or "".
func ParseCount(text string) (n int64, why string) { return number.Parse(text, 1, maxTokens) }

// ParsePeriod reads a period as the key every of limits.yaml has it: 90s, 1h30m, 1d12h. why is the mistake in
// text, in words that follow it, or "".
func ParsePeriod(text string) (d time.Duration, why string) {
	switch d, why = duration.Parse(text); {
	case why != "":
		return 0, why
	case d < minPeriod:
		return 0, "is too short: it must be at least 1ms"
	case d > maxPeriod:
		return 0, fmt.Sprintf("is too long: it can be at most %dd", duration.MaxDays)
	case d%time.Millisecond != 0:
		return 0, "is too fine: it must be whole milliseconds"
	}
	return d, ""
}
