package migrate

import (
	"slices"

	"github.com/sluice-go/sluice/runtime/bucket"
	"github.com/sluice-go/sluice/runtime/dynamo/codec"
	"github.com/sluice-go/sluice/runtime/dynamo/migrating"
	"github.com/sluice-go/sluice/runtime/dynamo/migrating/perlimit"
	"github.com/sluice-go/sluice/runtime/store"
)

// Difference is a bucket whose items had other limits than it has, such as a customer's raised limit that is
// not an override yet.
type Difference struct {
	Bucket

	Limits []Numbers `json:"limits"`
	// the command that has it keep the items' numbers, which the command line knows
	Override string `json:"override,omitempty"`
}

// Numbers is a limit as an item has it, and as its bucket has it.
type Numbers struct {
	Limit  string `json:"limit"`
	Item   Limit  `json:"item"`
	Bucket Limit  `json:"bucket"`
}

// Limit is a bucket.Limit as reports have it.
type Limit struct {
	Capacity int64 `json:"capacity_milli"`
	Burst    int64 `json:"burst_milli"`
	Refill   int64 `json:"refill_amount_milli"`
	Period   int64 `json:"refill_period_ms"`
}

// differs records the limits in which found's items and image differ.
func (c *collector) differs(spec *store.Spec, g *group, found *migrating.Carry) {
	for _, item := range counting(found) {
		if i := slices.Index(spec.Limits, item.Name); i >= 0 {
			c.compare(g, &item, found.Image.Balances[i].Limit)
		}
	}
}

// differsStored records that item and its stored bucket have different limits. A bucket without the limit
// is not compared.
func (c *collector) differsStored(g *group, item *perlimit.Item, stored codec.Item) {
	d := codec.Decoder{Item: stored}
	p := "b_" + item.Name + "_"
	has := bucket.Limit{Capacity: d.Positive(p + "cp"), Burst: d.Positive(p + "bx"),
		Refill: d.Positive(p + "ra"), Period: d.Positive(p + "rp")}
	if d.Err() == nil {
		c.compare(g, item, has)
	}
}

// compare records where item has another limit than its bucket.
func (c *collector) compare(g *group, item *perlimit.Item, has bucket.Limit) {
	if item.Limit == has {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	b := Bucket{g.entity, g.resource}
	if c.differing[b] == nil { // else a page before had others of its items
		c.differing[b] = &Difference{Bucket: b}
	}
	d := c.differing[b]
	d.Limits = append(d.Limits, Numbers{item.Name, Limit(item.Limit), Limit(has)})
}
