// Package format writes numbers as commands print them, and reads durations as users write them.
package format

import (
	"fmt"
	"strings"
	"time"

	"github.com/sluice-go/sluice/internal/tool/texttable"
	"github.com/sluice-go/sluice/runtime/bucket"
	"github.com/sluice-go/sluice/runtime/money"
)

// First is the number of entries of a long list that commands print.
const First = 10

// Limit returns the columns of a limit in a table: capacity, burst, refill. unit is its currency, "" for
// tokens. In place of the refill, a limit with windows has their nominal length, and one that is prepaid or
// of calls in flight says so.
func Limit(l bucket.Limit, unit string) []string {
	period := Span(time.Duration(l.Period) * time.Millisecond)
	refill := Tokens(l.Refill) + " every " + period
	switch {
	case l.Prepaid():
		refill = "prepaid"
	case l.Windowed():
		refill = "windows of " + period
	case l.InFlight():
		refill = "in flight"
	}
	if l.Unlimited(unit != "") {
		const unlimited = "unlimited"
		if l.Refill > 0 {
			refill = unlimited
		}
		return []string{unlimited, unlimited, refill}
	}
	return []string{Number(l.Capacity, unit), Number(l.Burst, unit), refill}
}

// Number writes a stored number of a limit: millitokens as Tokens does, or, with a currency as the unit,
// nano-units as an exact amount with thousands separators: 12,000.5 USD.
func Number(milli int64, unit string) string {
	if unit == "" {
		return Tokens(milli)
	}
	text, negative := strings.CutPrefix(money.Amount(milli).String(), "-")
	sign := ""
	if negative {
		sign = "-"
	}
	whole, part, pointed := strings.Cut(text, ".")
	for i := len(whole) - 3; i > 0; i -= 3 {
		whole = whole[:i] + "," + whole[i:]
	}
	if pointed {
		whole += "." + part
	}
	return sign + whole + " " + unit
}

// Tokens writes millitokens as tokens, with thousands separators and at most one decimal. It rounds down,
// so that no token is shown that is not there.
func Tokens(milli int64) string {
	const tenth = bucket.Milli / 10
	n := milli / tenth
	if milli%tenth < 0 {
		n--
	}
	sign := ""
	if n < 0 {
		sign, n = "-", -n
	}
	if n%10 == 0 {
		return sign + texttable.Count(n/10)
	}
	return fmt.Sprintf("%s%s.%d", sign, texttable.Count(n/10), n%10)
}

// Span writes a period as limits.yaml does: 1m and not 1m0s, 1d and not 24h.
func Span(d time.Duration) string {
	if d >= day && d%day == 0 {
		return fmt.Sprintf("%dd", d/day)
	}
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}

// FullIn writes the time until a limit is full, rounded up to a tenth of a second, or from a day on to an
// hour.
func FullIn(d time.Duration) string {
	switch {
	case d <= 0:
		return "now"
	case d > day:
		return Days(roundUp(d, time.Hour))
	}
	return Span(roundUp(d, 100*time.Millisecond))
}

// Quantity writes a number of things, such as 1 bucket or 2 buckets.
func Quantity[N int | int64](n N, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return texttable.Count(int64(n)) + " " + thing + "s"
}

// Count writes n with thousands separators.
func Count(n int) string { return texttable.Count(int64(n)) }

// Period writes a period in ms as gen.ParsePeriod reads it, without fractions.
func Period(ms int64) string {
	if ms%1000 != 0 {
		return fmt.Sprintf("%dms", ms)
	}
	return Span(time.Duration(ms) * time.Millisecond)
}
