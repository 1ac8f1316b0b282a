package runtime

import (
	"fmt"
	"time"

	"github.com/sluice-go/sluice/runtime/bucket"
	"github.com/sluice-go/sluice/runtime/store"
)

// Rate overrides a limit, in whole tokens. A Capacity alone restates the limit: all of it comes back within
// the Every of limits.yaml. Generated code passes money as a Capacity in nano-units.
type Rate struct {
	Capacity int64         // required
	Burst    int64         // 0 means Capacity
	Refill   int64         // tokens that come back within Every; 0 means Capacity
	Every    time.Duration // in whole milliseconds; 0 means that of limits.yaml, for the kind of entity
}

// InWindow returns the Rate of a windowed limit with a capacity in whole tokens, nil for nil. Generated code
// calls it.
func InWindow(capacity *int64) *Rate {
	if capacity == nil {
		return nil
	}
	return &Rate{Capacity: *capacity}
}

// InWindow returns the Capacity of r, which is of a windowed limit: nil for a nil r. Generated code calls it.
func (r *Rate) InWindow() *int64 {
	if r == nil {
		return nil
	}
	return &r.Capacity
}

// limit returns r in millitokens, in place of the i-th limit of a kind, and what is wrong with it for calls
// that take the kind's per_call.
func (r *Rate) limit(spec *store.Spec, kind, i int) (l *bucket.Limit, wrong string) {
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

// ratesOf returns limits of spec in whole tokens, or in nano-units of money. Capacity and burst are rounded
// down: a quota of a region, and an override of an earlier version, may have parts of a token. Refill is
// exact, if need be of a longer period.
func ratesOf(spec *store.Spec, limits []*bucket.Limit) []*Rate {
	rates := make([]*Rate, len(limits))
	for i, l := range limits {
		switch {
		case l == nil:
		case l.Windowed(), l.InFlight():
			rates[i] = &Rate{Capacity: spec.Whole(i, l.Capacity)}
		default:
			refill, period := l.WholeRefill()
			rates[i] = &Rate{
				Capacity: l.Capacity / bucket.Milli, Burst: l.Burst / bucket.Milli, Refill: refill,
				Every: time.Duration(period) * time.Millisecond,
			}
		}
	}
	return rates
}
