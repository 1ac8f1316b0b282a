// Package decimal reads the amounts and prices of limits.yaml, and writes them. It goes from decimal text to
// whole numbers: no float is on the way, and nothing is rounded.
package decimal

import (
	"fmt"
	"math"
	"math/big"
	"strconv"
	"strings"
	"unicode"
)

const (
	nanoDigits = 9  // decimals of a nano-unit
	picoDigits = 12 // decimals of a pico-unit

	// Decimals is the most decimals that an amount of limits.yaml has.
	Decimals = 6

	// longest bounds the work on a price. A valid one is shorter.
	longest = 48
)

// Amount reads an amount, such as 12.50 or 10_000, in nano-units. One that int64 does not hold becomes
// math.MaxInt64. why says what is wrong with text, as words that follow it. It is "" if nothing is.
func Amount(text string) (nanos int64, why string) {
	whole, part, why := split(text)
	switch {
	case why != "":
		return 0, why
	case len(part) > Decimals:
		return 0, fmt.Sprintf("has %d decimals, at most %d are possible: round it", len(part), Decimals)
	}
	nanos, err := strconv.ParseInt(whole+part+strings.Repeat("0", nanoDigits-len(part)), 10, 64)
	if err != nil { // out of range: there are only digits
		return math.MaxInt64, ""
	}
	return nanos, ""
}

// units are the numbers of units that a price can be for. A price for one unit has no suffix.
func units() map[string]int { return map[string]int{"1k": 3, "1M": 6} }

// Price reads a price, such as 2.50/1M, in pico-units a unit. One that int64 does not hold becomes
// math.MaxInt64. why is as for Amount. fraction reports that text is a price, but is no whole number of
// pico-units.
func Price(text string) (picos int64, fraction bool, why string) {
	if len(text) > longest {
		return 0, false, fmt.Sprintf("has more than %d characters: write fewer digits", longest)
	}
	number, per, suffixed := strings.Cut(text, "/")
	zeros, known := units()[per]
	if suffixed && !known {
		return 0, false, "is not per 1k or 1M: write it like 2.50/1M, or without / for the price of one"
	}
	whole, part, why := split(number)
	if why != "" {
		return 0, false, why
	}
	part = strings.TrimRight(part, "0")
	n, _ := new(big.Int).SetString(whole+part, 10)
	ten := func(digits int) *big.Int { return new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(digits)), nil) }
	rest := new(big.Int)
	n.Mul(n, ten(picoDigits)).QuoRem(n, ten(len(part)+zeros), rest)
	switch {
	case rest.Sign() != 0:
		return 0, true, fmt.Sprintf("is no whole number of trillionths a unit: write at most %d decimals",
			picoDigits-zeros)
	case !n.IsInt64():
		return math.MaxInt64, false, ""
	}
	return n.Int64(), false, ""
}

// split returns the digits of a decimal before and behind its point, without the '_' that may group those
// before it. why is as for Amount.
func split(text string) (whole, part, why string) {
	for i, r := range text {
		if why := unexpected(text, i, r); why != "" {
			return "", "", why
		}
	}
	whole, part, pointed := strings.Cut(text, ".")
	switch {
	case text == "":
		return "", "", "is no number: write digits, such as 12.50"
	case strings.Contains(part, "."):
		return "", "", "has more than one point: write one, before the decimals"
	case whole == "":
		return "", "", "has no digit before its point: write 0 there, such as 0.5"
	case pointed && part == "":
		return "", "", "has no digit behind its point: remove the point"
	case strings.Contains(part, "_"), strings.HasPrefix(whole, "_"), strings.HasSuffix(whole, "_"),
		strings.Contains(whole, "__"):
		return "", "", "has a '_' that is not between two digits before the point"
	case whole[0] == '0' && len(whole) > 1:
		return "", "", "starts with 0, which is octal to some readers of YAML: remove the 0"
	}
	return strings.ReplaceAll(whole, "_", ""), part, ""
}

// unexpected returns why a decimal cannot have the rune r, which is at i in text, or "".
func unexpected(text string, i int, r rune) string {
	switch {
	case '0' <= r && r <= '9', r == '.', r == '_':
		return ""
	case r == '+', r == '-':
		return "has a sign: remove it, and write a number that is not negative"
	case (r == 'e' || r == 'E') && i > 0 && '0' <= text[i-1] && text[i-1] <= '9':
		return "has an exponent: write all digits, such as 1000"
	case r == ',':
		return "has a comma: write a point before the decimals, and '_' between thousands"
	case unicode.IsSpace(r):
		return "has white space: remove it"
	case unicode.IsDigit(r):
		return "has digits of another script: write them as 0 to 9"
	}
	return "has more than digits and a point: write the number alone, such as 12.50"
}

// Text writes an amount in nano-units as limits.yaml may have it, with sep between its thousands: 12.5.
func Text(nanos int64, sep string) string { return written(nanos, nanoDigits, sep) }

// TextOfPrice writes a price in pico-units a unit: per 1M if it is below 0.001, as price lists of models have
// it, else the price of one.
func TextOfPrice(picos int64) string {
	const thousandth = 1_000_000_000
	if picos < thousandth {
		return written(picos, picoDigits-units()["1M"], "_") + "/1M"
	}
	return written(picos, picoDigits, "_")
}

// written writes n, which has that many decimals.
func written(n int64, decimals int, sep string) string {
	digits := strconv.FormatInt(n, 10)
	if missing := decimals + 1 - len(digits); missing > 0 {
		digits = strings.Repeat("0", missing) + digits
	}
	whole, part := digits[:len(digits)-decimals], strings.TrimRight(digits[len(digits)-decimals:], "0")
	for i := len(whole) - 3; i > 0; i -= 3 {
		whole = whole[:i] + sep + whole[i:]
	}
	if part == "" {
		return whole
	}
	return whole + "." + part
}
