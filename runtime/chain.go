package runtime

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"

	"github.com/sluice-go/sluice/runtime/internal/calendars"
	"github.com/sluice-go/sluice/runtime/store"
)

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
	charged = i == 0 || s.Kinds[link.Kind].Limits != nil
	return charged, link.Lookup && s.Cascade != store.CascadeNone && chargedAbove(s, link.Kind)
}

// follow adds to part the buckets that a call charges; links is an entity's chain, and c holds part's notes.
// These are the entity's own bucket and, unless the cascade is none, those of ancestors whose kind has one.
// The id of another link is checked only if look-ups start from it.
func follow(c *chain, part *store.Part, links []store.Link) error {
	spec := c.spec
	c.ids = calendars.Chain(spec, links)
	links = within(spec, links)
	for i, link := range links {
		charged, lookup := role(spec, links, i)
		if !charged && !lookup {
			continue
		}
		kind := &spec.Kinds[link.Kind]
		stored := kind.Prefix + link.ID
		if charged {
			part.Buckets = append(part.Buckets, store.Bucket{Entity: stored, Kind: link.Kind})
		}
		reason := store.CheckID(kind.Prefix, link.ID)
		if i > 0 && link.ID == "" {
			reason = "is empty, and calls of kind " + spec.Kinds[links[0].Kind].Name +
				" need it: give the whole chain, or an entity whose parents are looked up"
		}
		if reason != "" {
			return &InvalidError{Resource: spec.Resource, Field: "id of " + kind.Name, Value: link.ID, Reason: reason}
		}
		if lookup {
			c.above = &ancestry{entity: stored, kind: link.Kind}
		}
	}
	return nil
}

// warnOfSwappedIDs logs, the first time, that an id of links begins with the prefix of another kind: User{ID:
// "project-1"} is mostly a mistake, but may be an id.
func (c *core) warnOfSwappedIDs(links []store.Link) {
	if c.swapped.Load() {
		return
	}
	for _, link := range links {
		for kind := range c.kinds {
			other := &c.kinds[kind]
			if kind == link.Kind || other.Prefix == "" || !strings.HasPrefix(link.ID, other.Prefix) {
				continue
			}
			if !c.swapped.Swap(true) {
				c.env.Logger.Warn("sluice: an id begins with the prefix of another kind: see that ids are not swapped",
					slog.String("kind", c.kinds[link.Kind].Name), slog.String("id", store.Quote(link.ID)),
					slog.String("other", other.Name))
			}
			return
		}
	}
}

// chargedAbove reports whether an ancestor of an entity of kind has a bucket.
func chargedAbove(spec *store.Spec, kind int) bool {
	for range spec.Kinds { // a tree: no way up is longer
		if kind = spec.Kinds[kind].Parent; kind == store.NoParent {
			return false
		}
		if spec.Kinds[kind].Limits != nil {
			return true
		}
	}
	return false
}

// ancestry is the point from which look-ups continue a chain: the parent of entity, a stored id.
type ancestry struct {
	entity string
	kind   int
}

// acquire completes call's chains and charges their buckets.
func (c *core) acquire(ctx context.Context, call *request) error {
	if err := c.resolve(ctx, call); err != nil {
		return err
	}
	call.asked = true
	return c.session.Acquire(ctx, &call.Call)
}

// peek reads call's buckets, within call's deadline.
func (c *core) peek(ctx context.Context, call *request) error {
	ctx, cancel := context.WithDeadline(ctx, call.Deadline)
	defer cancel()
	call.asked = true
	return c.session.Peek(ctx, &call.Call)
}

// resolve completes by look-ups those of call's chains that need it, and finds the calendars of entities' own
// windows, within call's deadline. If it fails, chains keep what was found.
func (c *core) resolve(ctx context.Context, call *request) error {
	if !slices.ContainsFunc(call.chains, func(on chain) bool { return on.above != nil || on.ids != nil }) {
		return nil
	}
	ctx, cancel := context.WithDeadline(ctx, call.Deadline)
	defer cancel()
	for i := range call.Parts {
		for call.chains[i].above != nil {
			if err := c.climb(ctx, &call.chains[i], &call.Parts[i]); err != nil {
				return err
			}
		}
		if on := &call.chains[i]; on.ids != nil {
			err := calendars.Set(ctx, on.spec, call.Parts[i].Buckets, on.ids, c.session.Member)
			if err != nil {
				return unavailable(on.spec, "the calendar of "+store.Quote(on.ids[0]), err)
			}
		}
	}
	return nil
}

// climb looks up one parent and adds its bucket, if its kind has one. A parent must be of the schema's parent
// kind, so chains end whatever is stored.
func (c *core) climb(ctx context.Context, on *chain, part *store.Part) error {
	at, spec := on.above, on.spec
	m, found, err := c.session.Member(ctx, at.entity)
	if err != nil {
		return unavailable(spec, "the parent of "+store.Quote(at.entity), err)
	}
	if found && !m.Cascade {
		on.above = nil
		return nil
	}
	kinds := spec.Kinds
	parent, err := spec.ParentOf(at.kind, at.entity, m, found)
	if err != nil {
		return err
	}
	if kinds[parent].Limits != nil {
		part.Buckets = append(part.Buckets, store.Bucket{Entity: m.Parent, Kind: parent})
	}
	on.above = nil
	if len(part.Buckets) <= len(kinds) && chargedAbove(spec, parent) { // more only if the kinds form a cycle
		on.above = &ancestry{entity: m.Parent, kind: parent}
	}
	return nil
}

// unavailable adds to an *UnavailableError what was looked up. It returns any other error as it is.
func unavailable(spec *store.Spec, what string, err error) error {
	down, ok := errors.AsType[*UnavailableError](err)
	if !ok {
		return err
	}
	own := *down // other callers may have the same error
	own.Resource, own.Err = spec.Resource, fmt.Errorf("looking up %s: %w", what, down.Err)
	return &own
}

// nearest returns the first link of entity's chain and the link's stored id, or what is wrong with it. The
// errors name resource, unless it is empty. It warns of swapped ids in the whole chain.
func (c *core) nearest(resource string, entity Entity) (link store.Link, stored string, err error) {
	if entity == nil {
		return store.Link{}, "", &InvalidError{Resource: resource, Field: "entity", Reason: "is nil"}
	}
	links := entity.Chain(nil)
	link = links[0]
	if link.Kind >= len(c.kinds) {
		return store.Link{}, "", &InvalidError{
			Resource: resource, Field: "entity", Value: link.ID,
			Reason: "is of another limits.yaml: use this Limiter's package",
		}
	}
	kind := &c.kinds[link.Kind]
	if reason := store.CheckID(kind.Prefix, link.ID); reason != "" {
		return store.Link{}, "", &InvalidError{
			Resource: resource, Field: "id of " + kind.Name, Value: link.ID, Reason: reason,
		}
	}
	c.warnOfSwappedIDs(links)
	return link, kind.Prefix + link.ID, nil
}
