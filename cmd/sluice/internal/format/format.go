package format

import (
	"fmt"
	"strings"
	"time"

	"github.com/sluice-go/sluice/internal/tool/texttable"
	"github.com/sluice-go/sluice/runtime/bucket"
)

// first is how many entries of a long list commands print.
const First = 10

// numbers writes l as all tables of limits do: capacity, burst, refill.
func Limit(l bucket.Limit) []string {
	return []string{
		Tokens(l.Capacity), Tokens(l.Burst), Tokens(l.Refill) + " every " + Span(time.Duration(l.Period)*time.Millisecond),
	}
}

// tokens writes millitokens as whole tokens, thousands apart, with a tenth where there is one, rounded down: what is shown
// is there.
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

// span writes a period as limits.yaml does: 1m and not 1m0s, 1d and not 24h.
func Span(d time.Duration) string {
	const day = 24 * time.Hour
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

// fullIn writes how long until a limit is full, rounded up to a tenth of a second.
func FullIn(d time.Duration) string {
	const tenth = 100 * time.Millisecond
	switch rest := d % tenth; {
	case d <= 0:
		return "now"
	case rest > 0:
		d += tenth - rest
	}
	return Span(max(d, 0))
}

// of counts things.
func Quantity[N int | int64](n N, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return texttable.Count(int64(n)) + " " + thing + "s"
}

// count writes n, thousands apart.
func Count(n int) string { return texttable.Count(int64(n)) }

// every writes a period, in ms, as gen.ParsePeriod reads it: no fractions.
func Period(ms int64) string {
	if ms%1000 != 0 {
		return fmt.Sprintf("%dms", ms)
	}
	return Span(time.Duration(ms) * time.Millisecond)
}
