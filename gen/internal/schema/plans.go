package schema

import (
	"slices"

	"go.yaml.in/yaml/v3"

	"github.com/sluice-go/sluice/gen/internal/goname"
	"github.com/sluice-go/sluice/gen/internal/hint"
	"github.com/sluice-go/sluice/gen/internal/rules"
)

// maxPlans keeps the numbers of a resource's plans, which are changed as one item, far from the largest item.
const maxPlans = 100

// Plans are sets of numbers that entities of one kind are put on. Entities below them follow.
type Plans struct {
	Kind  int     // index into Schema.Kinds: whose entities are put on plans
	Names []*Plan // in the file's order, which means nothing
	Pos   Pos     // of key plans

	KindPos, NamesPos Pos // of these keys; Pos where one is left out
}

// Plan is one of Plans.
type Plan struct {
	Name   string
	GoName string // enterprise: Enterprise; ASCII letters and digits
	Pos    Pos    // of its name in limits.yaml
}

// PlanPrefix begins the names of plans in Go.
const PlanPrefix = "Plan"

// Index returns the index of a plan in p.Names, -1 for none. A nil p has none.
func (p *Plans) Index(name string) int {
	if p == nil {
		return -1
	}
	return slices.IndexFunc(p.Names, func(plan *Plan) bool { return plan.Name == name })
}

// names returns the names of all plans.
func (p *Plans) names() (all []string) {
	for _, plan := range p.Names {
		all = append(all, plan.Name)
	}
	return all
}

// OnPlans reports whether entities of a kind are on plans: it is the plans' own, or below it. It stops at a
// cycle of parents, which has been reported.
func (s *Schema) OnPlans(kind int) bool {
	return s.Plans != nil && follows(s.Kinds, kind, s.Plans.Kind)
}

// follows reports whether kind is top, or below it.
func follows(kinds []*Kind, kind, top int) bool {
	for range kinds {
		if kind < 0 || kind == top {
			break
		}
		kind = kinds[kind].Parent
	}
	return kind >= 0 && kind == top
}

func plansKeys() []string { return []string{"kind", "names"} }

// plannedKeys are those of a limit that a plan restates: per_call does not depend on the plan.
func plannedKeys() []string { return []string{"capacity", "refill", "burst"} }

// plans reads the schema's plans.
func (r schemaReader) plans(e entry, kinds []*Kind, kindsKnown bool) *Plans {
	p := &Plans{Kind: -1, Pos: r.pos(e.key), KindPos: r.pos(e.key), NamesPos: r.pos(e.key)}
	f, ok := r.fields(e.value, "plans", "a mapping, such as {kind: "+exampleTop(kinds)+", names: [free, pro]}",
		plansKeys(), nil)
	r.plansUnknown = !ok
	if !ok {
		return p
	}
	switch e, ok := f.get("kind"); {
	case ok:
		p.KindPos = r.pos(e.key)
		p.Kind = r.plansKind(e, kinds, kindsKnown)
	case !f.merged && !slices.Contains(f.meant, "kind"):
		r.add(p.Pos, rules.PlanKind, "kind is missing: write the one kind whose entities are put on plans, such "+
			"as kind: %s", exampleTop(kinds))
	}
	if e, ok := r.needAt(f, p.Pos, "names", "write the plans, such as names: [free, pro]"); ok {
		p.NamesPos = r.pos(e.key)
		r.planNames(e, p)
	}
	r.plansUnknown = len(p.Names) == 0
	return p
}

// plansKind returns the index of the kind whose entities are put on plans, -1 for a mistake.
func (r schemaReader) plansKind(e entry, kinds []*Kind, known bool) int {
	name, ok := r.text(e.value, "kind of plans", "the name of one kind")
	if !ok {
		return -1
	}
	kind := kindIndex(kinds, name)
	if kind < 0 && known {
		r.add(r.pos(e.value), rules.UnknownKind, "kind %s of plans is no kind of entities: %s", hint.Quote(name),
			r.Cure(name, kindNames(kinds)))
	}
	return kind
}

// planNames reads the names of plans into p.
func (r schemaReader) planNames(e entry, p *Plans) {
	for _, it := range r.names(e.value, "names of plans", "a list, such as [free, pro]") {
		plan := &Plan{Name: it.name, Pos: r.pos(it.value)}
		if r.identifier(plan.Pos, "plan "+hint.Quote(it.name), it.name) {
			plan.GoName = goname.Of(it.name)
		}
		p.Names = append(p.Names, plan)
	}
	switch n := len(e.value.Content); {
	case e.value.Kind != yaml.SequenceNode:
	case n == 0:
		r.add(r.pos(e.value), rules.Empty, "names of plans is empty: name the plans, as in [free, pro], or remove "+
			"plans")
	case n > maxPlans:
		r.add(r.pos(e.value), rules.PlanCount, "names of plans has %d: it can have at most %d", n, maxPlans)
	}
}

// planReader reads the plans of a resource.
type planReader struct{ *resourceReader }

