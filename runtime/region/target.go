package region

import (
	"cmp"
	"math"
	"math/bits"
	"slices"

	"github.com/sluice-go/sluice/runtime/bucket"
	"github.com/sluice-go/sluice/runtime/store"
)

// Targets divides pool whole tokens among regions by their demand: floor for each, and the rest in
// proportion. Rounding favors the largest remainders, then the first region. Without any demand all get the
// same. If floor is 0 because there are fewer tokens than regions, those with the largest demand get one
// each. Equal arguments give equal results.
func Targets(pool, floor int64, demand []int64) []int64 {
	targets := make([]int64, len(demand))
	if len(demand) == 0 || pool <= 0 {
		return targets
	}
	if floor == 0 && pool < int64(len(demand)) {
		return even(pool, floor, demand)
	}
	n := int64(len(demand))
	floor = min(floor, pool/n)
	rest, sum := pool-n*floor, int64(0)
	weights := make([]int64, n)
	for i, d := range demand {
		weights[i] = min(max(d, 0), math.MaxInt64/n)
		sum += weights[i]
	}
	if sum == 0 {
		for i := range weights {
			weights[i] = 1
		}
		sum = n
	}
	left, remainders := rest, make([]int64, n)
	for i, w := range weights {
		hi, lo := bits.Mul64(uint64(rest), uint64(w))
		q, r := bits.Div64(hi, lo, uint64(sum)) // w <= sum, so the quotient is at most rest
		targets[i], remainders[i] = floor+int64(q), int64(r)
		left -= int64(q)
	}
	for _, i := range byMost(remainders)[:left] {
		targets[i]++
	}
	return targets
}

// even is Targets for a pool that the floors use up except for their rounding. The regions with the largest
// demand get one token of the remainder each, and none gets more. That holds also if some regions are
// missing.
func even(pool, floor int64, demand []int64) []int64 {
	targets := make([]int64, len(demand))
	if len(demand) == 0 || pool <= 0 {
		return targets
	}
	n := int64(len(demand))
	floor = min(floor, pool/n)
	for i := range targets {
		targets[i] = floor
	}
	for _, i := range byMost(demand)[:min(n, pool-n*floor)] {
		targets[i]++
	}
	return targets
}

// reserve returns the tokens that the books reserve for each region of a limit: the floor, or one more. If a
// limit is raised, all regions have their new floor at once, before any can have lowered its quota. Floors
// are whole tokens, so one more token of the limit may add one to each floor. Hence reserve uses the floors
// of a limit with so many tokens more that the other regions always have enough. If the limit is too small
// for that, it is tight: the tokens that the floors leave are divided evenly.
func reserve(whole int64, regions *store.Regions) (floor int64, tight bool) {
	n := int64(len(regions.Names))
	floor = bucket.Floor(whole+n-1, len(regions.Names), regions.Floor)
	return min(floor, whole/n), floor > whole/n
}

// byMost returns the indexes of amounts, the largest amount first.
func byMost(amounts []int64) []int {
	order := make([]int, len(amounts))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(amounts[b], amounts[a]) })
	return order
}
