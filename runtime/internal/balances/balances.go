// Package balances computes what is left in the buckets of a chain. It is safe for concurrent use on buckets
// that nobody changes.
package balances

import (
	"math"
	"slices"
	"time"

	"github.com/sluice-go/sluice/runtime/bucket"
	"github.com/sluice-go/sluice/runtime/store"
)

// View is one bucket, per limit in whole tokens or nano-units: what runtime.BucketSnapshot has, as vectors.
type View struct {
	Entity                     string        // as stored: user-123
	Available, Capacity, Burst []int64       // Available is rounded down, 0 in debt
	Full                       time.Duration // until the slowest limit is full; slots and credits do not count
	Exists                     bool
	Prefetched                 []int64 // by this process, and not used
}

// Views returns buckets as they are at now (ms).
func Views(spec *store.Spec, buckets []store.Bucket, now int64) []View {
	views := make([]View, len(buckets))
	for i := range buckets {
		b := &buckets[i]
		balances, refilled := Of(b, spec)
		one := View{Entity: b.Entity, Exists: b.After != nil}
		var left, capacity, burst []int64
		for _, balance := range balances {
			left = append(left, bucket.Spendable(balance, refilled, now))
			capacity, burst = append(capacity, balance.Capacity), append(burst, balance.Burst)
			one.Full = max(one.Full, Full(balance, refilled, now))
		}
		held := make([]int64, len(spec.Limits))
		copy(held, b.Prefetched)
		one.Prefetched = Whole(spec, held)
		one.Available, one.Capacity, one.Burst = Whole(spec, left), Whole(spec, capacity), Whole(spec, burst)
		views[i] = one
	}
	return views
}

// Full returns the time from now (ms) until b is full. It is 0 for an in-flight limit, of which nobody knows
// it, and for a prepaid one, which time does not fill.
func Full(b bucket.Balance, refilled, now int64) time.Duration {
	if b.InFlight() || b.Prepaid() {
		return 0
	}
	return bucket.RetryAfter(b, refilled, now, b.Burst)
}

// Least returns, per limit, the lowest balance of a chain's buckets at now (ms), in millitokens. It is 0 for
// a limit that no bucket has.
func Least(spec *store.Spec, buckets []store.Bucket, now int64) []int64 {
	least := slices.Repeat([]int64{math.MaxInt64}, len(spec.Limits))
	for i := range buckets {
		balances, refilled := Of(&buckets[i], spec)
		for j, balance := range balances {
			if !balance.Absent() {
				least[j] = min(least[j], bucket.Spendable(balance, refilled, now))
			}
		}
	}
	for j, milli := range least {
		if milli == math.MaxInt64 {
			least[j] = 0
		}
	}
	return least
}

// Of returns b's balances and up to when they are refilled. A limit or a bucket that does not exist
// is full, by the parameters in force if the store has returned those.
func Of(b *store.Bucket, spec *store.Spec) ([]bucket.Balance, int64) {
	full := bucket.Full(b.InForce(spec))
	if b.After == nil {
		return full, 0
	}
	for i, missing := range b.After.Missing {
		if !missing {
			full[i] = b.After.Balances[i]
		}
	}
	return full, b.After.Refilled
}

// Whole turns a vector of millitokens into whole tokens or nano-units, rounded down and 0 in debt.
func Whole(spec *store.Spec, milli []int64) []int64 {
	numbers := make([]int64, len(milli))
	for i, m := range milli {
		numbers[i] = spec.Whole(i, max(0, m))
	}
	return numbers
}

// Written returns those of after that differ from before.
func Written(spec *store.Spec, before, after []store.Bucket) []store.Bucket {
	var written []store.Bucket
	for i, b := range after {
		if b.After != before[i].After {
			written = append(written, Existing(spec, b))
		}
	}
	return written
}

// Existing returns b with a full image if it does not exist.
func Existing(spec *store.Spec, b store.Bucket) store.Bucket {
	own, refilled := Of(&b, spec)
	b.After = &bucket.Image{Refilled: refilled, Balances: own, Missing: make([]bool, len(own))}
	return b
}

// Seen returns those of buckets that have an image.
func Seen(buckets []store.Bucket) (left []store.Bucket) {
	for _, b := range buckets {
		if b.After != nil {
			left = append(left, b)
		}
	}
	return left
}
