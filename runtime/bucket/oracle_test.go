package bucket_test

import (
	"math"
	"math/big"
	"time"

	"pgregory.net/rapid"

	"github.com/sluice-go/sluice/runtime/bucket"
)

// Bounds of docs/design.md, "Arithmetic".
const (
	fastest  = 10_000_000            // millitokens per ms: 10^7 tokens/s
	largest  = 1_000_000_000_000_000 // millitokens
	longest  = 366 * 24 * 3600 * 1000
	tenYears = 10 * longest
	year2026 = 1_767_225_600_000
)

// The oracle is the arithmetic of docs/design.md, "Arithmetic", without bounds.

func integer(n int64) *big.Int { return big.NewInt(n) }

// claimed is floor(at*Refill/Period): big.Int's Div floors where the divisor is positive.
func claimed(l bucket.Limit, at *big.Int) *big.Int {
	x := new(big.Int).Mul(at, integer(l.Refill))
	return x.Div(x, integer(l.Period))
}

func oracleRefill(l bucket.Limit, rf, now *big.Int) *big.Int {
	if now.Cmp(rf) <= 0 || l.Refill <= 0 || l.Period <= 0 {
		return new(big.Int)
	}
	return new(big.Int).Sub(claimed(l, now), claimed(l, rf))
}

func oracleAvailable(b bucket.Balance, rf, now *big.Int) *big.Int {
	if b.InFlight() { // it holds what was not taken, whatever its burst is now
		return integer(b.Tokens)
	}
	if inWindows(b.Limit) {
		if now.Cmp(integer(b.Ends)) >= 0 {
			return integer(b.Burst)
		}
		return integer(b.Tokens)
	}
	level := new(big.Int).Add(integer(b.Tokens), oracleRefill(b.Limit, rf, now))
	if burst := integer(b.Burst); level.Cmp(burst) > 0 {
		return burst
	}
	return level
}

// oracleReady is the first instant at which tokens + refill reach level, nil if there is none. It is the
// least t with floor(t*ra/rp) >= missing + floor(rf*ra/rp): the right side times rp/ra, rounded up.
func oracleReady(b bucket.Balance, rf, level int64) *big.Int {
	if level <= b.Tokens || b.InFlight() { // nobody knows when the leases of the second end
		return integer(rf)
	}
	if inWindows(b.Limit) {
		return integer(b.Ends)
	}
	if b.Refill <= 0 || b.Period <= 0 {
		return nil
	}
	x := new(big.Int).Sub(integer(level), integer(b.Tokens))
	x.Add(x, claimed(b.Limit, integer(rf)))
	return ceilDiv(x.Mul(x, integer(b.Period)), b.Refill)
}

// inWindows reports whether a limit has windows.
func inWindows(l bucket.Limit) bool { return l.Refill == 0 && l.Period > 0 && !l.InFlight() }

func oracleExpiry(b bucket.Balance, rf int64) *big.Int {
	if inWindows(b.Limit) {
		at := integer(rf)
		if b.Ends != 0 {
			at = integer(b.Ends)
			at.Add(at, integer(max(b.Period/2, 60_000)))
		}
		return bounded(ceilDiv(at, 1000))
	}
	b.Tokens = min(b.Tokens, 0)
	full := oracleReady(b, rf, b.Burst)
	if full == nil {
		return integer(year9999)
	}
	at := full.Add(full, full)
	return bounded(ceilDiv(at.Sub(at, integer(rf)), 1000))
}

// bounded returns ttl, or the last one there is.
func bounded(ttl *big.Int) *big.Int {
	if ttl.Cmp(integer(year9999)) > 0 {
		return integer(year9999)
	}
	return ttl
}

// ceilDiv returns x/y rounded up, for y > 0.
func ceilDiv(x *big.Int, y int64) *big.Int {
	x = new(big.Int).Neg(x)
	return x.Neg(x.Div(x, integer(y)))
}

// saturated is x within int64.
func saturated(x *big.Int) int64 {
	switch {
	case x.IsInt64():
		return x.Int64()
	case x.Sign() < 0:
		return math.MinInt64
	}
	return math.MaxInt64
}

// Generators. Uniform numbers seldom meet the round ones that schemas have, so both are drawn.

func limits() *rapid.Generator[bucket.Limit] {
	periods := rapid.OneOf(
		rapid.SampledFrom([]int64{1, 7, 1000, 60_000, 3_600_000, 86_400_000, longest - 1, longest}),
		rapid.Int64Range(1, longest))
	return rapid.Custom(func(t *rapid.T) bucket.Limit {
		period := periods.Draw(t, "period")
		most := min(largest, fastest*period)
		amounts := rapid.OneOf(
			rapid.SampledFrom([]int64{1, min(1000, most), min(100_000, most), most - 1, most}),
			rapid.Int64Range(1, most))
		burst := rapid.OneOf(rapid.SampledFrom([]int64{1, 1000, largest}), rapid.Int64Range(1, largest)).Draw(t,
			"burst")
		return bucket.Limit{Capacity: burst, Burst: burst, Refill: max(1, amounts.Draw(t, "refill")),
			Period: period}
	})
}

// balances are in debt, in between, full, and above their burst, as a release can leave them.
func balances() *rapid.Generator[bucket.Balance] {
	return rapid.Custom(func(t *rapid.T) bucket.Balance {
		b := bucket.Balance{Limit: limits().Draw(t, "limit")}
		b.Tokens = rapid.OneOf(
			rapid.SampledFrom([]int64{-largest, -1, 0, b.Burst - 1, b.Burst, b.Burst + 1, b.Burst + largest}),
			rapid.Int64Range(-largest, b.Burst)).Draw(t, "tokens")
		return b
	})
}

// instants are around now, and further back than any clock stood.
func instants() *rapid.Generator[int64] {
	return rapid.OneOf(
		rapid.Int64Range(year2026-tenYears, year2026+tenYears),
		rapid.Int64Range(year2026-5, year2026+5),
		rapid.Int64Range(-tenYears, 5))
}

// spans are pairs of rf and now: up to ten years idle, now and then a clock that went back.
func spans() *rapid.Generator[[2]int64] {
	return rapid.Custom(func(t *rapid.T) [2]int64 {
		rf := instants().Draw(t, "rf")
		idle := rapid.OneOf(rapid.Int64Range(-5, 5000), rapid.Int64Range(-tenYears, tenYears)).Draw(t, "idle")
		return [2]int64{rf, rf + idle}
	})
}

// wild are limits of any numbers at all.
func wild() *rapid.Generator[bucket.Limit] {
	return rapid.Custom(func(t *rapid.T) bucket.Limit {
		l := bucket.Limit{
			Burst:  rapid.Int64().Draw(t, "burst"),
			Refill: rapid.Int64().Draw(t, "refill"),
			Period: rapid.Int64().Draw(t, "period"),
		}
		if l.InFlight() {
			l.Period++ // TestInFlight is about these
		}
		return l
	})
}

func perMinute(tokens int64) bucket.Limit { return bucket.Per(tokens, time.Minute) }
