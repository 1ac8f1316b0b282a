package migrate

import (
	"cmp"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/sluice-go/sluice/runtime/bucket"
	"github.com/sluice-go/sluice/runtime/dynamo/migrating"
	"github.com/sluice-go/sluice/runtime/store"
)

// collector collects the report. All segments call it concurrently.
type collector struct {
	mu        sync.Mutex
	report    *Report
	lefts     map[Left]int64
	beside    map[Bucket]bool
	differing map[Bucket]*Difference
	sums      map[[2]string]*Sum
}

func newCollector(c Config) *collector {
	r := &Report{Job: c.Job, Table: c.Table, Resource: c.Resource}
	switch c.Job {
	case DryRun, Convert:
		r.Converted = &Converted{}
	case Verify:
		r.Checked = &Checked{}
	case Cleanup:
		r.Cleaned = &Cleaned{}
	}
	return &collector{
		report: r, lefts: map[Left]int64{}, beside: map[Bucket]bool{}, differing: map[Bucket]*Difference{},
		sums: map[[2]string]*Sum{},
	}
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
		return cmp.Or(cmp.Compare(a.Why, b.Why), cmp.Compare(a.Resource, b.Resource), cmp.Compare(a.Kind, b.Kind),
			cmp.Compare(a.Limit, b.Limit))
	})
	r.Beside = slices.SortedFunc(maps.Keys(c.beside), byName)
	slices.SortFunc(r.Ahead, func(a, b Ahead) int {
		return cmp.Or(byName(a.Bucket, b.Bucket),
			cmp.Compare(a.Limit, b.Limit))
	})
	slices.SortFunc(r.Wrong, func(a, b Wrong) int {
		return cmp.Or(byName(a.Bucket, b.Bucket),
			cmp.Compare(a.What, b.What))
	})
	for _, b := range slices.SortedFunc(maps.Keys(c.differing), byName) {
		r.Differing = append(r.Differing, *c.differing[b])
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

// resume records that the run continues at kept.
func (c *collector) resume(kept []*position) {
	c.note(func(r *Report) {
		r.Resumed = true
		for _, p := range kept {
			r.Missed += p.missed
		}
	})
}

// read adds the items and units of a read.
func (c *collector) read(items int64, used *types.ConsumedCapacity) {
	c.note(func(r *Report) {
		r.Scanned += items
		if used != nil {
			r.ReadUnits += aws.ToFloat64(used.CapacityUnits)
		}
	})
}

// wrote adds the units of a write.
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

// converted adds the outcome for one bucket.
func (c *collector) converted(spec *store.Spec, g *group, found *migrating.Carry) {
	if found.State == migrating.Carried || found.State == migrating.Carryable {
		c.differs(spec, g, found)
	}
	c.note(func(r *Report) {
		r.WriteUnits += found.Write
		switch found.State {
		case migrating.Carried, migrating.Carryable:
			n := len(counting(found))
			r.Converted.Buckets++
			r.Converted.Items += int64(n)
			if found.State == migrating.Carryable {
				r.Converted.Units += int64(convertUnits(n))
			}
		case migrating.CarriedOver, migrating.CarryExpired:
			r.Converted.There++
		case migrating.CarryBeside:
			c.beside[Bucket{g.entity, g.resource}] = true
		case migrating.CarryNone: // the items were deleted meanwhile
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
