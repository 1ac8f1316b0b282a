// Package rates converts between limits as callers have them, in whole tokens, and as buckets have them.
package rates

import (
	"fmt"
	"time"

	"github.com/sluice-go/sluice/runtime/bucket"
	"github.com/sluice-go/sluice/runtime/store"
)

// Rate is a runtime.Rate.
type Rate struct {
	Capacity, Burst, Refill int64
	Every                   time.Duration
}

// Limit returns r in millitokens, in place of the i-th limit of a kind, and what is wrong with it for calls
// that take the kind's per_call.
func (r Rate) Limit(spec *store.Spec, kind, i int) (l *bucket.Limit, wrong string) {
	own, scale := spec.Kinds[kind].Limits[i], spec.Scale(i)
	if r.Every%time.Millisecond != 0 {
		return nil, fmt.Sprintf("every %v is not a number of whole milliseconds: round it", r.Every)
	}
	milli := func(tokens int64) int64 {
		if tokens == 0 {
			tokens = r.Capacity
		}
		return bucket.Mul(tokens, scale)
	}
	l = &bucket.Limit{
		Capacity: milli(r.Capacity), Burst: milli(r.Burst), Refill: milli(r.Refill), Period: own.Period,
	}
	if r.Every != 0 {
		l.Period = r.Every.Milliseconds()
	}
	if own.Windowed() || own.InFlight() {
		l.Refill = 0
	}
	return l, spec.CheckLimit(i, *l, spec.Kinds[kind].PerCall[i])
}

// Of returns the i-th limit of spec in whole tokens, or in nano-units of money. Capacity and burst are
// rounded down: a quota, and an override of an earlier version, may have parts of a token. Refill is exact,
// if need be of a longer period.
func Of(spec *store.Spec, i int, l *bucket.Limit) Rate {
	if l.Windowed() || l.InFlight() {
		return Rate{Capacity: spec.Whole(i, l.Capacity)}
	}
	refill, period := l.WholeRefill()
	return Rate{
		Capacity: l.Capacity / bucket.Milli, Burst: l.Burst / bucket.Milli, Refill: refill,
		Every: time.Duration(period) * time.Millisecond,
	}
}