// read reads what plans restate, plan by plan.
func (r planReader) read(e entry) {
	r.res.OnPlans, r.res.PlansPos = true, r.pos(e.key)
	entries, _ := r.mapping(e.value, "plans of "+r.what, "plans with other numbers, such as {pro: {"+
		r.example()+": {rps: {capacity: 100}}}}")
	if emptyMapping(e.value) {
		r.add(r.res.PlansPos, rules.Empty, "plans of %s is empty: write the numbers of one, such as {pro: {%s: "+
			"{rps: {capacity: 100}}}}, or leave it out", r.what, r.example())
	}
	if r.schemaPlans == nil && !r.plansUnknown {
		r.add(r.res.PlansPos, rules.NoPlans, "%s has plans, and plans of the schema are missing: list them, as in "+
			"plans: {kind: %s, names: [free, pro]}", r.what, exampleTop(r.kinds))
	}
	if r.res.Global {
		r.add(r.res.PlansPos, rules.PlansGlobal, "%s is global, and has plans: quotas of regions are parts of one "+
			"number, so move it to a resource of its own without global, or remove plans", r.what)
	}
	if r.schemaPlans != nil {
		for i := range r.res.Charged {
			r.res.Charged[i].Plans = make([][]Numbers, len(r.schemaPlans.Names))
		}
	}
	for _, e := range entries {
		plan := r.schemaPlans.Index(e.name)
		if plan < 0 && r.schemaPlans != nil && !r.plansUnknown {
			r.add(r.pos(e.key), rules.UnknownPlan, "%s in plans of %s is no plan of the schema: %s",
				hint.Quote(e.name), r.what, r.Cure(e.name, r.schemaPlans.names()))
		}
		r.plan(e, plan)
	}
}

// plan reads what one plan restates, kind by kind. plan is its index, -1 for a mistake.
func (r planReader) plan(e entry, plan int) {
	what := "plan " + hint.Quote(e.name) + " of " + r.what
	entries, _ := r.mapping(e.value, what, "kinds with other numbers, such as {"+r.example()+
		": {rps: {capacity: 100}}}")
	if emptyMapping(e.value) {
		r.add(r.pos(e.key), rules.Empty, "%s changes nothing: write what is different for a kind, such as {%s: "+
			"{rps: {capacity: 100}}}, or leave it out", what, r.example())
	}
	for _, of := range entries {
		at := r.charged(of, what)
		if at < 0 {
			continue
		}
		kind := "kind " + hint.Quote(of.name) + " in " + what
		restated, _ := r.mapping(of.value, kind, "limits with other numbers, such as {rps: {capacity: 100}}")
		if emptyMapping(of.value) {
			r.add(r.pos(of.key), rules.Empty, "%s changes nothing: write what is different, such as {rps: {capacity: "+
				"100}}, or leave it out", kind)
		}
		numbers := make([]Numbers, len(r.res.Limits))
		restate(r.resourceReader, restated, restatement{
			kind: of.name, base: r.own[at], of: "for " + hint.Quote(of.name) + " on " + what, keys: plannedKeys(),
		}, func(i int, l limit) { numbers[i] = l.plain() })
		if plan >= 0 {
			r.res.Charged[at].Plans[plan] = numbers
		}
	}
}

// example returns the name of a kind that plans of the resource can have numbers for, for messages.
func (r planReader) example() string {
	for _, c := range r.res.Charged {
		if p := r.schemaPlans; c.Kind >= 0 && p != nil && follows(r.kinds, c.Kind, p.Kind) {
			return r.kinds[c.Kind].Name
		}
	}
	return exampleTop(r.kinds)
}

// exampleTop returns the name of a kind that plans may be of, for messages: one without a parent.
func exampleTop(kinds []*Kind) string {
	for _, k := range kinds {
		if k.Parent < 0 && goname.IsIdentifier(k.Name) {
			return k.Name
		}
	}
	return "org"
}

// charged returns the index in res.Charged of a kind that a plan has numbers for, -1 for a mistake.
func (r planReader) charged(e entry, what string) int {
	kind := kindIndex(r.kinds, e.name)
	if kind < 0 {
		if r.kindsKnown {
			r.add(r.pos(e.key), rules.UnknownKind, "%s in %s is no kind of entities: %s", hint.Quote(e.name), what,
				r.Cure(e.name, kindNames(r.kinds)))
		}
		return -1
	}
	if p := r.schemaPlans; p != nil && p.Kind >= 0 && !follows(r.kinds, kind, p.Kind) {
		r.add(r.pos(e.key), rules.PlanKind, "%s in %s is on no plan: plans are those of kind %s, which kinds "+
			"below it follow; take it out", hint.Quote(e.name), what, hint.Quote(r.kinds[p.Kind].Name))
		return -1
	}
	at := slices.IndexFunc(r.res.Charged, func(c Charged) bool { return c.Kind == kind })
	if at < 0 && !r.chargedUnknown {
		var names []string
		for _, c := range r.res.Charged {
			if c.Kind >= 0 {
				names = append(names, r.kinds[c.Kind].Name)
			}
		}
		r.add(r.pos(e.key), rules.UnknownKind, "%s in %s is none of the entities of %s: %s", hint.Quote(e.name),
			what, r.what, r.Cure(e.name, names))
	}
	return at
}
