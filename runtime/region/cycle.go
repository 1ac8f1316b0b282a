package region

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/sluice-go/sluice/runtime/bucket"
	"github.com/sluice-go/sluice/runtime/region/images"
	"github.com/sluice-go/sluice/runtime/store"
)

// planner decides on the writes of a cycle.
type planner struct{ membership }

func newPlanner(s *Sync) planner { return planner{membership{s}} }

// plan brings the books up to date, and returns the writes of this cycle. Equal books, snapshots and buckets
// give equal plans.
func (s planner) plan(ctx context.Context, peers []*peer, now time.Time, r *Report) []*item {
	s.now = now
	configured := make(map[*store.Spec]bool, len(s.Specs))
	for _, spec := range s.Specs {
		err := s.configure(ctx, spec)
		if configured[spec] = err == nil; err != nil {
			r.Failed = append(r.Failed, fmt.Errorf("limits of %s: %w", spec.Resource, err))
		}
	}
	for _, bk := range s.books.of {
		if configured[bk.spec] && !bk.configure(s.whole(bk.spec, bk.Entity)) {
			s.books.close(bk)
		}
	}
	refuse(s, peers, r)
	s.evict(peers, now)
	s.list(ctx, r)
	s.mirror(peers, now)
	all := allRead(peers) // a peer that was not read may know a reason not to raise a quota
	coordinates := all && s.coordinates(peers, now)
	var items []*item
	for _, bk := range s.books.all() {
		if bk.whole == nil { // restored: it stays as published until the limits can be read
			continue
		}
		bk.mature(now.UnixMilli(), s.window())
		if !s.tidy(bk, peers, coordinates, now) {
			s.books.close(bk)
			continue
		}
		if it := s.decide(bk, peers, coordinates, all); it != nil {
			items = append(items, it)
		}
	}
	return items
}

// configure reads the limits of spec's resource for all regions together, by kind.
func (s planner) configure(ctx context.Context, spec *store.Spec) error {
	var names []string
	for i := range spec.Kinds {
		if spec.Kinds[i].Limits != nil {
			names = append(names, spec.Kinds[i].Name)
		}
	}
	stored, err := s.Table.Get(ctx, spec, names...)
	if err != nil {
		return err
	}
	limits := make([][]bucket.Limit, len(spec.Kinds))
	for i := range spec.Kinds {
		if spec.Kinds[i].Limits != nil {
			limits[i], stored = store.Resolve(spec.Kinds[i].Limits, stored[0]), stored[1:]
		}
	}
	s.limits[spec.Resource] = limits
	return nil
}

// whole returns an entity's limits for all regions together, nil if its kind has no bucket or they are not
// known.
func (s planner) whole(spec *store.Spec, entity string) []bucket.Limit {
	kind, _, _ := strings.Cut(entity, "-")
	for i, limits := range s.limits[spec.Resource] {
		if spec.Kinds[i].Name == kind {
			return limits
		}
	}
	return nil
}

// list observes the buckets. If it fails, the books keep what they have.
func (s planner) list(ctx context.Context, r *Report) {
	now, ms := s.Clock.Now(), int64(0)
	if !s.listed.IsZero() {
		ms = now.Sub(s.listed).Milliseconds()
	}
	if err := s.refresh(ctx, now, r); err != nil {
		r.Failed = append(r.Failed, err)
		keepInUse(s.Sync, now)
		return
	}
	seen := make(map[key]*bucket.Image, len(s.books.of))
	s.images.Observe(func(at images.Key, img, before *bucket.Image) {
		k := key{at.Resource, at.Entity}
		if s.books.of[k] == nil && img != nil && now.Sub(time.UnixMilli(img.Refilled)) <= s.Unused {
			if spec := s.spec(k.resource); s.whole(spec, k.entity) != nil {
				bk := s.books.open(spec, k.entity, now.UnixMilli())
				bk.configure(s.whole(spec, k.entity))
				bk.observe(before, now.UnixMilli(), 0, s.window())
			}
		}
		seen[k] = img
	})
	for k, bk := range s.books.of {
		if bk.whole != nil {
			bk.observe(seen[k], now.UnixMilli(), ms, s.window())
		}
	}
	s.listed = now
	keepInUse(s.Sync, now)
}

