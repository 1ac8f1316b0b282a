package load

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/sluice-go/sluice/internal/tool/texttable"
)

// latencyOf writes milliseconds with three digits, and without a fraction from 100 ms on.
func latencyOf(ms float64) string {
	switch {
	case ms < 1:
		return fmt.Sprintf("%.3f ms", ms)
	case ms < 10:
		return fmt.Sprintf("%.2f ms", ms)
	case ms < 100:
		return fmt.Sprintf("%.1f ms", ms)
	}
	return texttable.Count(int64(ms+0.5)) + " ms"
}

// boundOf writes the upper bound of a bar.
func boundOf(ms float64) string {
	switch {
	case ms < 1:
		return number(ms*1000) + " µs"
	case ms < 1000:
		return number(ms) + " ms"
	}
	return number(ms/1000) + " s"
}

// number writes x with at most six digits.
func number(x float64) string {
	x, _ = strconv.ParseFloat(strconv.FormatFloat(x, 'g', 6, 64), 64)
	return strconv.FormatFloat(x, 'f', -1, 64)
}

// percentOf writes n as a percentage of all. It is 100 % only if n is all.
func percentOf(n, all int64) string {
	percent := 100 * float64(n) / float64(all)
	if n < all {
		percent = min(percent, 99.9)
	}
	return fmt.Sprintf("%.1f%%", percent)
}

// unitsOf writes capacity units.
func unitsOf(units float64) string {
	if units == float64(int64(units)) {
		return texttable.Count(int64(units))
	}
	return texttable.Count(int64(units)) +
		strings.TrimPrefix(strconv.FormatFloat(units-float64(int64(units)), 'f', 1, 64), "0")
}

// dollars writes an amount, in cents if it has any.
func dollars(x float64) string {
	if x > 0 && x < 0.01 {
		return "$" + strconv.FormatFloat(x, 'f', 6, 64)
	}
	cents := int64(x*100 + 0.5)
	return fmt.Sprintf("$%s.%02d", texttable.Count(cents/100), cents%100)
}
