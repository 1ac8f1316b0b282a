package migrate

import (
	"context"
	"fmt"
	"slices"

	"github.com/sluice-go/sluice/runtime"
	"github.com/sluice-go/sluice/runtime/dynamo/codec"
	"github.com/sluice-go/sluice/runtime/dynamo/perlimit"
)

// verify holds all per-limit items against the buckets that took them over.
func (r *run) verify(ctx context.Context) error {
	return r.scan(ctx, scan{consistent: true, page: func(ctx context.Context, groups []*group) (came tally, err error) {
		buckets, err := r.buckets(ctx, groups, "")
		if err != nil {
			return came, err
		}
		for _, g := range groups {
			r.report.verify(r.spec(g.resource), g, buckets[g.key()])
			for range g.items {
				r.progress.add(1, true)
			}
			came.told += int64(len(g.items))
		}
		return came, nil
	}})
}

// verify holds the items of g against their bucket, nil where there is none.
func (c *collector) verify(spec *runtime.Spec, g *group, stored codec.Item) {
	all, marked, ok := 0, 0, true
	for i, raw := range g.items {
		item, err := perlimit.Decode(raw)
		switch {
		case err != nil:
			c.wrong(g, fmt.Sprintf("the item of limit %s is malformed: %v", g.names[i], err))
			continue
		case item.Counts():
			c.unmarked(spec, g, &item, stored)
			continue
		}
		marked++
		if spec == nil || !slices.Contains(spec.Limits, item.Name) { // the bucket dropped it
			continue
		}
		all++
		if what := c.took(&item, stored); what != "" {
			c.wrong(g, what)
			ok = false
		}
	}
	c.note(func(r *Report) {
		r.Checked.Items += int64(marked)
		switch {
		case stored == nil || !carriedOver(stored):
			r.Checked.Expired += int64(marked)
		case ok && all > 0 && !g.done:
			r.Checked.Buckets++
			g.done = true
		}
	})
}

// unmarked notes an item that counts still.
func (c *collector) unmarked(spec *runtime.Spec, g *group, item *perlimit.Item, stored codec.Item) {
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

// carriedOver reports that a bucket was made of per-limit items, and not anew since that one has expired: full.
func carriedOver(stored codec.Item) bool {
	for attr := range stored {
		if len(attr) > 2 && attr[:2] == "m_" {
			return true
		}
	}
	return false
}

// took adds item and its bucket to the sums, and says what the bucket does not have of it.
func (c *collector) took(item *perlimit.Item, stored codec.Item) (wrong string) {
	if stored == nil || !carriedOver(stored) {
		c.sum(item.Resource, item.Name, func(s *Sum) {
			plus(&s.Items, item.Consumed)
			plus(&s.Expired, item.Consumed)
		})
		return ""
	}
	m, tc := "m_"+item.Name, "b_"+item.Name+"_tc"
	d := codec.Decoder{Item: stored}
	carried, consumed := d.Int(m), d.Int(tc)
	if d.Err() != nil {
		c.sum(item.Resource, item.Name, func(s *Sum) { plus(&s.Items, item.Consumed) })
		return d.Err().Error()
	}
	c.sum(item.Resource, item.Name, func(s *Sum) {
		plus(&s.Items, item.Consumed)
		plus(&s.Carried, carried)
		plus(&s.Since, consumed-carried)
	})
	switch {
	case carried != item.Consumed:
		return fmt.Sprintf("%s is %d, and the item has %s %d", m, carried, perlimit.Consumed, item.Consumed)
	case consumed < carried:
		return fmt.Sprintf("%s is %d, below the %d that was carried over", tc, consumed, carried)
	}
	return ""
}
