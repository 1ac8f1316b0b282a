package money

import (
	"math"
	"math/bits"
)

// Price is the price of one unit of a usage, in trillionths of a currency's unit: 2.50/1M, which is 2.50 for
// a million tokens, is 2_500_000.
type Price int64

// Total adds up what one call costs: counts of usages, each times its price. It is exact until Amount rounds
// it. The zero Total is empty.
type Total struct {
	signs  int64  // negative if a count or a price was
	hi, lo uint64 // the sum in pico-units, unless signs is negative
}

const (
	picos = 1000 // pico-units in a nano-unit

	// ceiling bounds Total.hi. Products of two int64 numbers do not exceed it, so no sum wraps. A sum that
	// reaches it is far above Unlimited.
	ceiling = 1 << 62
)

// Add returns t plus count units at a price. A negative count or price makes the Total negative, whatever
// else is added.
func (t Total) Add(count int64, price Price) Total {
	hi, lo := bits.Mul64(uint64(count), uint64(price))
	lo, carry := bits.Add64(t.lo, lo, 0)
	hi, _ = bits.Add64(t.hi, hi, carry)
	return Total{t.signs | count | int64(price), min(hi, ceiling), lo}
}

// Amount returns the sum, rounded up to a nano-unit. It cannot fail; in these cases it returns an amount that
// Acquire and Settle refuse with an *InvalidError:
//   - math.MinInt64 if a count or a price was negative;
//   - math.MaxInt64 if the sum is above Unlimited.
func (t Total) Amount() Amount {
	if t.signs < 0 {
		return math.MinInt64
	}
	if t.hi != 0 { // from 18 million on
		return t.large()
	}
	return Amount(t.lo/picos + min(t.lo%picos, 1))
}

// large is Amount for sums that need more than 64 bits. It is a function of its own so that the
// compiler can inline Amount.
func (t Total) large() Amount {
	const most = uint64(Unlimited)
	if t.hi >= picos { // bits.Div64 would panic: the quotient needs more than 64 bits
		return math.MaxInt64
	}
	nanos, part := bits.Div64(t.hi, t.lo, picos)
	if nanos > most || nanos == most && part > 0 {
		return math.MaxInt64
	}
	return Amount(nanos + min(part, 1))
}

// String returns p as limits.yaml may have it: 2.5/1M if it is below a thousandth, else 0.01.
func (p Price) String() string {
	const one, million, thousandth = 1_000_000_000_000, 1_000_000, 1_000_000_000
	if p == 0 || p <= -thousandth || p >= thousandth {
		return string(appendDecimal(nil, int64(p), one))
	}
	return string(appendDecimal(nil, int64(p), one/million)) + "/1M"
}
