package runtime

import (
	"math"
	"slices"
	"time"

	"github.com/sluice-go/sluice/runtime/bucket"
	"github.com/sluice-go/sluice/runtime/store"
)

// Snapshot is what Peek saw, in whole tokens. A limit that a kind does not have is 0 in its buckets.
type Snapshot[C any] struct {
	// the least of the chain, rounded down and 0 in debt; 0 too for a limit that no bucket of it has
	Available C
	Buckets   []BucketSnapshot[C] // nearest first
}

// BucketSnapshot is one bucket of a chain, in whole tokens. A bucket that does not exist is full.
type BucketSnapshot[C any] struct {
	Entity                     string        // as stored: user-123
	Available, Capacity, Burst C             // Available is rounded down, 0 in debt
	Full                       time.Duration // until the slowest limit is full
	Exists                     bool
}

func (r *Resource[E, C]) snapshot(call *request, now int64) *Snapshot[C] {
	part := &call.Parts[0]
	snap := &Snapshot[C]{Available: r.tokens(least(r.spec, part.Buckets, now))}
	for i := range part.Buckets {
		b := &part.Buckets[i]
		balances, refilled := balancesOf(b, r.spec)
		one := BucketSnapshot[C]{Entity: b.Entity, Exists: b.After != nil}
		var left, capacity, burst []int64
		for _, balance := range balances {
			left = append(left, bucket.Spendable(balance, refilled, now))
			capacity, burst = append(capacity, balance.Capacity), append(burst, balance.Burst)
			one.Full = max(one.Full, bucket.RetryAfter(balance, refilled, now, balance.Burst))
		}
		one.Available, one.Capacity, one.Burst = r.tokens(left), r.tokens(capacity), r.tokens(burst)
		snap.Buckets = append(snap.Buckets, one)
	}
	return snap
}

// least returns, per limit, the lowest balance of the chain at now, in millitokens. It is 0 for a limit that
// no bucket has.
func least(spec *store.Spec, buckets []store.Bucket, now int64) []int64 {
	least := slices.Repeat([]int64{math.MaxInt64}, len(spec.Limits))
	for i := range buckets {
		balances, refilled := balancesOf(&buckets[i], spec)
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

// balancesOf returns b's balances and up to when they are refilled. A limit or a bucket that does not exist
// is full, by the parameters in force if the store has returned those.
func balancesOf(b *store.Bucket, spec *store.Spec) ([]bucket.Balance, int64) {
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

// tokens turns millitokens into a cost struct of whole tokens, rounded down and 0 in debt.
func (r *Resource[E, C]) tokens(milli []int64) C {
	whole := make([]int64, len(milli))
	for i, m := range milli {
		whole[i] = max(0, m) / bucket.Milli
	}
	return r.fromVector(whole)
}
