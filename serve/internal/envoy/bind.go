package envoy

import (
	"slices"
	"strings"

	"github.com/sluice-go/sluice/gen"
	"github.com/sluice-go/sluice/serve/internal/limits"
)

// bound is an acquire and its resource.
type bound struct {
	*acquire

	on *limits.Resource
}

// bind checks the names of rules against a schema, and finds which acquires are held until a settle.
func (r *reader) bind(all *Rules, schema *limits.Schema) {
	var acquires []bound
	for i, one := range all.rules {
		for j, before := range all.rules[:i] {
			if before.covers(one) {
				r.fail(one.at, "rule %d never applies: rule %d applies to all of its descriptors; put it above, or "+
					"remove it", i+1, j+1)
				break
			}
		}
		if a := one.acquire; a != nil {
			if on := r.bindAcquire(a, schema); on != nil {
				acquires = append(acquires, bound{a, on})
			}
		}
	}
	for _, one := range all.rules {
		if s := one.settle; s != nil {
			r.bindSettle(s, acquires)
		}
	}
	for _, a := range acquires {
		if !a.held && slices.Contains(a.on.Spec.Held, true) {
			r.fail(a.at, "nothing ends the leases of %s, whose slots would stay taken until they run out "+
				"(--lease-max): add a rule with settle", a.on.Spec.Resource)
		}
	}
}

// covers reports whether r applies to all descriptors that o applies to.
func (r *rule) covers(o *rule) bool {
	for _, p := range r.match {
		i := slices.IndexFunc(o.match, func(q pair) bool { return q.key == p.key })
		if i < 0 || !p.any && o.match[i] != p {
			return false
		}
	}
	return true
}

// reason returns what is wrong with a name or a number, in words for a mistake.
func reason(err error) string { return strings.TrimPrefix(err.Error(), "sluice: ") }

// bindAcquire returns the resource of a, nil after a mistake.
func (r *reader) bindAcquire(a *acquire, schema *limits.Schema) *limits.Resource {
	on, err := schema.Resource(a.resource)
	if err != nil {
		r.fail(a.resourceAt, "%s", reason(err))
		return nil
	}
	if err := on.CheckName(a.nameKey + a.name); err != nil {
		at := a.nameAt
		if at == nil {
			at = a.at
		}
		r.fail(at, "%s", reason(err))
	}
	ids := make([]limits.ID, len(a.entity))
	for i, p := range a.entity {
		ids[i] = limits.ID{Kind: p.kind, ID: p.id}
	}
	entity, err := on.Entity(ids)
	if err != nil {
		r.fail(a.entityAt, "%s", reason(err))
		return on
	}
	r.bindNumbers(&a.numbers, on)
	for _, n := range a.numbers.all {
		if i := slices.Index(on.Spec.Limits, n.name); !a.numbers.usage && i >= 0 &&
			!on.Spec.Charges(entity.Kind(), i) {
			r.fail(n.at, "calls of %s do not charge %s: leave it out", on.Spec.Kinds[entity.Kind()].Name, n.name)
		}
	}
	return on
}

// bindNumbers checks numbers of a rule on a resource.
func (r *reader) bindNumbers(all *numbers, on *limits.Resource) {
	for i := range all.all {
		n := &all.all[i]
		if !all.usage {
			l := slices.Index(on.Spec.Limits, n.name)
			if l >= 0 && on.Spec.Unit(l) != "" {
				if n.hits {
					r.fail(n.at, "hits are whole numbers, and %s is money: write a usage, whose prices are in "+
						"limits.yaml", n.name)
				}
				continue
			}
		}
		if n.hits {
			continue
		}
		if _, why := gen.ParseCount(n.text); why != "" {
			r.fail(n.at, "%s %s: write a whole number, or hits", quote(n.text), why)
			return
		}
		n.text = strings.ReplaceAll(n.text, "_", "")
	}
	if all.at == nil {
		return
	}
	if _, err := all.cost(on, 0, 1); err != nil {
		r.fail(all.at, "%s", reason(err))
	}
}

// fits reports whether numbers are those of a resource.
func (n *numbers) fits(on *limits.Resource) bool {
	names := on.Spec.Limits
	if n.usage {
		names = on.Usages()
	}
	for _, one := range n.all {
		if !slices.Contains(names, one.name) {
			return false
		}
	}
	return true
}

// bindSettle checks s, and marks the acquires whose leases it may end.
func (r *reader) bindSettle(s *settle, acquires []bound) {
	found := false
	for _, a := range acquires {
		if !s.numbers.fits(a.on) {
			continue
		}
		if a.held = true; !found {
			r.bindNumbers(&s.numbers, a.on)
		}
		found = true
	}
	switch {
	case found:
	case s.numbers.at == nil:
		r.fail(s.at, "no rule acquires what this one could settle: add one with acquire")
	default:
		names := make([]string, len(s.numbers.all))
		for i, n := range s.numbers.all {
			names[i] = n.name
		}
		r.fail(s.numbers.at, "no rule acquires of a resource that has %s: write names of limits.yaml",
			strings.Join(names, " and "))
	}
}
