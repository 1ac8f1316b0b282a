// Package tokens checks the costs that callers pass, in whole tokens or in money, and turns them into
// millitokens.
package tokens

import (
	"fmt"
	"math"
	"strings"

	"github.com/sluice-go/sluice/runtime/money"
	"github.com/sluice-go/sluice/runtime/store"
)

// maxCost bounds one limit's cost, in millitokens, so that sums stay far inside int64 (docs/design.md,
// "Arithmetic").
const maxCost = 1_000_000_000_000_000

// Scale turns the cost of a call for an entity of a kind into millitokens, in place. Nano-units of money stay
// as they are. With perCall, a 0 becomes the kind's per_call. empty reports that all are still 0. Scale fails
// with a *store.InvalidError for a cost that is negative, too large, or of a limit that no bucket of the call
// has.
func Scale(spec *store.Spec, kind int, perCall bool, cost []int64) (empty bool, err error) {
	own := &spec.Kinds[kind] // a fake's has no limits, and takes any cost
	empty = true
	for i, c := range cost {
		if c == 0 && perCall && own.PerCall != nil {
			c = own.PerCall[i]
		}
		scale, most := spec.Scale(i), int64(maxCost)
		if spec.Unit(i) != "" {
			most = int64(money.Unlimited)
		}
		switch {
		case c == math.MinInt64: // of money.Total and store.Sum
			return false, wrong(spec, i, c, "comes from a negative count of a usage: pass counts from 0 up")
		case c < 0:
			return false, wrong(spec, i, c, "is negative: to give tokens back, settle for less or release the lease")
		case c > most/scale:
			return false, wrong(spec, i, c, "is above "+store.Text(spec.Unit(i), most/scale)+
				", the most that one call can take")
		}
		if c > 0 && own.Limits != nil && !spec.Charges(kind, i) {
			return false, errNoBucket(spec, kind, i, c)
		}
		cost[i] = c * scale
		empty = empty && c == 0
	}
	return empty, nil
}

// wrong returns the error for a cost of the i-th limit.
func wrong(spec *store.Spec, i int, cost int64, reason string) error {
	return &store.InvalidError{
		Resource: spec.Resource, Field: "cost of " + spec.Limits[i], Value: store.Text(spec.Unit(i), cost),
		Reason: reason,
	}
}

// errNoBucket returns the error for a cost of the i-th limit that no bucket has.
func errNoBucket(spec *store.Spec, kind, i int, cost int64) error {
	return wrong(spec, i, cost, fmt.Sprintf("has no bucket to charge: calls for kind %s charge none with limit "+
		"%s, which is of kind %s (kinds in limits.yaml): leave it out",
		spec.Kinds[kind].Name, spec.Limits[i], strings.Join(spec.KindsWith(i), ", ")))
}

// ErrEmpty returns the error for a call that would take nothing.
func ErrEmpty(spec *store.Spec) error {
	return &store.InvalidError{
		Resource: spec.Resource, Field: "cost", Reason: "is empty: set at least one limit's cost",
	}
}

// IgnoreSlots puts in place of actual, for in-flight limits, what was taken: nothing if taken is nil.
func IgnoreSlots(spec *store.Spec, actual, taken []int64) {
	for i := range spec.Held { // nil if there is no such limit
		switch {
		case !spec.InFlight(i):
		case taken == nil:
			actual[i] = 0
		default:
			actual[i] = taken[i]
		}
	}
}
