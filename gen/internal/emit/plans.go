package emit

import (
	"fmt"
	"go/token"
	"go/types"
	"slices"

	"github.com/dave/jennifer/jen"

	"github.com/sluice-go/sluice/gen/internal/goname"
	"github.com/sluice-go/sluice/gen/internal/model"
	"github.com/sluice-go/sluice/gen/internal/schema"
	"github.com/sluice-go/sluice/gen/internal/words"
)

// plans prints plans.go: the type of plans, the methods of Limiter that put entities on them, and the
// overrides of resources whose numbers they change.
func plans(f *file, p *model.Package) {
	follow := ""
	if below := kindTypes(p.Plans.Below); len(below) > 0 {
		follow = fmt.Sprintf(" Entities below it follow: %s.", words.List(below, "and"))
	}
	on := article(p.Plans.Kind.Type)
	f.decl(fmt.Sprintf("Plan is a set of numbers that %s can be on.%s The zero Plan is no plan: the numbers "+
		"are those of limits and entities in %s.", on, follow, p.Source),
		jen.Type().Id("Plan").Uint8())
	consts := each(p.Plans.All, func(i int, plan model.Plan) jen.Code {
		def := jen.Id(plan.Const)
		if i == 0 {
			def.Id("Plan").Op("=").Iota().Op("+").Lit(1)
		}
		return jen.Add(field(fmt.Sprintf("%s is plan %s.", plan.Const, plan.Name))).Line().Add(def)
	})
	f.decl("", jen.Const().Defs(consts...))

	names := quotedNames(p.Plans)
	f.decl("ParsePlan returns the plan of that name. The error is an *InvalidError.",
		jen.Func().Id("ParsePlan").Params(jen.Id("name").String()).Params(jen.Id("Plan"), jen.Error()).Block(
			jen.Return(jen.Qual(storePath, "ParsePlan").Types(jen.Id("Plan")).Add(
				flow(len("\treturn store.ParsePlan[Plan]"), append([]string{"name"}, names...))))))
	f.decl("String returns the plan's name, \"\" for the zero Plan.",
		jen.Func().Params(jen.Id("p").Id("Plan")).Id("String").Params().String().Block(
			jen.Return(jen.Qual(storePath, "NameOf").Add(
				flow(len("\treturn store.NameOf"), append([]string{"p"}, names...))))))

	f.decl("UnknownPlanError says that an entity is on a plan of a newer program.",
		jen.Type().Id("UnknownPlanError").Op("=").Qual(runtimePath, "UnknownPlanError"))
	setPlan(f, p)
	for _, r := range p.Resources {
		if r.OnPlans && r.Template == nil {
			config(f, r)
		}
	}
}

// setPlan prints the methods of Limiter that set and read plans.
func setPlan(f *file, p *model.Package) {
	k := p.Plans.Kind
	entity := parameter(k)
	context := jen.Id("ctx").Qual("context", "Context")
	also := ""
	if len(p.Plans.Below) > 0 {
		also = " and of the entities below it"
	}
	f.decl(fmt.Sprintf("SetPlan puts %[1]s on plan; the zero Plan takes it off its plan. The numbers of "+
		"%[1]s%[2]s change: at once in this Limiter, within WithCacheTTL in others. Usage of an open window "+
		"stays, and the difference in capacity is available at once. SetPlan fails as runtime.Plans.Set does.",
		entity, also),
		jen.Func().Params(jen.Id("l").Op("*").Id("Limiter")).Id("SetPlan").Params(
			context, jen.Id(entity).Id(k.Type), jen.Id("plan").Id("Plan")).Error().Block(
			jen.Return(jen.Id("l").Dot("plans").Dot("Set").Call(jen.Id("ctx"), jen.Id(entity), jen.Id("plan")))))
	f.decl(fmt.Sprintf("PlanOf returns the plan of %s, 0 for none. It fails with an *UnknownPlanError for a "+
		"plan that %s does not have, since a newer program has set it.", entity, p.Source),
		jen.Func().Params(jen.Id("l").Op("*").Id("Limiter")).Id("PlanOf").Params(
			context.Clone(), jen.Id(entity).Id(k.Type)).Params(jen.Id("Plan"), jen.Error()).Block(
			jen.Return(jen.Id("l").Dot("plans").Dot("Of").Call(jen.Id("ctx"), jen.Id(entity)))))
}

