package migrate

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/sluice-go/sluice/runtime"
	"github.com/sluice-go/sluice/runtime/bucket"
	"github.com/sluice-go/sluice/runtime/dynamo"
)

// Report is what a run found and did. Lists are sorted.
type Report struct {
	Job        Job     `json:"job"`
	Table      string  `json:"table"`
	Resource   string  `json:"resource,omitempty"` // the one that it was for; empty for all
	Complete   bool    `json:"complete"`           // it came to its end
	Resumed    bool    `json:"resumed"`            // it went on where another was ended
	Missed     int64   `json:"missed"`             // buckets that were wrong, or beside their items, in the runs before
	Scanned    int64   `json:"items_read"`         // of whatever kind
	ReadUnits  float64 `json:"read_units"`         // of scans, and of buckets read beside them
	WriteUnits float64 `json:"write_units"`
	Seconds    float64 `json:"seconds"`

	Carried *Carried `json:"carried,omitempty"` // of Carry, and what it would be of DryRun
	Checked *Checked `json:"checked,omitempty"` // of Verify
	Cleaned *Cleaned `json:"cleaned,omitempty"` // of Cleanup

	Left   []Left   `json:"left,omitempty"`   // items that count and are not carried over, by why
	Beside []Bucket `json:"beside,omitempty"` // buckets that were made beside their items without taking them over
	Wrong  []Wrong  `json:"wrong,omitempty"`  // buckets that could not be carried over, or that do not have what their items had
}

// Carried is what was carried over, or would be.
type Carried struct {
	Buckets   int64        `json:"buckets"`
	Items     int64        `json:"items"`
	Units     int64        `json:"units,omitempty"`   // write units that Carry takes: of DryRun
	Seconds   float64      `json:"seconds,omitempty"` // that it takes at the given rate: of DryRun, 0 for no rate
	There     int64        `json:"buckets_there"`     // buckets that others had carried over before they were looked at
	Differing []Difference `json:"differing,omitempty"`
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

// leftOf returns why the item of a limit in g stays as it is, if it does: spec is nil for a resource that the schema lacks.
func leftOf(spec *runtime.Spec, g *group, limit string) (left Left, stays bool) {
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

// collector makes a report of what segments tell it, all at once.
type collector struct {
	mu     sync.Mutex
	report *Report
	lefts  map[Left]int64
	beside map[Bucket]bool
	sums   map[[2]string]*Sum
}

func newCollector(c Config) *collector {
	r := &Report{Job: c.Job, Table: c.Table, Resource: c.Resource}
	switch c.Job {
	case DryRun, Carry:
		r.Carried = &Carried{}
	case Verify:
		r.Checked = &Checked{}
	case Cleanup:
		r.Cleaned = &Cleaned{}
	}
	return &collector{report: r, lefts: map[Left]int64{}, beside: map[Bucket]bool{}, sums: map[[2]string]*Sum{}}
}

// close returns the report.
func (c *collector) close(complete bool, took time.Duration) *Report {
	c.mu.Lock()
	defer c.mu.Unlock()
	r := c.report
	r.Complete, r.Seconds = complete, took.Seconds()
	for left, items := range c.lefts {
		left.Items = items
		r.Left = append(r.Left, left)
	}
	slices.SortFunc(r.Left, func(a, b Left) int {
		return cmp.Or(cmp.Compare(a.Why, b.Why), cmp.Compare(a.Resource, b.Resource), cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Limit, b.Limit))
	})
	r.Beside = slices.SortedFunc(maps.Keys(c.beside), byName)
	slices.SortFunc(r.Wrong, func(a, b Wrong) int { return cmp.Or(byName(a.Bucket, b.Bucket), cmp.Compare(a.What, b.What)) })
	if r.Carried != nil {
		slices.SortFunc(r.Carried.Differing, func(a, b Difference) int {
			return byName(Bucket{a.Entity, a.Resource}, Bucket{b.Entity, b.Resource})
		})
	}
	for _, sum := range c.sums {
		r.Checked.Sums = append(r.Checked.Sums, *sum)
	}
	if r.Checked != nil {
		slices.SortFunc(r.Checked.Sums, func(a, b Sum) int {
			return cmp.Or(cmp.Compare(a.Resource, b.Resource), cmp.Compare(a.Limit, b.Limit))
		})
	}
	return r
}

func byName(a, b Bucket) int {
	return cmp.Or(cmp.Compare(a.Resource, b.Resource), cmp.Compare(a.Entity, b.Entity))
}

func (c *collector) note(f func(*Report)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	f(c.report)
}

// resume notes that kept is where other runs were.
func (c *collector) resume(kept []*position) {
	c.note(func(r *Report) {
		r.Resumed = true
		for _, p := range kept {
			r.Missed += p.missed
		}
	})
}

// read adds what a read came to.
func (c *collector) read(items int64, used *types.ConsumedCapacity) {
	c.note(func(r *Report) {
		r.Scanned += items
		if used != nil {
			r.ReadUnits += aws.ToFloat64(used.CapacityUnits)
		}
	})
}

// wrote adds what a write cost.
func (c *collector) wrote(used *types.ConsumedCapacity) {
	if used != nil {
		c.note(func(r *Report) { r.WriteUnits += aws.ToFloat64(used.CapacityUnits) })
	}
}

func (c *collector) left(l Left) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.lefts[l]++
}

// carried adds what became of a bucket.
func (c *collector) carried(spec *runtime.Spec, g *group, found *dynamo.Carry) {
	c.note(func(r *Report) {
		r.WriteUnits += found.Write
		switch found.State {
		case dynamo.Carried, dynamo.Carryable:
			n := len(counting(found))
			r.Carried.Buckets++
			r.Carried.Items += int64(n)
			if found.State == dynamo.Carryable {
				r.Carried.Units += int64(carryUnits(n))
			}
			if d := differing(spec, g, found); d != nil {
				r.Carried.Differing = append(r.Carried.Differing, *d)
			}
		case dynamo.CarriedOver, dynamo.CarryExpired:
			r.Carried.There++
		case dynamo.CarryBeside:
			c.beside[Bucket{g.entity, g.resource}] = true
		case dynamo.CarryNone: // the items were deleted meanwhile
		}
	})
}

func (c *collector) wrong(g *group, what string) {
	c.note(func(r *Report) { r.Wrong = append(r.Wrong, Wrong{Bucket{g.entity, g.resource}, what}) })
}

// sum adds to the sums of a limit.
func (c *collector) sum(resource, limit string, add func(*Sum)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	key := [2]string{resource, limit}
	if c.sums[key] == nil {
		c.sums[key] = &Sum{Resource: resource, Limit: limit}
	}
	add(c.sums[key])
}

// plus adds up, saturated, as totals of many buckets may be more than int64 holds.
func plus(to *int64, n int64) { *to = bucket.Add(*to, n) }
