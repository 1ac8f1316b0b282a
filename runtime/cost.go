package runtime

import (
	"fmt"

	"github.com/sluice-go/sluice/runtime/bucket"
	"github.com/sluice-go/sluice/runtime/store"
)

// maxCost bounds one limit's cost, in millitokens, so that sums stay far inside int64 (docs/design.md,
// "Arithmetic").
const maxCost = 1_000_000_000_000_000

// scale turns whole tokens into millitokens in place; a 0 becomes perCall's, unless that is nil. empty
// reports that all are still 0.
func scale(spec *store.Spec, perCall, cost []int64) (empty bool, err error) {
	empty = true
	for i, c := range cost {
		if c == 0 && perCall != nil {
			c = perCall[i]
		}
		switch {
		case c < 0:
			return false, &InvalidError{
				Resource: spec.Resource, Field: "cost of " + spec.Limits[i], Value: fmt.Sprint(c),
				Reason: "is negative: to give tokens back, settle for less or release the lease",
			}
		case c > maxCost/bucket.Milli:
			return false, &InvalidError{
				Resource: spec.Resource, Field: "cost of " + spec.Limits[i], Value: fmt.Sprint(c),
				Reason: fmt.Sprintf("is above %d, the most that one call can take", int64(maxCost/bucket.Milli)),
			}
		}
		cost[i] = c * bucket.Milli
		empty = empty && c == 0
	}
	return empty, nil
}

// errEmptyCost returns the error for a call that would take nothing.
func errEmptyCost(spec *store.Spec) error {
	return &InvalidError{
		Resource: spec.Resource, Field: "cost", Reason: "is empty: set at least one limit's cost",
	}
}