// parameter returns the name of a parameter for an entity of kind k, which hides nothing that its function
// uses.
func parameter(k *model.Kind) string {
	name := goname.Unexported(k.Type)
	taken := []string{"ctx", "plan", "l", "context", "runtime"}
	if token.IsKeyword(name) || types.Universe.Lookup(name) != nil || slices.Contains(taken, name) {
		return "entity"
	}
	return name
}

// configType prints the type of the overrides of r, or of one of its names.
func configType(f *file, r *model.Resource, name, says string) {
	config := jen.Op("*").Qual(runtimePath, "Config").Types(jen.Id(r.Entity), jen.Id(r.Cost), jen.Id(r.Override))
	f.decl(says, jen.Type().Id(name).Struct(config))
}

// planMethod prints the method of a type of overrides that returns those of a plan.
func planMethod(f *file, r *model.Resource, name, says string) {
	f.decl(says+" kind is any entity of that kind: its id is not looked at.",
		jen.Func().Params(jen.Id("c").Op("*").Id(name)).Id("Plan").Params(
			jen.Id("plan").Id("Plan"), jen.Id("kind").Id(r.Entity),
		).Op("*").Qual(runtimePath, "Override").Types(jen.Id(r.Override)).Block(
			jen.Return(jen.Qual(runtimePath, "PlanOverride").Call(jen.Id("c").Dot("Config"),
				jen.Id("plan").Dot("String").Call(), jen.Id("kind")))))
}

// config prints the overrides of a resource with plans.
func config(f *file, r *model.Resource) {
	configType(f, r, r.Config, fmt.Sprintf("%s reads and writes overrides of %s, and numbers of its plans.",
		r.Config, r.Name))
	planMethod(f, r, r.Config, planSays)
}

// planSays is the doc comment of Plan.
const planSays = "Plan returns the override for all entities of a kind that are on plan, themselves or by " +
	"an ancestor."

// specPlans is the Plans of a Spec.
func specPlans(p *model.Package, r *model.Resource) jen.Code {
	names := p.Plans.Names()
	limits := each(p.Plans.All, func(i int, plan model.Plan) jen.Code {
		return noted(plan.Name+": {} is as in Kinds", planLimits(p, r, i))
	})
	return jen.Op("&").Qual(storePath, "Plans").Add(lines(
		pair("Kind", jen.Id(p.Plans.Kind.Const)),
		pair("Names", jen.Index().String().Add(braces(literals(names...), few(6, len("\t\t\tNames: []string{},"),
			len(`"", `), names)))),
		pair("Limits", jen.Index().Index().Index().Qual(bucketPath, "Limit").Add(lines(limits...))),
	))
}

// planLimits is what a plan restates, by kind. The list has all kinds: the last stands there even if nothing
// is restated for it.
func planLimits(p *model.Package, r *model.Resource, plan int) jen.Code {
	var list []jen.Code
	add := func(at string, numbers []schema.Numbers, last bool) {
		switch {
		case numbers != nil:
			list = append(list, pair(at, lines(each(r.Limits, func(i int, l *model.Limit) jen.Code {
				if numbers[i].Absent() {
					return jen.Values()
				}
				return noted(l.Name+": "+words.Limit(numbers[i], l.Window), parameters(numbers[i]))
			})...)))
		case last:
			list = append(list, pair(at, jen.Nil()))
		}
	}
	allNames := r.AllNames()
	for i, k := range p.Kinds {
		var numbers []schema.Numbers
		for _, c := range r.Charged {
			if b := c.Buckets[0]; c.Kind == k && !b.AllNames {
				numbers = b.Plans[plan]
			}
		}
		add(k.Const, numbers, i == len(p.Kinds)-1 && allNames == nil)
	}
	for i, c := range allNames {
		add(c.Const, c.Plans[plan], i == len(allNames)-1)
	}
	return lines(list...)
}

// quotedNames returns the names of plans as Go literals.
func quotedNames(p *model.Plans) []string {
	names := p.Names()
	for i, name := range names {
		names[i] = fmt.Sprintf("%q", name)
	}
	return names
}
