package schema

import (
	"slices"
	"strings"

	"github.com/sluice-go/sluice/gen/internal/hint"
	"github.com/sluice-go/sluice/gen/internal/rules"
)

// namesCatalog is the value of names: a catalog in the store has them.
const namesCatalog = "catalog"

// nameSeparator is between a template and a name in the resource of the name's buckets.
const nameSeparator = "/"

// readNames reads names, once the resource's limits have been read.
func readNames(r *resourceReader, f fields) {
	r.res.NamesPos = r.res.Pos
	e, ok := f.get("names")
	if !ok {
		noNames(r, f)
		return
	}
	r.res.Template, r.res.NamesPos = true, r.pos(e.key)
	text, ok := r.scalar(e.value, "names of "+r.what, namesCatalog)
	if ok && text != namesCatalog {
		r.add(r.pos(e.value), rules.UnknownValue, "names of %s is %s: write %s, for names that come at run time, "+
			"or leave names out", r.what, hint.Quote(text), namesCatalog)
	}
	if r.res.Global {
		r.add(r.res.NamesPos, rules.NamesGlobal, "%s is global, and has names: regional sync knows no catalog, so "+
			"remove global, or names", r.what)
	}
}

// noNames reports limits of all names in a resource that has none.
func noNames(r *resourceReader, f fields) {
	if f.merged || slices.Contains(f.meant, "names") {
		return
	}
	for i, l := range r.res.Limits {
		if l.AllNames {
			r.add(r.limits[i].allNamesPos, rules.NamesKeys, "all_names of %s goes with names: catalog in its "+
				"resource: write that, or leave all_names out, as each entity has one bucket of %s anyway",
				r.limits[i].what, r.what)
		}
	}
}

// checkPrefixes reports resources whose buckets could have the keys of a template's.
func (r schemaReader) checkPrefixes(s *Schema) {
	for _, template := range s.Resources {
		if !template.Template {
			continue
		}
		for _, res := range s.Resources {
			if strings.HasPrefix(res.Name, template.Name+nameSeparator) {
				r.add(res.Pos, rules.NamePrefix, "resource %s begins with %s, as the names of resource %s do in the "+
					"store: a name of its catalog could have the same buckets; rename one of the two",
					hint.Quote(res.Name), hint.Quote(template.Name+nameSeparator), hint.Quote(template.Name))
			}
		}
	}
}

// Buckets returns what the buckets of an entity of c hold: c itself. If r is a template, they are a bucket
// for each name and one of all names, as far as the kind has limits for these.
func (r *Resource) Buckets(c Charged) (buckets []Charged) {
	if !r.Template {
		return []Charged{c}
	}
	for _, allNames := range []bool{false, true} {
		only := func(numbers []Numbers) []Numbers {
			part := slices.Clone(numbers)
			for i := range part {
				if r.Limits[i].AllNames != allNames {
					part[i] = Numbers{}
				}
			}
			return part
		}
		b := c
		b.AllNames, b.Limits, b.Plans = allNames, only(c.Limits), slices.Clone(c.Plans)
		for i := range b.Plans {
			if b.Plans[i] = only(b.Plans[i]); !slices.ContainsFunc(b.Plans[i], Numbers.isSet) {
				b.Plans[i] = nil
			}
		}
		if slices.ContainsFunc(b.Limits, Numbers.isSet) {
			buckets = append(buckets, b)
		}
	}
	return buckets
}

// isSet is the reverse of Absent.
func (n Numbers) isSet() bool { return !n.Absent() }
