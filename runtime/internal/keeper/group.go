package keeper

import (
	"slices"
	"time"

	"github.com/sluice-go/sluice/runtime/bucket"
	"github.com/sluice-go/sluice/runtime/store"
)

// group is what one write extends: holds of one bucket, in one epoch and one window for each limit.
type group struct {
	key

	def     store.Definition
	bucket  store.Bucket // its only charge is the sum
	members []member
}

// key names a bucket. A store may need the root of its chain to find it.
type key struct{ resource, entity, root string }

// member is a charge that takes part in a group.
type member struct {
	*task
	place
}

// groups returns what is due at now, in ms, in as few groups as possible.
func groups(due []*task, now int64) (all []*group) {
	found := map[key][]*group{}
	for _, t := range due {
		part := t.record.Part()
		for c, at := range charges(part) {
			if !anyDue(c, now) {
				continue
			}
			b := &part.Buckets[at.bucket]
			k := key{part.Def.Spec().ResourceOf(b.Kind), b.Entity, part.Buckets[len(part.Buckets)-1].Entity}
			i := slices.IndexFunc(found[k], func(g *group) bool { return g.fits(c, now) })
			if i < 0 {
				g := &group{key: k, def: part.Def, bucket: b.Unfilled()}
				g.bucket.Charges = []bucket.Charge{{
					Cost: make([]int64, len(c.Cost)), Ends: make([]int64, len(c.Cost)), Epochs: make([]int64, len(c.Cost)),
				}}
				i, found[k] = len(found[k]), append(found[k], g)
				all = append(all, g)
			}
			found[k][i].add(member{t, at}, c, now)
		}
	}
	return all
}

// anyDue reports whether a hold of c is due at now, in ms.
func anyDue(c *bucket.Charge, now int64) bool {
	for i := range c.Cost {
		if isDue(c, i, now) {
			return true
		}
	}
	return false
}

// fits reports whether c can be added to g: what is due of c at now, in ms, has the epochs and windows of g.
func (g *group) fits(c *bucket.Charge, now int64) bool {
	sum := &g.bucket.Charges[0]
	for i := range c.Cost {
		if isDue(c, i, now) && sum.Cost[i] > 0 && (sum.Epochs[i] != c.Epochs[i] || sum.Ends[i] != window(c, i)) {
			return false
		}
	}
	return true
}

// add adds what is due of c at now, in ms.
func (g *group) add(m member, c *bucket.Charge, now int64) {
	sum := &g.bucket.Charges[0]
	for i, n := range c.Cost {
		if isDue(c, i, now) {
			sum.Cost[i] = bucket.Add(sum.Cost[i], n)
			sum.Epochs[i], sum.Ends[i] = c.Epochs[i], window(c, i)
		}
	}
	g.members = append(g.members, m)
	m.pending.Add(1)
}

// window returns the end of the window that c was taken from, 0 for none.
func window(c *bucket.Charge, i int) int64 {
	if i >= len(c.Ends) {
		return 0
	}
	return c.Ends[i]
}

// until returns when the first hold of g is lost, in ms.
func (g *group) until() int64 {
	first := int64(0)
	for i := range g.bucket.Charges[0].Cost {
		if end, live := ends(&g.bucket.Charges[0], i); live && (first == 0 || end < first) {
			first = end
		}
	}
	return first - margin
}

// call returns the call that extends g.
func (g *group) call(called time.Time) *store.Call {
	return &store.Call{Called: called, Parts: []store.Part{{
		Def: g.def, Buckets: []store.Bucket{g.bucket}, Cost: g.bucket.Charges[0].Cost, Root: g.root,
	}}}
}