// refresh reads the buckets if it has to: always, without Config.Images.
func (s planner) refresh(ctx context.Context, now time.Time, r *Report) error {
	if s.Config.Images == nil {
		return s.images.Read(ctx, s.Table, s.Specs, now, images.Start)
	}
	slack := max(streamWindows*s.regions.Window, leastSlack)
	if r.Missed = s.images.Missed(now, slack); r.Missed > 0 {
		s.Logger.Warn("sluice: an audit has found buckets whose writes the table's stream did not have",
			"region", s.Region, "buckets", r.Missed)
	}
	why, err := s.images.Due(now, s.Audit, slack)
	if err != nil || why == "" {
		return err
	}
	r.Read = why
	return s.images.Read(ctx, s.Table, s.Specs, now, why)
}

// The images of a stream that is behind by more than that are not used.
const (
	streamWindows = 2
	leastSlack    = 10 * time.Second
)

// keepInUse has a book count as used unless a full read has confirmed that it is not: a stream may have lost
// the only record of a call. A book that closes too early would grant tokens again that were used.
func keepInUse(s *Sync, now time.Time) {
	margin, readAt := min(minEvictWindows*s.regions.Window, s.Unused/2), s.images.ReadAt()
	for _, bk := range s.books.of {
		due := time.UnixMilli(bk.Used).Add(s.Unused - margin)
		if !now.Before(due) && readAt.Before(due) {
			bk.Used = now.Add(margin - s.Unused).UnixMilli()
		}
	}
}

// spec returns the spec of a resource, nil if it is not divided among regions.
func (s planner) spec(resource string) *store.Spec {
	for _, spec := range s.Specs {
		if spec.Resource == resource {
			return spec
		}
	}
	return nil
}

// decide moves tokens of bk's limits in the books where it can already. It returns the write that has to come
// before more can be moved, nil for none.
func (s planner) decide(bk *book, peers []*peer, coordinates, mayRaise bool) *item {
	decisions := make([]decision, len(bk.Limits))
	write, lowers := bk.doubt || bk.contradicts(s.window()), false
	doubt := write
	for i := range bk.Limits {
		d := s.move(bk, i, peers, coordinates)
		if !mayRaise && d.to > bk.Limits[i].Written {
			d = decision{to: bk.Limits[i].Written}
		}
		write, lowers = write || d.why != "", lowers || d.to < bk.Limits[i].Written
		decisions[i] = d
	}
	if !write || s.operated(bk) || bk.maturing() && !doubt || lowers && !doubt && s.awaitsGrant(bk, decisions) {
		return nil
	}
	it := &item{book: bk, Write: Write{Entity: bk.Entity, Resource: bk.Resource}, tombstone: bk.Closing}
	bk.Fresh = bk.Fresh && !lowers
	for i, d := range decisions {
		h := &bk.Limits[i]
		to, why := d.to, d.why
		switch {
		case lowers: // raise in the next cycle: a write either raises or lowers
			to = min(to, bk.Limits[i].Written)
		case why == "" && mayRaise && !doubt && d.target > h.Quota && bk.Limits[i].Written == h.Quota:
			to, why = d.target, Alongside
		}
		if doubt && why == "" {
			why = Doubt
		}
		grant := int64(0)
		if to > h.Quota {
			grant = bk.grantFor(i, to)
			h.Quota, it.raises, bk.Raising = to, true, true
		}
		it.grants = append(it.grants, grant)
		it.to = append(it.to, to)
		if to != bk.Limits[i].Written || why == Doubt || it.tombstone {
			it.Limits = append(it.Limits, Change{Limit: h.Limit, Trigger: why, Whole: h.Whole,
				From: bk.Limits[i].Written, To: to})
		}
	}
	return it
}

// operated reports whether a write recently found an operator's override in place of bk's quota, so that
// another one is not worth its cost yet.
func (s planner) operated(bk *book) bool {
	return bk.tried != 0 && s.now.UnixMilli()-bk.tried < operatedWindows*s.window()
}

// operatedWindows is the number of windows after which a write checks again whether an operator's override is
// still there.
const operatedWindows = 6
