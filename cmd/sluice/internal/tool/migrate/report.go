package migrate

import (
	"slices"
	"strings"

	"github.com/sluice-go/sluice/runtime/store"
)

// Report is what a run found and did. Lists are sorted.
type Report struct {
	Job      Job    `json:"job"`
	Table    string `json:"table"`
	Resource string `json:"resource,omitempty"` // the one that it was for; empty for all
	Complete bool   `json:"complete"`           // it came to its end
	Resumed  bool   `json:"resumed"`            // it continued where an earlier run had stopped
	// buckets that were wrong, or beside their items, in the runs before
	Missed     int64   `json:"missed"`
	Scanned    int64   `json:"items_read"` // of whatever kind
	ReadUnits  float64 `json:"read_units"` // of scans, and of buckets read beside them
	WriteUnits float64 `json:"write_units"`
	Seconds    float64 `json:"seconds"`

	Converted *Converted `json:"carried,omitempty"` // of Convert, and what it would be of DryRun
	Checked   *Checked   `json:"checked,omitempty"` // of Verify
	Cleaned   *Cleaned   `json:"cleaned,omitempty"` // of Cleanup

	Differing []Difference `json:"differing,omitempty"` // of all but Cleanup: those looked at
	// of DryRun: items whose bucket would be in debt for long
	Ahead []Ahead `json:"ahead,omitempty"`
	Left  []Left  `json:"left,omitempty"` // unmarked items that are not converted, by reason
	// buckets that were made beside their items without taking them over
	Beside []Bucket `json:"beside,omitempty"`
	// buckets that could not be converted, or that differ from their items
	Wrong []Wrong `json:"wrong,omitempty"`
}

// Converted is what was converted, or would be.
type Converted struct {
	Buckets int64   `json:"buckets"`
	Items   int64   `json:"items"`
	Units   int64   `json:"units,omitempty"`   // write units that Convert takes: of DryRun
	Seconds float64 `json:"seconds,omitempty"` // that it takes at the given rate: of DryRun, 0 for no rate
	There   int64   `json:"buckets_there"`     // buckets that others had converted before
}

// Checked is what Verify compared.
type Checked struct {
	Buckets int64 `json:"buckets"`       // that match their items
	Items   int64 `json:"items"`         // that are marked
	Expired int64 `json:"items_expired"` // of them, those whose bucket has expired
	Sums    []Sum `json:"sums,omitempty"`
}

// Sum is what was consumed of a limit, in millitokens: Items is Converted and Expired.
type Sum struct {
	Resource  string `json:"resource"`
	Limit     string `json:"limit"`
	Items     int64  `json:"items_milli"`   // as the marked items have it
	Converted int64  `json:"carried_milli"` // as buckets have it that are there
	Expired   int64  `json:"expired_milli"` // of items whose bucket has expired
	Since     int64  `json:"since_milli"`   // consumed of those buckets since
}

// Cleaned is what Cleanup deleted.
type Cleaned struct {
	Deleted int64 `json:"items_deleted"`
	Expired int64 `json:"items_expired"` // kept: their bucket has expired
	Done    bool  `json:"none_left"`     // the table has no per-limit item any more
}

// Left counts items that are not converted, of a resource, or of a kind or a limit of it.
type Left struct {
	Resource string `json:"resource"`
	Kind     string `json:"kind,omitempty"`
	Limit    string `json:"limit,omitempty"`
	Why      Why    `json:"why"`
	Items    int64  `json:"items"`
}

// Why is why items are not converted.
type Why string

// The reasons.
const (
	NoResource Why = "no such resource in the schema"
	NoBucket   Why = "the kind has no bucket of the resource"
	NoLimit    Why = "no such limit in the schema"
	NotYet     Why = "not converted" // of Verify and Cleanup
)

// Bucket is a bucket's name.
type Bucket struct {
	Entity   string `json:"entity"`
	Resource string `json:"resource"`
}

// Wrong is what is wrong with one bucket.
type Wrong struct {
	Bucket

	What string `json:"what"`
}

// leftOf returns why the item of a limit in g is not converted, if it is not. spec is nil for a resource that
// the schema does not have.
func leftOf(spec *store.Spec, g *group, limit string) (left Left, stays bool) {
	left = Left{Resource: g.resource}
	switch {
	case spec == nil:
		left.Why = NoResource
	case kindOf(spec, g.entity) < 0:
		left.Kind, _, _ = strings.Cut(g.entity, "-")
		left.Why = NoBucket
	case !slices.Contains(spec.Limits, limit) && !slices.Contains(spec.Removed, limit):
		left.Limit, left.Why = limit, NoLimit
	default:
		return left, false
	}
	return left, true
}
