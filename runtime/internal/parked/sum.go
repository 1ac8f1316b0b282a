package parked

import (
	"slices"

	"github.com/sluice-go/sluice/runtime/bucket"
	"github.com/sluice-go/sluice/runtime/store"
)

// Sum returns what a lease took in two acquires: before, and then more. A limit that a bucket lacked in one
// of them is not settled: what the other took of it stays taken. Sum notes the charges of more in its
// buckets.
func Sum(before, more *store.Part) *store.Part {
	sum := *more
	more.NoteCharges()
	sum.Cost, sum.Buckets = slices.Clone(more.Cost), slices.Clone(more.Buckets)
	for i, c := range before.Cost {
		sum.Cost[i] = bucket.Add(sum.Cost[i], c)
	}
	for i := range sum.Buckets {
		sum.Buckets[i].Dropped = either(sum.Buckets[i].Dropped, before.Buckets[i].Dropped)
		sum.Buckets[i].Charges = slices.Concat(before.Buckets[i].Charges, more.Buckets[i].Charges)
	}
	return &sum
}

// either returns the elementwise or of a and b. A nil slice is all false.
func either(a, b []bool) []bool {
	switch {
	case a == nil:
		return b
	case b == nil:
		return a
	}
	both := slices.Clone(a)
	for i := range both {
		both[i] = both[i] || b[i]
	}
	return both
}
