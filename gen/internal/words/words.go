// Package words puts a schema's numbers into words, for generated code and EXPRESSIONS.md.
package words

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/sluice-go/sluice/gen/internal/decimal"
	"github.com/sluice-go/sluice/gen/internal/schema"
	"github.com/sluice-go/sluice/gen/internal/window"
)

// Numbers returns n in words: 100 per minute, burst 150.
func Numbers(n schema.Numbers) string {
	if n.Unlimited() {
		return schema.Unlimited
	}
	s := Digits(n.Capacity, ",")
	if n.Refill == n.Capacity {
		s += " per " + period(n.Period)
	} else {
		s += ", refilled by " + Digits(n.Refill, ",") + " per " + period(n.Period)
	}
	if n.Burst != n.Capacity {
		s += ", burst " + Digits(n.Burst, ",")
	}
	return s
}

// Limit returns a limit's numbers in words: those of Numbers, or of windows: 5 per month from day 15 in UTC,
// or 20 in flight, or 5 prepaid.
func Limit(n schema.Numbers, w *window.Window) string {
	switch {
	case n.InFlight():
		return capacity(n) + " in flight"
	case w == nil:
		return Numbers(n)
	case w.Unit == window.Never:
		return Count(n.Currency, n.Capacity) + " prepaid"
	}
	return capacity(n) + " per " + windows(*w)
}

// capacity returns the capacity of n in words: 12,000.5 USD, or unlimited.
func capacity(n schema.Numbers) string {
	if n.Unlimited() {
		return schema.Unlimited
	}
	return Count(n.Currency, n.Capacity)
}

// Count returns a number of a limit with its digits in groups: 12,000 tokens as 12,000, and nano-units of a
// currency as 12,000.5 USD.
func Count(currency string, n int64) string {
	if currency != "" {
		return decimal.Text(n, ",") + " " + currency
	}
	return Digits(n, ",")
}

// Price returns a price in pico-units a unit: 2.5/1M.
func Price(picos int64) string { return decimal.TextOfPrice(picos) }

// windows returns w in words: day from 04:00 in America/New_York.
func windows(w window.Window) string {
	if w.Unit == window.FirstUse {
		return period(w.Length) + " from the first use"
	}
	s := string(w.Unit)
	switch {
	case w.OwnStarts:
		s += " from the entity's own start"
	case w.Unit == window.Day:
		s += " from " + w.Clock()
	case w.Unit == window.Week:
		s += " from " + w.Weekday.String()
	case w.Unit == window.Month:
		s += fmt.Sprintf(" from day %d", w.Date)
	}
	switch {
	case w.OwnZone && w.OwnStarts:
		return s + " in its own zone"
	case w.OwnZone:
		return s + " in the entity's own zone"
	}
	return s + " in " + w.Zone
}

// Kept returns the part of its limits that every region keeps: 5 % of each, at least 1 token where there are
// enough.
func Kept(r *schema.Regions) string {
	switch {
	case r.Floor == 0:
		return "1 token of each where there are enough"
	case r.Floor*int64(len(r.Names)) >= 100:
		return "an equal part of each"
	}
	return fmt.Sprintf("%d %% of each, at least 1 token where there are enough", r.Floor)
}

// period returns d in words: minute, 5 minutes, 1,500 milliseconds.
func period(d time.Duration) string {
	for _, u := range []struct {
		unit time.Duration
		name string
	}{{24 * time.Hour, "day"}, {time.Hour, "hour"}, {time.Minute, "minute"}, {time.Second, "second"}} {
		switch {
		case d == u.unit:
			return u.name
		case d%u.unit == 0:
			return Digits(int64(d/u.unit), ",") + " " + u.name + "s"
		}
	}
	if d == time.Millisecond {
		return "millisecond"
	}
	return Digits(d.Milliseconds(), ",") + " milliseconds"
}

// Digits returns n with its digits in groups of three.
func Digits(n int64, sep string) string {
	s := strconv.FormatInt(n, 10)
	start := len(s) % 3
	if s[0] == '-' {
		start = 1 + (len(s)-1)%3
	}
	var b strings.Builder
	b.WriteString(s[:start])
	for ; start < len(s); start += 3 {
		if start > 0 && s[start-1] != '-' {
			b.WriteString(sep)
		}
		b.WriteString(s[start : start+3])
	}
	return b.String()
}

// List joins words: a, b and c.
func List(words []string, last string) string {
	if n := len(words); n > 1 {
		return strings.Join(words[:n-1], ", ") + " " + last + " " + words[n-1]
	}
	return strings.Join(words, "")
}
