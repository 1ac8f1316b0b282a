package region

import (
	"cmp"
	"math"
	"math/bits"
	"slices"

	"github.com/sluice-go/sluice/runtime/bucket"
	"github.com/sluice-go/sluice/runtime/store"
)

// Targets shares pool whole tokens out among regions by their demand: floor for each, and the rest in proportion, the largest
// remainders first; who comes first has the advantage in ties. Without any demand all have the same. Where there is no floor, for
// there are fewer tokens than regions, those with the largest demand get one each. Equal arguments give equal results.
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
		q, r := bits.Div64(hi, lo, uint64(sum)) // w <= sum, so that the quotient is rest at the most
		targets[i], remainders[i] = floor+int64(q), int64(r)
		left -= int64(q)
	}
	for _, i := range byMost(remainders)[:left] {
		targets[i]++
	}
	return targets
}

// even is Targets where the floors are all that there is, but for what they leave over as they are rounded down: those with the largest
// demand get one of it each, and nobody more, though some may not be here to have theirs.
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

// reserve is what the books hold for each region of a limit: the floor, and at most a token more. When a limit is raised, all regions
// have their new floor at once, before anybody can have lowered a share. Floors are whole tokens: one token more of the limit may be one
// more in each of them. So here they are those of a limit with so many tokens more that the others never lack them; and where there are
// not as many, the limit is tight: what floors leave over is shared out evenly.
func reserve(whole int64, regions *store.Regions) (floor int64, tight bool) {
	n := int64(len(regions.Names))
	floor = bucket.Floor(whole+n-1, len(regions.Names), regions.Floor)
	return min(floor, whole/n), floor > whole/n
}

// byMost returns the indexes of amounts, the largest first.
func byMost(amounts []int64) []int {
	order := make([]int, len(amounts))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(amounts[b], amounts[a]) })
	return order
}
