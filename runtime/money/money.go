// Package money counts amounts of one currency in whole billionths.
//
//	budget, err := money.Parse("12.50")
//	if err != nil {
//		return err
//	}
//	const input, output money.Price = 2_500_000, 10_000_000 // 2.50/1M and 10/1M
//	cost := money.Total{}.Add(1_200, input).Add(345, output).Amount()
//	fmt.Println("cost", cost, "left", budget-cost)
//
// An [Amount] is a whole number of nano-units, and so are sums and differences of amounts. A [Total] is what
// one call costs, rounded up once. No function of this package uses a float.
package money

import "strconv"

// Amount is an amount in billionths of a currency's unit: 5*money.Unit + 25*money.Cent. Like a time.Duration
// it is an int64, so + and - do not saturate. Sums of fewer than 90 amounts up to Unlimited fit.
//
// Its text is a decimal without currency. It has as many decimals as it needs, and no point without decimals:
// 12.5, 800, 0.000000001, -0.25. String, AppendText and MarshalText write that one form, so the JSON of an
// amount is the string "12.5".
type Amount int64

// Common amounts, like the durations of package time.
const (
	Nano  Amount = 1
	Micro        = 1_000 * Nano
	Cent         = 10_000 * Micro
	Unit         = 100 * Cent

	// Unlimited is the largest capacity, for a budget that only counts. It is also the most that one call can
	// cost.
	Unlimited = 100_000_000 * Unit
)

// decimals is the number of decimals of an amount in nano-units.
const decimals = 9

// String returns a as an exact decimal, such as 0.0125.
func (a Amount) String() string {
	const longest = len("-9223372036.854775808")
	return string(a.appendTo(make([]byte, 0, longest)))
}

// AppendText appends what String returns to b. It implements encoding.TextAppender, and never fails.
func (a Amount) AppendText(b []byte) ([]byte, error) { return a.appendTo(b), nil }

// MarshalText returns what String returns. It implements encoding.TextMarshaler, and never fails.
func (a Amount) MarshalText() ([]byte, error) { return a.appendTo(nil), nil }

// UnmarshalText sets a to the amount that Parse reads from text. It also reads one '-' in front, which
// MarshalText writes for a negative amount. It fails with *ParseError, and then leaves a as it is.
func (a *Amount) UnmarshalText(text []byte) error {
	parsed, err := parse(string(text), true)
	if err != nil {
		return err
	}
	*a = parsed
	return nil
}

func (a Amount) appendTo(b []byte) []byte { return appendDecimal(b, int64(a), uint64(Unit)) }

// appendDecimal appends signed / unit as an exact decimal. unit is a power of ten.
func appendDecimal(b []byte, signed int64, unit uint64) []byte {
	n := uint64(signed)
	if signed < 0 {
		b, n = append(b, '-'), -n // exact for the least int64 as well
	}
	b = strconv.AppendUint(b, n/unit, 10)
	part := n % unit
	if part == 0 {
		return b
	}
	b = append(b, '.')
	for digit := unit / 10; part > 0; digit /= 10 {
		b = append(b, byte('0'+part/digit))
		part %= digit
	}
	return b
}
