// Package lineage finds what is stored of an entity and its ancestors that decides about its buckets: the
// plan that numbers are from, and calendars of entities' own windows.
package lineage

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

// Chain returns the stored ids of links, an entity's chain, as far as they are given. It returns nil if
// neither windows nor plans of spec depend on what is stored of them.
func Chain(spec *store.Spec, links []store.Link) (ids []string) {
	depends := spec.OnPlans(links[0].Kind)
	for i := range spec.Kinds {
		depends = depends || spec.Kinds[i].OwnWindows()
	}
	if !depends {
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

// Set sets Windows of those of buckets that have windows of their own, and Plan of those that plans concern.
// chain holds the stored ids of an entity and of its ancestors as the caller gave them, nearest first. It
// continues by the parents that are stored. The calendar of a bucket is that of its entity, else of the
// nearest ancestor that has one, else the default. Set fails with the error of member. If the entity whose
// plan it is cannot be found, it fails with that of Spec.ParentOf.
func Set(
	ctx context.Context, spec *store.Spec, buckets []store.Bucket, chain []string, member Member,
) error {
	l := lineage{
		spec: spec, ids: chain, given: len(chain), member: member, known: make([]answer, len(chain)),
	}
	for i := range buckets {
		b := &buckets[i]
		if spec.Kinds[b.Kind].OwnWindows() {
			since, err := l.since(ctx, b.Entity)
			if err != nil {
				return err
			}
			b.Windows = windowsOf(&spec.Kinds[b.Kind], since)
		}
		if spec.OnPlans(b.Kind) {
			var err error
			if b.Plan, err = l.plan(ctx, b.Entity, b.Kind); err != nil {
				return err
			}
		}
	}
	return nil
}

// windowsOf returns the calendars of a kind's limits for an entity whose billing started at since, zero for
// none.
func windowsOf(kind *store.Kind, since time.Time) []*bucket.Calendar {
	windows := make([]*bucket.Calendar, len(kind.Windows))
	for i, c := range kind.Windows {
		if windows[i] = c; c != nil && c.Own() && !since.IsZero() {
			windows[i] = c.Of(since)
		}
	}
	return windows
}

// lineage is an entity and its ancestors, as far as they are known.
type lineage struct {
	spec   *store.Spec
	ids    []string
	given  int // of ids, those that the caller gave; the others are stored parents
	member Member
	known  []answer // by index in ids
}

// answer is what is stored of an entity, once it was asked for.
type answer struct {
	store.Member

	found, asked bool
}

// index returns the index of entity in ids, following stored parents as far as it takes; -1 if they do not
// lead to it.
func (l *lineage) index(ctx context.Context, entity string) (int, error) {
	for {
		if i := slices.Index(l.ids, entity); i >= 0 {
			return i, nil
		}
		known := len(l.ids)
		if err := l.ask(ctx, known-1); err != nil || len(l.ids) == known {
			return -1, err
		}
	}
}

// since returns the start of billing that holds for entity. It is zero if none is stored.
func (l *lineage) since(ctx context.Context, entity string) (time.Time, error) {
	first, err := l.index(ctx, entity)
	if err != nil || first < 0 {
		return time.Time{}, err
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

// plan returns the plan by which the bucket of entity, of a kind, gets its numbers.
func (l *lineage) plan(ctx context.Context, entity string, kind int) (on store.OnPlan, err error) {
	own, err := l.index(ctx, entity)
	if err != nil {
		return store.OnPlan{}, err
	}
	i := own
	for kind = l.spec.EntityKind(kind); kind != l.spec.Plans.Kind; kind = l.spec.Kinds[kind].Parent {
		if i == len(l.ids)-1 {
			if err := l.ask(ctx, i); err != nil {
				return store.OnPlan{}, err
			}
			if i == len(l.ids)-1 {
				_, err := l.spec.ParentOf(kind, l.ids[i], l.known[i].Member, l.known[i].found)
				return store.OnPlan{}, err
			}
		}
		i++
	}
	if err := l.ask(ctx, i); err != nil {
		return store.OnPlan{}, err
	}
	of := &l.known[i]
	if on = (store.OnPlan{Of: l.ids[i], Name: of.Plan, Version: of.PlanVersion}); i >= l.given {
		on.From = l.ids[max(own, l.given-1)]
	}
	return on, nil
}

// ask asks for what is stored of the i-th entity, if it has not been. The last one's parent, if it is of the
// schema's parent kind, is added to ids.
func (l *lineage) ask(ctx context.Context, i int) error {
	if l.known[i].asked {
		return nil
	}
	m, found, err := l.member(ctx, l.ids[i])
	if err != nil {
		return err
	}
	l.known[i] = answer{m, found, true}
	if i == len(l.ids)-1 && l.isParent(m.Parent, l.ids[i]) {
		l.ids, l.known = append(slices.Clip(l.ids), m.Parent), append(l.known, answer{})
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
