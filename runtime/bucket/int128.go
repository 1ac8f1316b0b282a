package bucket

import (
	"math"
	"math/bits"
)

// uint128 holds the products of two 63-bit numbers, which the refill needs in between (10^7 tokens/s over ten
// years).
type uint128 struct{ hi, lo uint64 }

func mul(x, y uint64) uint128 {
	hi, lo := bits.Mul64(x, y)
	return uint128{hi, lo}
}

// muladd returns x*y + z. It cannot carry out of 128 bits: (2^64-1)^2 + 2^64-1 < 2^128.
func muladd(x, y, z uint64) uint128 {
	p := mul(x, y)
	lo, carry := bits.Add64(p.lo, z, 0)
	return uint128{p.hi + carry, lo}
}

// minus returns x - y for y <= x.
func (x uint128) minus(y uint64) uint128 {
	lo, borrow := bits.Sub64(x.lo, y, 0)
	return uint128{x.hi - borrow, lo}
}

// quotient returns floor(x/y), saturated.
func quotient(x uint128, y uint64) uint64 {
	if x.hi >= y { // bits.Div64 would panic: the quotient needs more than 64 bits
		return math.MaxUint64
	}
	q, _ := bits.Div64(x.hi, x.lo, y)
	return q
}

// ceiling returns x/y rounded up, saturated.
func ceiling(x uint128, y uint64) uint64 {
	q := quotient(x, y)
	if q < math.MaxUint64 && bits.Rem64(x.hi, x.lo, y) != 0 {
		q++
	}
	return q
}

// after returns rf + d, saturated.
func after(rf int64, d uint64) int64 {
	if d > uint64(math.MaxInt64)-uint64(rf) { // how far rf is from the end, exact for a negative rf as well
		return math.MaxInt64
	}
	return int64(uint64(rf) + d)
}

// remainder returns rf*Refill mod Period, the part of a millitoken that rf's own floor left over. Floored for
// a negative rf as well, so that the telescoping holds there too.
func remainder(l Limit, rf int64) uint64 {
	period := uint64(l.Period)
	if rf >= 0 {
		p := mul(uint64(rf), uint64(l.Refill))
		return bits.Rem64(p.hi, p.lo, period)
	}
	p := mul(-uint64(rf), uint64(l.Refill))
	if r := bits.Rem64(p.hi, p.lo, period); r != 0 {
		return period - r
	}
	return 0
}

// Add returns a + b, saturated.
func Add(a, b int64) int64 {
	switch {
	case b > 0 && a > math.MaxInt64-b:
		return math.MaxInt64
	case b < 0 && a < math.MinInt64-b:
		return math.MinInt64
	}
	return a + b
}

// Sub returns a - b, saturated.
func Sub(a, b int64) int64 {
	switch {
	case b < 0 && a > math.MaxInt64+b:
		return math.MaxInt64
	case b > 0 && a < math.MinInt64+b:
		return math.MinInt64
	}
	return a - b
}

// Mul returns a * b, saturated.
func Mul(a, b int64) int64 {
	if a == 0 || b == 0 {
		return 0
	}
	p := a * b
	if p/b == a && !(b == -1 && a == math.MinInt64) {
		return p
	}
	if (a < 0) == (b < 0) {
		return math.MaxInt64
	}
	return math.MinInt64
}
