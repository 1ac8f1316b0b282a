package value

import (
	"math"
	"strconv"

	"github.com/cockroachdb/apd/v3"

	"github.com/sluice-go/sluice/runtime/memdynamo/internal/exception"
)

// ParseNumber reads a number as clients write it: an optional sign, digits with or without a point, an
// optional exponent; no spaces. Its errors are the ValidationExceptions of DynamoDB, in AWS's wording, and
// whole messages.
func ParseNumber(text string) (Number, error) {
	if n, ok := parseSmall(text); ok {
		return n, nil
	}
	return parseDecimal(text)
}

// parseSmall reads what most numbers are: an integer of at most 18 digits.
func parseSmall(text string) (Number, bool) {
	digits := text
	if len(digits) > 0 && digits[0] == '-' {
		digits = digits[1:]
	}
	if len(digits) == 0 || len(digits) > 18 {
		return Number{}, false
	}
	var i int64
	for _, c := range []byte(digits) {
		if c < '0' || c > '9' {
			return Number{}, false
		}
		i = i*10 + int64(c-'0')
	}
	if len(digits) < len(text) {
		i = -i
	}
	return Number{small: i}, true
}

// parseDecimal reads any number in one pass: however long the text, it keeps no more than 38 digits of it.
func parseDecimal(text string) (Number, error) {
	rest := text
	negative := rest != "" && rest[0] == '-'
	if negative || rest != "" && rest[0] == '+' {
		rest = rest[1:]
	}

	var (
		kept     [maxDigits]byte // the significant digits
		count    int             // how many there are; the first 38 are kept
		zeros    int             // zeros after the last of them: significant only if another digit follows
		seen     bool            // a digit was read
		point    bool            // the point was read
		fraction int             // digits after the point
	)
mantissa:
	for ; rest != ""; rest = rest[1:] {
		switch c := rest[0]; {
		case c == '.' && !point:
			point = true
			continue
		case c == '0':
			if count > 0 {
				zeros++
			}
		case c >= '1' && c <= '9':
			for ; zeros > 0; zeros-- {
				if count < maxDigits {
					kept[count] = '0'
				}
				count++
			}
			if count < maxDigits {
				kept[count] = c
			}
			count++
		default:
			break mantissa
		}
		seen = true
		if point {
			fraction++
		}
	}
	exponent, ok := parseExponent(rest)
	if !ok || !seen {
		return Number{}, errNotNumeric(text)
	}

	exponent += int64(zeros - fraction)
	switch magnitude := exponent + int64(count) - 1; {
	case count == 0:
		return Number{}, nil
	case count > maxDigits:
		return Number{}, errPrecision()
	case magnitude > maxMagnitude:
		return Number{}, errOverflow()
	case magnitude < minMagnitude:
		return Number{}, errUnderflow()
	}
	var d wide
	if _, ok := d.Coeff.SetString(string(kept[:count]), 10); !ok {
		return Number{}, errNotNumeric(text) // they are digits
	}
	d.Negative, d.Exponent, d.Form = negative, int32(exponent), apd.Finite
	return normal(&d)
}

// parseExponent reads an exponent with its e, or nothing. Like Java's BigDecimal, which DynamoDB reads
// numbers with, it takes none beyond 32 bits.
func parseExponent(text string) (int64, bool) {
	if text == "" {
		return 0, true
	}
	if text[0] != 'e' && text[0] != 'E' {
		return 0, false
	}
	i, err := strconv.ParseInt(text[1:], 10, 32)
	return i, err == nil && i > math.MinInt32
}

func errNotNumeric(text string) error {
	if text == "" {
		return exception.Invalid("The parameter cannot be converted to a numeric value")
	}
	return exception.Invalid("The parameter cannot be converted to a numeric value: %s", text)
}

func errPrecision() error {
	return exception.Invalid("Attempting to store more than 38 significant digits in a Number")
}

func errOverflow() error {
	return exception.Invalid("Number overflow. Attempting to store a number with magnitude larger than " +
		"supported range")
}

func errUnderflow() error {
	return exception.Invalid("Number underflow. Attempting to store a number with magnitude smaller than " +
		"supported range")
}
