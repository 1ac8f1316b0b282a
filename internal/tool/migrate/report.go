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
	Resumed  bool   `json:"resumed"`            // it went on where another was ended
	// buckets that were wrong, or beside their items, in the runs before
	Missed     int64   `json:"missed"`
	Scanned    int64   `json:"items_read"` // of whatever kind
	ReadUnits  float64 `json:"read_units"` // of scans, and of buckets read beside them
	WriteUnits float64 `json:"write_units"`
	Seconds    float64 `json:"seconds"`

	Carried *Carried `json:"carried,omitempty"` // of Carry, and what it would be of DryRun
	Checked *Checked `json:"checked,omitempty"` // of Verify
	Cleaned *Cleaned `json:"cleaned,omitempty"` // of Cleanup

	Differing []Difference `json:"differing,omitempty"` // of all but Cleanup: those looked at
	// of DryRun: items whose bucket would be in debt for long
	Ahead []Ahead `json:"ahead,omitempty"`
	Left  []Left  `json:"left,omitempty"` // items that count and are not carried over, by why
	// buckets that were made beside their items without taking them over
	Beside []Bucket `json:"beside,omitempty"`
	// buckets that could not be carried over, or that do not have what their items had
	Wrong []Wrong `json:"wrong,omitempty"`
}

// Carried is what was carried over, or would be.
type Carried struct {
	Buckets int64   `json:"buckets"`
	Items   int64   `json:"items"`
	Units   int64   `json:"units,omitempty"`   // write units that Carry takes: of DryRun
	Seconds float64 `json:"seconds,omitempty"` // that it takes at the given rate: of DryRun, 0 for no rate
	There   int64   `json:"buckets_there"`     // buckets that others had carried over before they were looked at
}

// Checked is what Verify held against each other.
type Checked struct {
	Buckets int64 `json:"buckets"`       // that have what their items had
	Items   int64 `json:"items"`         // that are marked
	Expired int64 `json:"items_expired"` // of them, those whose bucket has expired
	Sums    []Sum `json:"sums,omitempty"`
}

// Sum is what was consumed of a limit, in millitokens: Items is Carried and Expired.
type Sum struct {
	Resource string `json:"resource"`
	Limit    string `json:"limit"`
	Items    int64  `json:"items_milli"`   // as the marked items have it
	Carried  int64  `json:"carried_milli"` // as buckets have it that are there
	Expired  int64  `json:"expired_milli"` // of items whose bucket has expired
	Since    int64  `json:"since_milli"`   // consumed of those buckets since
}

// Cleaned is what Cleanup deleted.
type Cleaned struct {
	Deleted int64 `json:"items_deleted"`
	Expired int64 `json:"items_expired"` // kept: their bucket has expired
	Done    bool  `json:"none_left"`     // the table has no per-limit item any more
}

// Left counts items that stay as they are, of a resource, or of a kind or a limit of it.
type Left struct {
	Resource string `json:"resource"`
	Kind     string `json:"kind,omitempty"`
	Limit    string `json:"limit,omitempty"`
	Why      Why    `json:"why"`
	Items    int64  `json:"items"`
}

// Why says why items stay as they are.
type Why string

// The reasons.
const (
	NoResource Why = "no such resource in the schema"
	NoBucket   Why = "the kind has no bucket of the resource"
	NoLimit    Why = "no such limit in the schema" // strays
	NotYet     Why = "not carried over"            // of Verify and Cleanup
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

// leftOf returns why the item of a limit in g stays as it is, if it does: spec is nil for a resource that the
// schema lacks.
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
