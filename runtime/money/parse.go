package money

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"
)

// ParseError says why a text is no amount. Text is the whole text. Reason is a clause that follows it: the
// mistake and the cure.
type ParseError struct{ Text, Reason string }

// Error names the text, in quotes and cut where it is long, with the reason.
func (e *ParseError) Error() string {
	const most = 40 // runes of the text
	text, n := e.Text, 0
	for i := range text {
		if n == most {
			text = text[:i] + "..."
			break
		}
		n++
	}
	return "sluice: amount " + strconv.QuoteToASCII(text) + " " + e.Reason
}

// Parse reads a decimal such as 12.345678: ASCII digits, then a point and up to 9 decimals if it has any. It
// fails with *ParseError for everything else, and never rounds:
//   - signs: no budget, price or cost is negative;
//   - an exponent, a currency, white space, or '_' and ',' between digits;
//   - .5 and 5., which have no digits on one side of the point;
//   - 007, as a 0 in front is octal to some readers;
//   - numbers above 9223372036.854775807.
func Parse(decimal string) (Amount, error) { return parse(decimal, false) }

// parse reads a decimal, and one '-' in front if signed allows it.
func parse(text string, signed bool) (Amount, error) {
	sign, digits := "", text
	if signed && strings.HasPrefix(text, "-") {
		sign, digits = "-", text[1:]
	}
	whole, part, pointed := strings.Cut(digits, ".")
	reason := mistake(digits, whole, part, pointed)
	if reason != "" {
		return 0, &ParseError{text, reason}
	}
	// The text has only digits by now: an int64 holds them as nano-units, or they are too many.
	nanos, err := strconv.ParseInt(sign+whole+part+strings.Repeat("0", decimals-len(part)), 10, 64)
	switch {
	case err != nil && sign != "":
		return 0, &ParseError{text, "is below -9223372036.854775808, the least amount: raise it"}
	case err != nil:
		return 0, &ParseError{text, "is above 9223372036.854775807, the largest amount: lower it"}
	}
	return Amount(nanos), nil
}

// mistake returns what is wrong with a text without its sign, as a ParseError's Reason, or "". whole and part
// are what it has before and behind its first point.
func mistake(text, whole, part string, pointed bool) string {
	if text == "" {
		return "is no number: write digits, such as 12.50"
	}
	for i, r := range text {
		if reason := unexpected(text, i, r); reason != "" {
			return reason
		}
	}
	switch {
	case strings.Contains(part, "."):
		return "has more than one point: write one, before the decimals"
	case whole == "":
		return "has no digit before its point: write 0 there, such as 0.5"
	case pointed && part == "":
		return "has no digit behind its point: remove the point"
	case len(whole) > 1 && whole[0] == '0':
		return "starts with 0, which is octal to some readers: remove the 0"
	case len(part) > decimals:
		return fmt.Sprintf("has %d decimals, at most %d fit: round it", len(part), decimals)
	}
	return ""
}

// unexpected returns why a decimal cannot have the rune r, which is at i in text, or "".
func unexpected(text string, i int, r rune) string {
	switch {
	case '0' <= r && r <= '9', r == '.':
		return ""
	case r == '+', r == '-':
		return "has a sign: remove it, and write an amount that is not negative"
	case (r == 'e' || r == 'E') && i > 0 && '0' <= text[i-1] && text[i-1] <= '9':
		return "has an exponent: write all digits, such as 1000"
	case r == '_':
		return "has a '_': remove it"
	case r == ',':
		return "has a comma: write a point before the decimals, and nothing between thousands"
	case unicode.IsSpace(r):
		return "has white space: remove it"
	case unicode.IsDigit(r):
		return "has digits of another script: write them as 0 to 9"
	}
	return "has more than digits and a point: write the number alone, such as 12.50"
}
