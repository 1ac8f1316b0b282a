package runtime

import (
	"time"

	"github.com/sluice-go/sluice/runtime/bucket"
	"github.com/sluice-go/sluice/runtime/store"
)

// Level is where one limit of one bucket stands, under the limit's name: what answers to callers show, whatever the resource's cost
// struct.
type Level struct {
	Entity    string        // whose bucket it is, as stored: user-123
	Limit     string        // its name: tpm
	Params    bucket.Limit  // in force for the bucket
	Available int64         // whole tokens, rounded down, 0 in debt
	Full      time.Duration // until the bucket has its burst again; of a region's share of nothing, until it may be more
}

// Levels returns how the lease's last write left its buckets, nearest first, limits in schema order, without a read. It is nil where
// the lease knows of none.
func (l *Lease[C]) Levels() []Level {
	if l == nil || l.resource == nil {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.resource.levels(l.buckets, l.at)
}

// Recall returns the levels of the buckets that Acquire would charge, as far as they are remembered and without I/O: nil where
// nothing is. After a denial, it is what has led to it. What a look-up would find above entity is left out.
func (r *Resource[E, C]) Recall(entity E) []Level {
	now := r.core.env.Clock.Now()
	a, err := r.chain(now, entity)
	if err != nil {
		return nil
	}
	r.core.session.Recall(&a.call.Call)
	return r.levels(seen(a.part[0].Buckets), now.UnixMilli())
}

// levels returns where buckets stand at now, in ms.
func (r *resource) levels(buckets []store.Bucket, now int64) []Level {
	var levels []Level
	for i := range buckets {
		balances, refilled := r.balances(&buckets[i])
		for j, b := range balances {
			full := bucket.RetryAfter(b, refilled, now, b.Burst)
			if r.spec.Regions != nil && b.Closed() { // as Refuse has it
				full = r.spec.Regions.Window
			}
			levels = append(levels, Level{
				Entity: buckets[i].Entity, Limit: r.spec.Limits[j], Params: b.Limit,
				Available: max(0, store.Available(b, refilled, now)) / bucket.Milli, Full: full,
			})
		}
	}
	return levels
}
