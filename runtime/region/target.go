package region

import (
	"cmp"
	"math"
	"math/bits"
	"slices"
)

// Targets shares pool whole tokens out among regions by their demand: floor for each, and the rest in proportion, the largest
// remainders first; who comes first has the advantage in ties. Without any demand all have the same. Where there is no floor, for
// there are fewer tokens than regions, those with the largest demand get one each, and nobody more, though some are not here to have
// theirs: when the limit is raised, all regions have one at once. Equal arguments give equal results.
func Targets(pool, floor int64, demand []int64) []int64 {
	targets := make([]int64, len(demand))
	if len(demand) == 0 || pool <= 0 {
		return targets
	}
	if floor == 0 {
		order := byMost(demand)
		for _, i := range order[:min(pool, int64(len(demand)))] {
			targets[i] = 1
		}
		return targets
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

// byMost returns the indexes of amounts, the largest first.
func byMost(amounts []int64) []int {
	order := make([]int, len(amounts))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(amounts[b], amounts[a]) })
	return order
}
