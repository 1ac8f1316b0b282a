package runtime

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// within returns how much of links, an entity's chain, a call on the entity looks at: the entity's own link alone where the
// cascade is none.
func (s *Spec) within(links []Link) []Link {
	if s.Cascade == CascadeNone {
		return links[:1]
	}
	return links
}

// role says what the i-th link of an entity's chain is to a call on the entity: whether it has a bucket to charge, and
// whether the chain goes on from it by look-ups.
func (s *Spec) role(links []Link, i int) (charged, lookup bool) {
	link := &links[i]
	// The entity's kind has a bucket, or it would not be one that the resource takes.
	charged = i == 0 || s.Kinds[link.Kind].Limits != nil
	return charged, link.Lookup && s.Cascade != CascadeNone && chargedAbove(s, link.Kind)
}

// follow gives part the buckets that a call on links, an entity's chain, charges: the entity's own and, unless the cascade is
// none, those of its ancestors whose kind has one. Of the other links, only an id from which look-ups start has to be good.
func follow(part *Part, links []Link) error {
	spec := part.spec
	links = spec.within(links)
	for i, link := range links {
		charged, lookup := spec.role(links, i)
		if !charged && !lookup {
			continue
		}
		kind := &spec.Kinds[link.Kind]
		stored := kind.Prefix + link.ID
		if charged {
			part.Buckets = append(part.Buckets, Bucket{Entity: stored, Kind: link.Kind})
		}
		reason := checkID(link.ID)
		if i > 0 && link.ID == "" {
			reason = "is empty, and calls of kind " + spec.Kinds[links[0].Kind].Name +
				" need it: give the whole chain, or an entity whose parents are looked up"
		}
		if reason != "" {
			return &InvalidError{spec.Resource, "id of " + kind.Name, link.ID, reason}
		}
		if lookup {
			part.above = &ancestry{entity: stored, kind: link.Kind}
		}
	}
	return nil
}

// chargedAbove reports whether an ancestor of an entity of kind has a bucket.
func chargedAbove(spec *Spec, kind int) bool {
	for range spec.Kinds { // a tree: no way up is longer
		if kind = spec.Kinds[kind].Parent; kind == NoParent {
			return false
		}
		if spec.Kinds[kind].Limits != nil {
			return true
		}
	}
	return false
}

// ancestry is where a chain goes on by look-ups: at the parent of entity, as stored.
type ancestry struct {
	entity string
	kind   int
}

// charge completes call's chains and charges them.
func (c *core) charge(ctx context.Context, call *Call) error {
	if err := c.resolve(ctx, call); err != nil {
		return err
	}
	call.asked = true
	return c.session.Acquire(ctx, call)
}

// resolve has the store say how those of call's chains go on that end in a look-up, by call's deadline. What it has found
// stays found if it fails.
func (c *core) resolve(ctx context.Context, call *Call) error {
	if !slices.ContainsFunc(call.Parts, func(p Part) bool { return p.above != nil }) {
		return nil
	}
	ctx, cancel := context.WithDeadline(ctx, call.Deadline)
	defer cancel()
	for i := range call.Parts {
		part := &call.Parts[i]
		for part.above != nil {
			if err := c.climb(ctx, part); err != nil {
				return err
			}
		}
	}
	return nil
}

// climb looks up one parent and adds its bucket, if its kind has one. As a parent has to be of the schema's parent kind,
// chains end, whatever is stored.
func (c *core) climb(ctx context.Context, part *Part) error {
	at, spec := part.above, part.spec
	m, found, err := c.session.Member(ctx, at.entity)
	if err != nil {
		return at.unavailable(spec, err)
	}
	if found && !m.Cascade {
		part.above = nil
		return nil
	}
	kinds := spec.Kinds
	parent := kinds[at.kind].Parent
	cure := fmt.Sprintf("sluice entity put %s --parent %s<id>", at.entity, kinds[parent].Prefix)
	switch {
	case !found:
		return &InvalidError{spec.Resource, "entity", at.entity, "is not known, and so its parent is not: store it (" + cure +
			"), or give its parent in the call"}
	case m.Parent == "":
		return &InvalidError{spec.Resource, "entity", at.entity, "is stored without a parent, which its calls need: store it (" +
			cure + "), or give its parent in the call"}
	}
	id, ok := strings.CutPrefix(m.Parent, kinds[parent].Prefix)
	if !ok || checkID(id) != "" {
		return &SetupError{
			What: fmt.Sprintf("entity %s is stored with parent %q, which is no id of kind %s", at.entity, m.Parent, kinds[parent].Name),
			Do:   "store it again: " + cure,
		}
	}
	if kinds[parent].Limits != nil {
		part.Buckets = append(part.Buckets, Bucket{Entity: m.Parent, Kind: parent})
	}
	part.above = nil
	if len(part.Buckets) <= len(kinds) && chargedAbove(spec, parent) { // more would be a Spec whose kinds go round
		part.above = &ancestry{entity: m.Parent, kind: parent}
	}
	return nil
}

// unavailable adds to err, if it is an *UnavailableError, for whom the store was asked in vain.
func (a *ancestry) unavailable(spec *Spec, err error) error {
	down, ok := errors.AsType[*UnavailableError](err)
	if !ok {
		return err
	}
	own := *down // the store may have told others the same
	own.Resource, own.Err = spec.Resource, fmt.Errorf("looking up the parent of %s: %w", a.entity, down.Err)
	return &own
}
