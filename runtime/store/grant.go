package store

import (
	"fmt"
	"slices"
	"time"

	"github.com/sluice-go/sluice/runtime/bucket"
)

// Grant adds to limits with windows of one bucket: credits, or a refund. It counts once for each ID.
type Grant struct {
	ID           string
	Kind         int
	Entity, Root string  // as stored; Root is the last bucket of the entity's chain, as in Fill
	Amounts      []int64 // added, in millitokens and schema order
	// Windows are the calendars by which windows of the bucket open, by limit, as Bucket.Calendars returns them.
	Windows []*bucket.Calendar
}

// GrantKept is how long the ID of a Grant is kept. Later, it counts again.
const GrantKept = 400 * 24 * time.Hour

// MostGranted bounds the balance that a Grant may leave, in millitokens, so that no sum comes near int64's
// bounds.
const MostGranted = 1_000_000_000_000_000_000

// Check returns why g cannot be: an *InvalidError.
func (g *Grant) Check(spec *Spec) error {
	reason := CheckID("", g.ID)
	if g.ID == "" {
		reason = "is empty: pass one, such as the number of an invoice"
	}
	if reason != "" {
		return &InvalidError{Resource: spec.Resource, Field: "id of the grant", Value: g.ID, Reason: reason}
	}
	kind := &spec.Kinds[g.Kind]
	for i, n := range g.Amounts {
		reason := ""
		switch {
		case n < 0:
			reason = "is negative: to charge more, acquire it"
		case n > MostGranted:
			return g.TooMuch(spec, i)
		case n == 0:
		case !kind.Has(i):
			reason = fmt.Sprintf("has no limit to add to: kind %s does not have it (kinds in limits.yaml)", kind.Name)
		case !kind.Limits[i].Windowed():
			reason = "has no window to add to: it comes back by itself, so grant limits that have a window"
		}
		if reason != "" {
			return g.invalid(spec, i, n, reason)
		}
	}
	if !slices.ContainsFunc(g.Amounts, func(n int64) bool { return n > 0 }) {
		return &InvalidError{
			Resource: spec.Resource, Field: "grant", Value: g.ID, Reason: "is of nothing: set at least one limit",
		}
	}
	return nil
}

// invalid returns the error for an amount of the i-th limit.
func (g *Grant) invalid(spec *Spec, i int, amount int64, reason string) error {
	return &InvalidError{
		Resource: spec.Resource, Field: "grant of " + spec.Limits[i],
		Value: Text(spec.Unit(i), spec.Whole(i, amount)), Reason: reason,
	}
}

// TooMuch returns the error for a g that would leave more of the i-th limit than can be stored exactly.
func (g *Grant) TooMuch(spec *Spec, i int) error {
	return g.invalid(spec, i, g.Amounts[i], "is too much: the balance would be above what can be stored")
}

// Repeated returns nil if an earlier grant of g's ID, which counted, was of the same amounts. Else it returns
// an *InvalidError.
func (g *Grant) Repeated(spec *Spec, amounts []int64) error {
	for i, n := range g.Amounts {
		if before := amounts[i]; before != n {
			return g.invalid(spec, i, n, fmt.Sprintf("differs from the %s that this id has granted: use another id "+
				"for another grant", Text(spec.Unit(i), spec.Whole(i, before))))
		}
	}
	return nil
}
