package region

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/sluice-go/sluice/runtime/bucket"
	"github.com/sluice-go/sluice/runtime/store"
)

// plan brings the books up to date, and says what is to be written. Equal books, snapshots and buckets give equal plans.
func (s *Sync) plan(ctx context.Context, peers []*peer, now time.Time, r *Report) []*item {
	s.now = now
	s.evict(peers, now)
	for _, spec := range s.Specs {
		if err := s.configure(ctx, spec); err != nil {
			r.Failed = append(r.Failed, fmt.Errorf("limits of %s: %w", spec.Resource, err))
		}
	}
	s.list(ctx, r)
	s.mirror(peers, now)
	all := known(peers) // else one may know what would forbid it to have more
	presides := all && s.presides(peers, now)
	var items []*item
	for _, bk := range s.books.all() {
		if bk.whole == nil { // what it was restored from says it all, until the limits can be read
			continue
		}
		bk.mature(now.UnixMilli(), s.window())
		if !s.tidy(bk, peers, presides, now) {
			s.books.close(bk)
			continue
		}
		if it := s.decide(bk, peers, presides, all); it != nil {
			items = append(items, it)
		}
	}
	return items
}

// configure reads what all regions have of spec's resource, by kind.
func (s *Sync) configure(ctx context.Context, spec *store.Spec) error {
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
	for _, bk := range s.books.of {
		if bk.spec == spec && !bk.configure(s.whole(spec, bk.Entity)) {
			s.books.close(bk)
		}
	}
	return nil
}

// whole returns what all regions have for an entity, nil where its kind has no bucket, or that is not known.
func (s *Sync) whole(spec *store.Spec, entity string) []bucket.Limit {
	kind, _, _ := strings.Cut(entity, "-")
	for i, limits := range s.limits[spec.Resource] {
		if spec.Kinds[i].Name == kind {
			return limits
		}
	}
	return nil
}

// list reads the buckets. Where they cannot be read, what is known of them is as it was.
func (s *Sync) list(ctx context.Context, r *Report) {
	now, ms := s.Clock.Now(), int64(0)
	if !s.listed.IsZero() {
		ms = now.Sub(s.listed).Milliseconds()
	}
	seen := map[key]*bucket.Image{}
	for _, spec := range s.Specs {
		err := s.Table.Each(ctx, spec.Resource, func(entity string, img *bucket.Image) {
			seen[key{spec.Resource, entity}] = img
		})
		if err != nil {
			r.Failed = append(r.Failed, fmt.Errorf("buckets of %s: %w", spec.Resource, err))
			return
		}
	}
	for k, img := range seen {
		if s.books.of[k] == nil && now.Sub(time.UnixMilli(img.Refilled)) <= s.Unused {
			if spec := s.spec(k.resource); s.whole(spec, k.entity) != nil {
				bk := s.books.open(spec, k.entity, now.UnixMilli())
				bk.configure(s.whole(spec, k.entity))
				bk.observe(s.buckets[k], now.UnixMilli(), 0, s.window())
			}
		}
	}
	for k, bk := range s.books.of {
		if bk.whole != nil {
			bk.observe(seen[k], now.UnixMilli(), ms, s.window())
		}
	}
	s.listed, s.buckets = now, seen
}

// spec returns the spec of a resource, nil if it is not shared out.
func (s *Sync) spec(resource string) *store.Spec {
	for _, spec := range s.Specs {
		if spec.Resource == resource {
			return spec
		}
	}
	return nil
}

// decide moves what can be moved of bk's limits, and returns what is to be written so that more can be, nil for nothing.
func (s *Sync) decide(bk *book, peers []*peer, presides, mayRaise bool) *item {
	decisions := make([]decision, len(bk.Limits))
	write, lowers := bk.doubt || bk.contradicts(s.window()), false
	doubt := write
	for i := range bk.Limits {
		d := s.settle(bk, i, peers, presides)
		if !mayRaise && d.to > bk.Limits[i].Written {
			d = decision{to: bk.Limits[i].Written}
		}
		write, lowers = write || d.why != "", lowers || d.to < bk.Limits[i].Written
		decisions[i] = d
	}
	if !write || s.operated(bk) || bk.maturing() && !doubt {
		return nil
	}
	it := &item{book: bk, Write: Write{Entity: bk.Entity, Resource: bk.Resource}, forget: bk.Closing}
	for i, d := range decisions {
		h := &bk.Limits[i]
		to, why := d.to, d.why
		switch {
		case lowers: // what is to be raised waits for the next cycle, for one write each
			to = min(to, bk.Limits[i].Written)
		case why == "" && mayRaise && !doubt && d.due > h.Share && bk.Limits[i].Written == h.Share:
			to, why = d.due, Beside
		}
		if doubt && why == "" {
			why = Doubt
		}
		if to > h.Share {
			h.Share, it.raises, bk.Raising = to, true, true
		}
		it.to = append(it.to, to)
		if to != bk.Limits[i].Written || why == Doubt || it.forget {
			it.Limits = append(it.Limits, Moved{Limit: h.Limit, Trigger: why, Whole: h.Whole, From: bk.Limits[i].Written, To: to})
		}
	}
	return it
}

// operated reports that an operator's override was found in place of bk's share, so lately that it is not worth another write.
func (s *Sync) operated(bk *book) bool {
	return bk.tried != 0 && s.now.UnixMilli()-bk.tried < operatedWindows*s.window()
}

// operatedWindows is for how many windows an operator's override is left alone before a write finds out whether it is still there.
const operatedWindows = 6
