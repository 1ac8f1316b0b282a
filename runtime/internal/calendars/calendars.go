// Package calendars finds the calendars of entities' own windows (starts: entity, zone: entity).
package calendars

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/sluice-go/sluice/runtime/bucket"
	"github.com/sluice-go/sluice/runtime/store"
)

// Member returns what is stored of an entity, by its stored id. It is that of a store.Session.
type Member func(ctx context.Context, entity string) (m store.Member, found bool, err error)

// Chain returns the stored ids of links, an entity's chain, as far as they are given. It returns nil if no
// windows of spec depend on the entity.
func Chain(spec *store.Spec, links []store.Link) (ids []string) {
	own := false
	for i := range spec.Kinds {
		own = own || spec.Kinds[i].OwnWindows()
	}
	if !own {
		return nil
	}
	for _, link := range links {
		if link.ID == "" {
			break
		}
		ids = append(ids, spec.Kinds[link.Kind].Prefix+link.ID)
	}
	return ids
}

// Set sets Windows of those of buckets that have windows of their own. chain holds the stored ids of an
// entity and of its ancestors as the caller gave them, nearest first. It continues by the parents that are
// stored. The calendar of a bucket is that of its entity, else of the nearest ancestor that has one, else the
// default. Set fails with the error of member.
func Set(
	ctx context.Context, spec *store.Spec, buckets []store.Bucket, chain []string, member Member,
) error {
	l := lineage{
		spec: spec, ids: chain, member: member,
		known: make([]store.Member, len(chain)), asked: make([]bool, len(chain)),
	}
	for i := range buckets {
		b := &buckets[i]
		kind := &spec.Kinds[b.Kind]
		if !kind.OwnWindows() {
			continue
		}
		since, err := l.since(ctx, b.Entity)
		if err != nil {
			return err
		}
		b.Windows = make([]*bucket.Calendar, len(kind.Windows))
		for j, c := range kind.Windows {
			if b.Windows[j] = c; c != nil && c.Own() && !since.IsZero() {
				b.Windows[j] = c.Of(since)
			}
		}
	}
	return nil
}

// lineage is an entity and its ancestors, as far as they are known.
type lineage struct {
	spec   *store.Spec
	ids    []string
	member Member
	known  []store.Member // by index in ids, where asked is true
	asked  []bool
}

// since returns the start of billing that holds for entity. It is zero if none is stored.
func (l *lineage) since(ctx context.Context, entity string) (time.Time, error) {
	first := slices.Index(l.ids, entity)
	for ; first < 0; first = slices.Index(l.ids, entity) { // its descendants' stored parents lead to it
		known := len(l.ids)
		if err := l.ask(ctx, known-1); err != nil || len(l.ids) == known {
			return time.Time{}, err
		}
	}
	for i := first; i < len(l.ids); i++ {
		if err := l.ask(ctx, i); err != nil {
			return time.Time{}, err
		}
		if since := l.known[i].Since; !since.IsZero() {
			return since, nil
		}
	}
	return time.Time{}, nil
}

// ask asks for what is stored of the i-th entity, if it has not been. The last one's parent, if it is of the
// schema's parent kind, is added to ids.
func (l *lineage) ask(ctx context.Context, i int) error {
	if l.asked[i] {
		return nil
	}
	m, _, err := l.member(ctx, l.ids[i])
	if err != nil {
		return err
	}
	l.known[i], l.asked[i] = m, true
	if i == len(l.ids)-1 && l.isParent(m.Parent, l.ids[i]) {
		l.ids, l.known = append(slices.Clip(l.ids), m.Parent), append(l.known, store.Member{})
		l.asked = append(l.asked, false)
	}
	return nil
}

// isParent reports whether parent, a stored id or "", is of the parent kind of entity's. So a lineage ends.
func (l *lineage) isParent(parent, entity string) bool {
	for i := range l.spec.Kinds {
		k := &l.spec.Kinds[i]
		if k.Parent != store.NoParent && strings.HasPrefix(entity, k.Prefix) {
			return strings.HasPrefix(parent, l.spec.Kinds[k.Parent].Prefix)
		}
	}
	return false
}
