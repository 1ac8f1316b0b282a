package regionsim

import (
	"slices"
	"strconv"
	"time"

	"github.com/sluice-go/sluice/runtime/bucket"
	"github.com/sluice-go/sluice/runtime/store"
)

// table is a region's, as it is stored, and as it was for as long as somebody may remember that.
type table struct {
	world   *world
	home    *home
	entries []entry         // by series
	kinds   [][]whole       // by resource, what its kind's override made of each limit
	decided []time.Duration // by resource, when
	beat    beat
}

// entry is the config item of an entity, in this version and those before.
type entry struct {
	version int64
	terms
	past []terms
}

// terms are what an entry says, until it says something else.
type terms struct {
	limits   []*bucket.Limit
	epoch    int64
	operator bool
	until    time.Duration
}

// beat is the heartbeat, and those before.
type beat struct {
	store.Heartbeat
	past []struct {
		store.Heartbeat
		until time.Duration
	}
}

// whole is a limit of all regions together, and what it was.
type whole struct {
	bucket.Limit
	override *bucket.Limit // nil where the schema says it
	version  int64
	past     []struct {
		bucket.Limit
		until time.Duration
	}
}

func newTable(w *world, h *home) *table {
	t := &table{world: w, home: h, entries: make([]entry, len(w.series)),
		decided: make([]time.Duration, len(w.Resources))}
	for _, r := range w.Resources {
		var all []whole
		for _, l := range r.Limits {
			all = append(all, whole{Limit: l.Whole})
		}
		t.kinds = append(t.kinds, all)
	}
	return t
}

// remembered reports that somebody may still know what was so until then.
func (t *table) remembered(until time.Duration) bool { return until > t.world.now-t.world.Keep }

// put stores what an entry says now.
func (t *table) put(s *series, now terms, version int64) {
	t.world.flow(t.home, t.home.flows[s.index])
	e := &t.entries[s.index]
	e.until = t.world.now
	e.past = append(slices.DeleteFunc(e.past, func(p terms) bool { return !t.remembered(p.until) }), e.terms)
	e.terms, e.version = now, max(version, e.version+1)
}

// overrides reports that what e says is a quota, or an operator's.
func (e terms) overrides() bool {
	return slices.ContainsFunc(e.limits, func(l *bucket.Limit) bool { return l != nil })
}

// pulse stores h.
func (t *table) pulse(h store.Heartbeat) {
	t.world.pour(t.home)
	b := &t.beat
	b.past = slices.DeleteFunc(b.past, func(p struct {
		store.Heartbeat
		until time.Duration
	},
	) bool {
		return !t.remembered(p.until)
	})
	b.past = append(b.past, struct {
		store.Heartbeat
		until time.Duration
	}{b.Heartbeat, t.world.now})
	b.Heartbeat = h
}

// override stores what the kind's override makes of a limit: nil takes it away.
func (t *table) override(resource, limit int, l *bucket.Limit) {
	t.world.pour(t.home)
	k := &t.kinds[resource][limit]
	k.past = append(k.past, struct {
		bucket.Limit
		until time.Duration
	}{k.Limit, t.world.now})
	k.Limit, k.override = t.world.Resources[resource].Limits[limit].Whole, l
	if l != nil {
		k.Limit = *l
	}
	k.version = max(k.version+1, t.world.millis(0))
}

// inForce is what a process that reads everything at an instant uses.
func (t *table) inForce(s *series, limit int, now int64) bucket.Limit {
	e := &t.entries[s.index]
	switch l := limitOf(e.terms, limit); {
	case l != nil && (e.operator || e.epoch == t.beat.Epoch && t.beat.Alive(now)):
		return *l
	default:
		return t.world.specs[0].Regions.Keeps(t.kinds[s.resource][limit].Limit)
	}
}

// most is the most that any process may use now, in tokens. An operator's override counts as the floor.
func (t *table) most(s *series, limit int) int64 {
	k := &t.kinds[s.resource][limit]
	most := t.world.keeps(k.Limit)
	for _, p := range k.past {
		if t.remembered(p.until) {
			most = max(most, t.world.keeps(p.Limit))
		}
	}
	e, slow := &t.entries[s.index], t.world.millis(-t.world.Skew)
	quota := func(of terms) {
		if l := limitOf(of, limit); l != nil && !of.operator && t.alive(of.epoch, slow) {
			most = max(most, l.Capacity/bucket.Milli)
		}
	}
	quota(e.terms)
	for _, p := range e.past {
		if t.remembered(p.until) {
			quota(p)
		}
	}
	return most
}

// alive reports that somebody may believe that quotas of epoch are in force.
func (t *table) alive(epoch, now int64) bool {
	if t.beat.Epoch == epoch && t.beat.Alive(now) {
		return true
	}
	for _, p := range t.beat.past {
		if p.Epoch == epoch && p.Alive(now) && t.remembered(p.until) {
			return true
		}
	}
	return false
}

func limitOf(of terms, i int) *bucket.Limit {
	if i < len(of.limits) {
		return of.limits[i]
	}
	return nil
}

// stored is a version as callers are told it.
func stored(at string, limits []*bucket.Limit, n int, epoch, version int64) store.Stored {
	s := store.Stored{At: at, Limits: make([]*bucket.Limit, n), Epoch: epoch}
	copy(s.Limits, limits)
	if version > 0 {
		s.Revision = store.Revision(strconv.FormatInt(version, 10))
	}
	return s
}
