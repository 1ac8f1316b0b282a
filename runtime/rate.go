package runtime

import (
	"time"

	"github.com/sluice-go/sluice/runtime/bucket"
	"github.com/sluice-go/sluice/runtime/internal/rates"
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

// ratesOf returns limits of spec in whole tokens, or in nano-units of money; nil for nil.
func ratesOf(spec *store.Spec, limits []*bucket.Limit) []*Rate {
	all := make([]*Rate, len(limits))
	for i, l := range limits {
		if l != nil {
			all[i] = new(Rate(rates.Of(spec, i, l)))
		}
	}
	return all
}
