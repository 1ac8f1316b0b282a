package schema

import (
	"slices"

	"go.yaml.in/yaml/v3"

	"github.com/sluice-go/sluice/gen/internal/hint"
	"github.com/sluice-go/sluice/gen/internal/rules"
)

// limitKinds reads the kinds that have a limit. checkKinds compares them with the resource's entities.
func (r *resourceReader) limitKinds(e entry, what string) []entry {
	kinds := r.names(e.value, "kinds of "+what, "a list, such as ["+r.exampleKind()+"]")
	if e.value.Kind == yaml.SequenceNode && len(e.value.Content) == 0 {
		r.add(r.pos(e.key), rules.Empty, "kinds of %s is empty: name the kinds that have it, or leave it out for "+
			"all",
			what)
	}
	return kinds
}

// checkKinds reports each of the limits' kinds that is none of those that have a bucket.
func (r *resourceReader) checkKinds(charged []string) {
	for _, l := range r.limits {
		for _, e := range l.kinds {
			if !slices.Contains(charged, e.name) {
				r.add(r.pos(e.value), rules.UnknownKind, "%s in kinds of %s is none of the entities of %s: %s",
					hint.Quote(e.name), l.what, r.what, r.Cure(e.name, charged))
			}
		}
	}
}

// limitsOf returns the numbers of all that a kind starts from: none for a limit that it does not have.
func limitsOf(all []limit, kind string) []limit {
	limits := slices.Clone(all)
	for i := range limits {
		if !limits[i].of(kind) {
			limits[i] = limit{what: limits[i].what, pos: limits[i].pos, kinds: limits[i].kinds}
		}
	}
	return limits
}

// inheritPerCall sets what a cost of 0 stands for in limits that a kind does not have. It is what it stands
// for in the nearest bucket of a call's chain that has the limit.
func (r *resourceReader) inheritPerCall() {
	for _, c := range r.res.Charged {
		for i := range c.Limits {
			if c.Kind < 0 || r.limits[i].of(r.kinds[c.Kind].Name) || r.res.Cascade == CascadeNone {
				continue
			}
			above := r.kinds[c.Kind].Parent
			for range r.kinds { // parents that go round in a circle are another mistake
				at := slices.IndexFunc(r.res.Charged, func(of Charged) bool { return above >= 0 && of.Kind == above })
				if at >= 0 && r.limits[i].of(r.kinds[above].Name) {
					c.PerCall[i] = r.res.Charged[at].PerCall[i]
					break
				}
				if above >= 0 {
					above = r.kinds[above].Parent
				}
			}
		}
	}
}

// names returns the names of entries.
func names(entries []entry) []string {
	all := make([]string, len(entries))
	for i, e := range entries {
		all[i] = e.name
	}
	return all
}
