// Package duration reads and writes durations as limits.yaml has them: 90s, 1h30m, 1d, 1d12h.
package duration

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// Day is 24 hours.
const Day = 24 * time.Hour

// MaxDays is the most days of a duration in limits.yaml. Parse tells longer ones from each other no more.
const MaxDays = 366

const digits = "0123456789"

// Parse reads a duration as Go writes it, without sign, which may start with whole days: 90s, 1h30m,
// 1d, 1d12h. Durations that time.Duration does not hold are MaxInt64, above every bound. why is the mistake
// in text, or "".
func Parse(text string) (d time.Duration, why string) {
	const form = "is no duration: write a number and ms, s, m, h or d, such as 1m"
	const longest = 64 // of what is repeated
	const daysFirst = "is no duration: whole days come first and once, such as 1d12h"
	days, rest, hasDays := strings.Cut(text, "d")
	switch {
	case text == "":
		return 0, form
	case strings.Trim(text, "0") == "": // too short in every unit
		return 0, ""
	case strings.Trim(text, digits+"_") == "":
		return 0, fmt.Sprintf("has no unit: write ms, s, m, h or d after it, such as %ss",
			text[:min(len(text), longest)])
	case inDays(text) != "":
		return 0, "is no duration: write " + inDays(text)
	case strings.HasPrefix(strings.TrimLeft(text, digits), "D"), strings.ContainsAny(rest, "dD"),
		hasDays && rest != "" && strings.Trim(rest, "smh") == "":
		return 0, daysFirst
	case !hasDays:
		days, rest = "", text
	}
	if hasDays {
		if days == "" || strings.Trim(days, digits) != "" || days[0] == '0' && days != "0" {
			return 0, daysFirst
		}
		n, err := strconv.Atoi(days)
		if err != nil { // out of range: there are only digits
			n = math.MaxInt
		}
		d = Day * time.Duration(min(n, MaxDays+1)) // more is too long anyway, and could overflow
	}
	if rest == "" {
		return d, ""
	}
	if strings.ContainsAny(rest[:1], "+-") || !strings.ContainsAny(rest, "smh") {
		return 0, form
	}
	clock, err := time.ParseDuration(rest)
	switch {
	case err != nil && durationSyntax(rest):
		return math.MaxInt64, ""
	case err != nil:
		return 0, form
	case clock > math.MaxInt64-d:
		return math.MaxInt64, ""
	}
	return d + clock, ""
}

// Cure returns why, with which Parse refused text. If text is a number without a unit, and fits as
// milliseconds but not as seconds, why advises milliseconds: 200ms.
func Cure(text, why string, fits func(time.Duration) bool) string {
	const unit, milli = "s", "ms"
	if seconds, refused := Parse(text + unit); refused != "" || fits(seconds) {
		return why
	}
	if short, refused := Parse(text + milli); refused != "" || !fits(short) {
		return why
	}
	return strings.Replace(why, text+unit, text+milli, 1)
}

// inDays returns a number of weeks, months or years, which are no units here, as days; "" for all other
// texts.
func inDays(text string) string {
	number := strings.TrimRight(text, "wWMyY")
	n, err := strconv.ParseUint(number, 10, 10)
	if err != nil || len(text) != len(number)+1 {
		return ""
	}
	switch text[len(number)] {
	case 'w', 'W':
		n *= 7
	case 'M':
		n *= 30
	default:
		n *= 365
	}
	return strconv.FormatUint(n, 10) + "d"
}

// durationSyntax reports whether text is numbers with units, so that time.ParseDuration fails only if it is
// too long.
func durationSyntax(text string) bool {
	for text != "" {
		rest := strings.TrimLeft(text, digits+".")
		number := text[:len(text)-len(rest)]
		if strings.Trim(number, ".") == "" || strings.Count(number, ".") > 1 {
			return false
		}
		unit, found := "", false
		for _, unit = range []string{"ns", "us", "µs", "μs", "ms", "s", "m", "h"} {
			if found = strings.HasPrefix(rest, unit); found {
				break
			}
		}
		if !found {
			return false
		}
		text = rest[len(unit):]
	}
	return true
}

// Written returns d as limits.yaml would have it: 90s, 12h, 1d.
func Written(d time.Duration) string {
	switch {
	case d%Day == 0:
		return strconv.FormatInt(int64(d/Day), 10) + "d"
	case d%time.Hour == 0:
		return strconv.FormatInt(int64(d/time.Hour), 10) + "h"
	case d%time.Minute == 0:
		return strconv.FormatInt(int64(d/time.Minute), 10) + "m"
	default:
		return d.String()
	}
}
