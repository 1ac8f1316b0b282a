package value

import (
	"strconv"

	"github.com/cockroachdb/apd/v3"
)

// The bounds of a number. The magnitudes are the powers of ten of the first significant digit.
const (
	maxDigits    = 38
	maxMagnitude = 125
	minMagnitude = -130
)

// Number is an exact decimal of at most 38 significant digits, 1e-130 to 9.99...e125 in magnitude, or zero.
// It is immutable, and the zero value is 0. Numbers are compared by [Number.Cmp], not by ==.
type Number struct {
	small int64 // the number, if it is an integer that fits
	wide  *wide // any other number, or nil
}

// wide is a decimal without trailing zeros in its coefficient, never an integer that fits an int64: so a
// number has exactly one form.
type wide struct{ apd.Decimal }

// NumberOf returns i as a Number.
func NumberOf(i int64) Number { return Number{small: i} }

// Add returns n+m. It errs where the sum has more digits, or a larger magnitude, than a number may have: it
// never rounds.
func (n Number) Add(m Number) (Number, error) {
	if sum := n.small + m.small; n.wide == nil && m.wide == nil && (sum < n.small) == (m.small < 0) {
		return Number{small: sum}, nil
	}
	return calculate((*apd.Context).Add, n, m)
}

// Sub returns n-m, as Add does.
func (n Number) Sub(m Number) (Number, error) {
	if diff := n.small - m.small; n.wide == nil && m.wide == nil && (diff > n.small) == (m.small < 0) {
		return Number{small: diff}, nil
	}
	return calculate((*apd.Context).Sub, n, m)
}

// calculate does with apd what does not fit an int64. Its BaseContext has no precision and so never rounds;
// the operands' bounds keep the result below 300 digits.
func calculate(
	do func(c *apd.Context, d, x, y *apd.Decimal) (apd.Condition, error), n, m Number,
) (Number, error) {
	var result wide
	if _, err := do(&apd.BaseContext, &result.Decimal, n.decimal(), m.decimal()); err != nil {
		return Number{}, errOverflow() // within the bounds there is nothing that apd could refuse
	}
	return normal(&result)
}

// normal returns the one form of d, or the error that an update's result has when it is out of bounds. AWS
// says overflow of a sum of too many digits too.
func normal(d *wide) (Number, error) {
	d.Reduce(&d.Decimal)
	digits := int(d.NumDigits())
	switch magnitude := digits + int(d.Exponent) - 1; {
	case d.IsZero():
		return Number{}, nil
	case magnitude < minMagnitude:
		return Number{}, errUnderflow()
	case digits > maxDigits, magnitude > maxMagnitude:
		return Number{}, errOverflow()
	case d.Exponent >= 0 && magnitude <= 18: // that of the largest int64
		if i, err := d.Int64(); err == nil {
			return Number{small: i}, nil
		}
	}
	return Number{wide: d}, nil
}

// decimal returns n for apd, which must not change it.
func (n Number) decimal() *apd.Decimal {
	if n.wide != nil {
		return &n.wide.Decimal
	}
	return apd.New(n.small, 0)
}

// Cmp returns -1, 0 or 1.
func (n Number) Cmp(m Number) int {
	if n.wide != nil || m.wide != nil {
		return n.decimal().Cmp(m.decimal())
	}
	switch {
	case n.small < m.small:
		return -1
	case n.small > m.small:
		return 1
	}
	return 0
}

// String returns the canonical text, which has no exponent: equal numbers have equal texts.
func (n Number) String() string { return string(n.append(nil)) }

func (n Number) append(b []byte) []byte {
	if n.wide != nil {
		return n.wide.Append(b, 'f')
	}
	return strconv.AppendInt(b, n.small, 10)
}

// digits returns how many significant digits n has, and the power of ten of the last one. Zero has none.
func (n Number) digits() (count, exponent int) {
	if n.wide != nil {
		return int(n.wide.NumDigits()), int(n.wide.Exponent)
	}
	rest := n.small
	for rest != 0 && rest%10 == 0 {
		rest /= 10
		exponent++
	}
	for ; rest != 0; rest /= 10 {
		count++
	}
	return count, exponent
}

func (n Number) negative() bool {
	return n.small < 0 || n.wide != nil && n.wide.Negative
}
