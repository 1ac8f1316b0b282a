package migrate

import (
	"context"
	"fmt"
	"slices"

	"github.com/sluice-go/sluice/runtime/dynamo/codec"
	"github.com/sluice-go/sluice/runtime/dynamo/migrating"
	"github.com/sluice-go/sluice/runtime/dynamo/migrating/perlimit"
	"github.com/sluice-go/sluice/runtime/store"
)

// verify compares all per-limit items with the buckets that they were converted into.
func (r *run) verify(ctx context.Context) error {
	carrier := migrating.NewCarrier(r.Client, r.Table, r.Now)
	return r.scan(ctx, scan{consistent: true,
		page: func(ctx context.Context, groups []*group) (came tally, err error) {
			buckets, err := r.buckets(ctx, groups, "")
			if err != nil {
				return came, err
			}
			for _, g := range groups {
				if err := r.check(ctx, carrier, g, buckets[g.key()]); err != nil {
					return came, err
				}
				for range g.items {
					r.progress.add(1, true)
				}
				came.shown += int64(len(g.items))
			}
			return came, nil
		}})
}

// check compares the items of g with their bucket, which is nil if there is none. The bucket was read after
// the items, so one that was converted in between looks as if it ignored them. If an item is not marked,
// check therefore reads items and bucket again.
func (r *run) check(ctx context.Context, carrier *migrating.Carrier, g *group, stored codec.Item) error {
	spec := r.spec(g.resource)
	items := r.report.decode(g)
	counts := func(i perlimit.Item) bool {
		_, stays := leftOf(spec, g, i.Name)
		return i.Counts() && !stays
	}
	if slices.ContainsFunc(items, counts) {
		found, err := carrier.Look(ctx, spec, g.entity)
		switch {
		case err != nil && stops(err):
			return err
		case err != nil: // it cannot be converted: the first read stands
		case found.State == migrating.Carryable:
			stored = nil
		default:
			buckets, err := r.buckets(ctx, []*group{g}, "")
			if err != nil {
				return err
			}
			stored = buckets[g.key()]
		}
		if err == nil { // other pages have the bucket's other items
			items = slices.DeleteFunc(found.Items,
				func(i perlimit.Item) bool { return !slices.Contains(g.names, i.Name) })
		}
	}
	r.report.verify(spec, g, items, stored)
	return nil
}

// decode reads the items of g, and reports those that are malformed.
func (c *collector) decode(g *group) (items []perlimit.Item) {
	for i, raw := range g.items {
		item, err := perlimit.Decode(raw)
		if err != nil {
			c.wrong(g, fmt.Sprintf("the item of limit %s is malformed: %v; fix or delete it", g.names[i], err))
			continue
		}
		items = append(items, item)
	}
	return items
}

// verify compares items of g with their bucket, which is nil if there is none.
func (c *collector) verify(spec *store.Spec, g *group, items []perlimit.Item, stored codec.Item) {
	all, marked, ok := 0, 0, true
	for i := range items {
		item := &items[i]
		if item.Counts() {
			c.unmarked(spec, g, item, stored)
			continue
		}
		marked++
		if spec == nil || !slices.Contains(spec.Limits, item.Name) { // the bucket dropped it
			continue
		}
		all++
		c.differsStored(g, item, stored)
		if what := c.took(item, stored); what != "" {
			c.wrong(g, what)
			ok = false
		}
	}
	c.note(func(r *Report) {
		r.Checked.Items += int64(marked)
		switch {
		case stored == nil || !wasConverted(stored):
			r.Checked.Expired += int64(marked)
		case ok && all > 0 && !g.done:
			r.Checked.Buckets++
			g.done = true
		}
	})
}

// unmarked records an item that is not converted.
func (c *collector) unmarked(spec *store.Spec, g *group, item *perlimit.Item, stored codec.Item) {
	left, stays := leftOf(spec, g, item.Name)
	switch {
	case stays:
		c.left(left)
	case stored == nil:
		c.left(Left{Resource: g.resource, Limit: item.Name, Why: NotYet})
	default:
		c.note(func(*Report) { c.beside[Bucket{g.entity, g.resource}] = true })
	}
}

// wasConverted reports that a bucket was made of per-limit items. A bucket that was created full after the
// converted one had expired is not.
func wasConverted(stored codec.Item) bool {
	for attr := range stored {
		if len(attr) > 2 && attr[:2] == "m_" {
			return true
		}
	}
	return false
}

// took adds item and its bucket to the sums. It returns what differs between them, or an empty string.
func (c *collector) took(item *perlimit.Item, stored codec.Item) (wrong string) {
	if stored == nil || !wasConverted(stored) {
		c.sum(item.Resource, item.Name, func(s *Sum) {
			plus(&s.Items, item.Consumed)
			plus(&s.Expired, item.Consumed)
		})
		return ""
	}
	m, tc := "m_"+item.Name, "b_"+item.Name+"_tc"
	d := codec.Decoder{Item: stored}
	converted, consumed := d.Int(m), d.Int(tc)
	if d.Err() != nil {
		c.sum(item.Resource, item.Name, func(s *Sum) { plus(&s.Items, item.Consumed) })
		return d.Err().Error()
	}
	c.sum(item.Resource, item.Name, func(s *Sum) {
		plus(&s.Items, item.Consumed)
		plus(&s.Converted, converted)
		plus(&s.Since, consumed-converted)
	})
	switch {
	case converted != item.Consumed:
		return fmt.Sprintf("%s is %d, and the item has %s %d", m, converted, perlimit.Consumed, item.Consumed)
	case consumed < converted:
		return fmt.Sprintf("%s is %d, below the %d that was converted", tc, consumed, converted)
	}
	return ""
}
