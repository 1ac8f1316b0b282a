package runtime

import (
	"time"

	"github.com/sluice-go/sluice/runtime/bucket"
	"github.com/sluice-go/sluice/runtime/internal/balances"
	"github.com/sluice-go/sluice/runtime/store"
)

// Balance is what is left of one limit in one bucket. It names the limit, so that code can show it without
// knowing the resource's cost struct.
type Balance struct {
	Resource  string       // its name: gpt-4
	Entity    string       // whose bucket it is, as stored: user-123
	Limit     string       // its name: tpm
	Params    bucket.Limit // in force for the bucket; with a Unit in nano-units, which its String does not know
	Unit      string       // of Available, as in DeniedError: a currency, or "" for whole tokens
	Available int64        // rounded down, 0 in debt

	// Full is the time until the bucket has its burst again. If the region's quota is 0, it is the time until
	// the quota may be raised. It is 0 for an in-flight limit: nobody knows when its calls end. So it is with
	// window: never, which time does not fill.
	Full time.Duration

	// Resets is the end of the open window. It is zero if none is open, or if the limit has none that ends.
	Resets time.Time
}

// Balances returns what the lease's last write left in its buckets, nearest first, limits in schema order.
// Limits that a bucket's kind does not have are left out. It reads nothing. It is nil if the lease does not
// know any of its buckets.
func (l *Lease[C]) Balances() []Balance {
	return (*lease)(l).balances()
}

func (l *lease) balances() []Balance {
	if l.isZero() {
		return nil
	}
	r := l.record
	r.mu.Lock()
	defer r.mu.Unlock()
	return balancesAt(r.resource.spec, r.buckets, r.at)
}

// Lookup returns the balances of the buckets that Acquire would charge, as far as this process has cached
// them: nil if it has cached none. It does no I/O. After a denial it returns the balances that led to it.
// Ancestors that the store would have to look up are left out.
func (r *Resource[E, C]) Lookup(entity E) []Balance { return r.untyped.lookup(entity) }

func (r *resource) lookup(entity Entity) []Balance {
	now, a := r.core.env.Clock.Now(), &acquisition{}
	if r.chain(a, now, entity, r.core.vectors()) != nil {
		return nil
	}
	r.core.session.Lookup(&a.call.Call)
	return balancesAt(r.spec, balances.Seen(a.part[0].Buckets), now.UnixMilli())
}

// balancesAt returns the balances of buckets at now, in ms.
func balancesAt(spec *store.Spec, buckets []store.Bucket, now int64) []Balance {
	var all []Balance
	for i := range buckets {
		own, refilled := balances.Of(&buckets[i], spec)
		for j, b := range own {
			if b.Absent() {
				continue
			}
			full := balances.Full(b, refilled, now)
			if spec.Regions != nil && b.Closed() { // as in store.Refuse
				full = spec.Regions.Window
			}
			all = append(all, Balance{
				Resource: spec.Resource, Entity: buckets[i].Entity, Limit: spec.Limits[j], Params: b.Limit,
				Unit: spec.Unit(j), Available: spec.Whole(j, max(0, bucket.Spendable(b, refilled, now))),
				Full: full, Resets: store.Resets(b, now),
			})
		}
	}
	return all
}
