// Package chains turns the chain of an entity into the buckets that a call charges, and continues it by
// look-ups (docs/design.md, "Cascade").
//
// An entity gives the links of its chain, as far as it knows them. Follow makes buckets of these, and Resolve
// looks up the rest. Charged does both without the store, or not at all.
package chains

import (
	"context"
	"errors"
	"fmt"

	"github.com/sluice-go/sluice/runtime/internal/lineage"
	"github.com/sluice-go/sluice/runtime/store"
)

// Chain is the state of one part's chain. One goroutine uses it.
type Chain struct {
	Spec  *store.Spec // of the part's Def
	above *ancestry   // where look-ups continue the chain; nil once the part's Buckets are complete
	ids   []string    // stored ids of the entity and its ancestors, whose calendars or plans matter; else nil
}

// Members knows which entity belongs to which. It is a store.Session.
type Members interface {
	Member(ctx context.Context, entity string) (m store.Member, found bool, err error)
}

// ancestry is the point from which look-ups continue a chain: the parent of entity, a stored id.
type ancestry struct {
	entity string
	kind   int
}

// Follow adds to part the buckets that a call on entity charges, up to where look-ups continue the chain.
// These are the entity's own bucket and, unless the cascade is none, those of ancestors whose kind has one.
// It appends the links to dst and returns them. It fails with a *store.InvalidError for a bad id. The id of a
// link that has no bucket to charge is checked only if look-ups start from it, or if its plan matters.
func (c *Chain) Follow(part *store.Part, entity store.Entity, dst []store.Link) ([]store.Link, error) {
	spec := c.Spec
	all, err := linksOf(spec.Resource, entity, dst)
	if err != nil {
		return nil, err
	}
	c.ids = lineage.Chain(spec, all)
	links := within(spec, all)
	for i, link := range all {
		charged, lookup := false, false
		if i < len(links) {
			charged, lookup = role(spec, links, i)
		}
		if !charged && !lookup && !spec.OnPlans(link.Kind) {
			continue
		}
		kind := &spec.Kinds[link.Kind]
		stored := kind.Prefix + link.ID
		if charged {
			part.Buckets = appendBuckets(part.Buckets, spec, link.Kind, stored)
		}
		reason := store.CheckID(kind.Prefix, link.ID)
		if i > 0 && link.ID == "" {
			reason = "is empty, and calls of kind " + spec.Kinds[links[0].Kind].Name +
				" need it: give the whole chain, or an entity whose parents are looked up"
		}
		if reason != "" {
			return nil, errID(spec.Resource, kind, link.ID, reason)
		}
		if lookup {
			c.above = &ancestry{entity: stored, kind: link.Kind}
		}
	}
	return all, nil
}

// Continues reports whether look-ups continue the chain, so that the part's Buckets are not complete.
func (c *Chain) Continues() bool { return c.above != nil }

// Unresolved reports whether Resolve has anything to do.
func (c *Chain) Unresolved() bool { return c.above != nil || c.ids != nil }

// Resolve completes part's chain by look-ups, and finds the calendars and plans of its buckets. It fails with
// the error of members, which then names what was looked up, or with a *store.InvalidError if the parent is
// not known. The chain keeps what was found.
func (c *Chain) Resolve(ctx context.Context, part *store.Part, members Members) error {
	for c.above != nil {
		if err := c.climb(ctx, part, members); err != nil {
			return err
		}
	}
	if c.ids == nil {
		return nil
	}
	if err := lineage.Set(ctx, c.Spec, part.Buckets, c.ids, members.Member); err != nil {
		return unavailable(c.Spec, "what is stored of "+store.Quote(c.ids[0]), err)
	}
	return nil
}

// climb looks up one parent and adds its bucket, if its kind has one. A parent must be of the schema's parent
// kind, so chains end whatever is stored.
func (c *Chain) climb(ctx context.Context, part *store.Part, members Members) error {
	at, spec := c.above, c.Spec
	m, found, err := members.Member(ctx, at.entity)
	if err != nil {
		return unavailable(spec, "the parent of "+store.Quote(at.entity), err)
	}
	if found && !m.Cascade {
		c.above = nil
		return nil
	}
	kinds := spec.Kinds
	parent, err := spec.ParentOf(at.kind, at.entity, m, found)
	if err != nil {
		return err
	}
	if spec.HasBucket(parent) {
		part.Buckets = appendBuckets(part.Buckets, spec, parent, m.Parent)
	}
	c.above = nil
	if len(part.Buckets) <= len(kinds) && chargedAbove(spec, parent) { // more only if the kinds form a cycle
		c.above = &ancestry{entity: m.Parent, kind: parent}
	}
	return nil
}

// appendBuckets appends the buckets that an entity of a kind has: of a name of a template, its own and that
// of all names together.
func appendBuckets(to []store.Bucket, spec *store.Spec, kind int, entity string) []store.Bucket {
	all := spec.AllNames(kind)
	if all == store.NoKind || spec.Kinds[kind].Limits != nil {
		to = append(to, store.Bucket{Entity: entity, Kind: kind})
	}
	if all != store.NoKind {
		to = append(to, store.Bucket{Entity: entity, Kind: all})
	}
	return to
}

// unavailable adds to an *store.UnavailableError what was looked up. It returns any other error as it is.
func unavailable(spec *store.Spec, what string, err error) error {
	down, ok := errors.AsType[*store.UnavailableError](err)
	if !ok {
		return err
	}
	own := *down // other callers may have the same error
	own.Resource, own.Err = spec.Resource, fmt.Errorf("looking up %s: %w", what, down.Err)
	return &own
}

// Charged returns those of links, an entity's chain, whose buckets a call on the entity charges. ok reports
// that these are all. A bad id has no bucket, so nothing is cached for it.
//
// The link of a bucket of all names together has its kind. The result may share the memory of links.
func Charged(s *store.Spec, links []store.Link) (left []store.Link, ok bool) {
	links = within(s, links)
	n := len(links)
	if left = links[:0]; s.Template != "" { // an entity may have two buckets
		left = links[n:]
	}
	for i := range n {
		charged, lookup := role(s, links, i)
		link := links[i]
		switch {
		case lookup:
			return nil, false
		case !charged:
			continue
		}
		all := s.AllNames(link.Kind)
		if all == store.NoKind || s.Kinds[link.Kind].Limits != nil {
			left = append(left, link)
		}
		if all != store.NoKind {
			link.Kind = all
			left = append(left, link)
		}
	}
	return left, true
}

// within returns the links of an entity's chain that a call on the entity uses: only the entity's own if the
// cascade is none.
func within(s *store.Spec, links []store.Link) []store.Link {
	if s.Cascade == store.CascadeNone {
		return links[:1]
	}
	return links
}

// role returns what the i-th link of an entity's chain means for a call on the entity. charged reports that
// the link has a bucket to charge, lookup that the chain continues from it by look-ups.
func role(s *store.Spec, links []store.Link, i int) (charged, lookup bool) {
	link := &links[i]
	// The entity's kind has a bucket, or it would not be one that the resource takes.
	charged = i == 0 || s.HasBucket(link.Kind)
	return charged, link.Lookup && s.Cascade != store.CascadeNone && chargedAbove(s, link.Kind)
}

// chargedAbove reports whether an ancestor of an entity of kind has a bucket.
func chargedAbove(spec *store.Spec, kind int) bool {
	for range spec.Kinds { // a tree: no way up is longer
		if kind = spec.Kinds[kind].Parent; kind == store.NoParent {
			return false
		}
		if spec.HasBucket(kind) {
			return true
		}
	}
	return false
}
