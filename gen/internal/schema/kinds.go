package schema

import (
	"slices"
	"strings"

	"github.com/sluice-go/sluice/gen/internal/hint"
	"github.com/sluice-go/sluice/gen/internal/rules"
)

func kindKeys() []string { return []string{"parent", "doc", "go_name"} }

// kinds reads the schema's entities. known reports whether references to kinds can be checked against the
// result.
func (r schemaReader) kinds(e entry) (kinds []*Kind, known bool) {
	entries, _ := r.mapping(e.value, "entities", "the kinds of entity, such as {user: {}}")
	if emptyMapping(e.value) {
		r.add(r.pos(e.key), rules.Empty, "entities is empty: name at least one kind, such as user: {}")
	}
	if len(entries) == 0 {
		return nil, false
	}
	known = !merges(e.value)
	parents := make([]entry, len(entries))
	for i, e := range entries {
		k := &Kind{Name: e.name, Parent: -1, Pos: r.pos(e.key)}
		k.ParentPos = k.Pos
		kinds = append(kinds, k)
		what := "kind " + hint.Quote(e.name)
		nameOK := r.identifier(k.Pos, what, e.name)
		f, ok := r.fields(e.value, what, "{}, or its keys, such as {doc: who pays}", kindKeys(), nil)
		if !ok {
			continue
		}
		k.Doc = r.doc(f)
		k.GoName = r.goName(f, k.Pos, what, e.name, nameOK)
		if e, ok := f.get("parent"); ok {
			parents[i], k.ParentPos = e, r.pos(e.key)
		}
	}
	for i, e := range parents {
		if e.value == nil {
			continue
		}
		name, ok := r.text(e.value, "parent", "the name of one kind")
		if !ok {
			continue
		}
		kinds[i].Parent = kindIndex(kinds, name)
		if kinds[i].Parent < 0 && known {
			how := "add it to entities, or leave parent out"
			if others := without(kindNames(kinds), kinds[i].Name); len(others) > 0 {
				how = r.Cure(name, others)
			}
			r.add(r.pos(e.value), rules.UnknownParent, "parent %s of kind %s is no kind of entities: "+
				"%s", hint.Quote(name),
				hint.Quote(kinds[i].Name), how)
		}
	}
	r.checkCycles(kinds, parents)
	return kinds, known
}

// checkCycles reports each cycle of parents once, at the parent of its first kind.
func (r schemaReader) checkCycles(kinds []*Kind, parents []entry) {
	done := make([]bool, len(kinds)) // the chain of this kind has been followed
	for i := range kinds {
		var path []int
		k := i
		for k >= 0 && !done[k] && !slices.Contains(path, k) {
			path = append(path, k)
			k = kinds[k].Parent
		}
		if k >= 0 && !done[k] {
			cycle := path[slices.Index(path, k):]
			first := slices.Index(cycle, slices.Min(cycle))
			var names []string
			for j := range len(cycle) + 1 {
				switch {
				case j < hint.MaxChoices || j == len(cycle):
					names = append(names, hint.Bare(kinds[cycle[(first+j)%len(cycle)]].Name))
				case j == hint.MaxChoices:
					names = append(names, "...")
				}
			}
			r.add(r.pos(parents[cycle[first]].value), rules.ParentCycle,
				"parents go round in a circle, %s: remove one of them", strings.Join(names, " -> "))
		}
		for _, k := range path {
			done[k] = true
		}
	}
}

func kindIndex(kinds []*Kind, name string) int {
	return slices.IndexFunc(kinds, func(k *Kind) bool { return k.Name == name })
}

func kindNames(kinds []*Kind) []string {
	names := make([]string, len(kinds))
	for i, k := range kinds {
		names[i] = k.Name
	}
	return names
}

// without returns names less one.
func without(names []string, name string) []string {
	return slices.DeleteFunc(names, func(n string) bool { return n == name })
}
