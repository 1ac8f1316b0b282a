package emit

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/dave/jennifer/jen"

	"github.com/sluice-go/sluice/gen/internal/model"
	"github.com/sluice-go/sluice/gen/internal/words"
)

// namesTypes is the types of a template and of one of its names. says describes the type of a name.
func namesTypes(r *model.Resource, says string) []jen.Code {
	t := r.Template
	fields := []jen.Code{jen.Op("*").Qual(runtimePath, "Resource").Types(jen.Id(r.Entity), jen.Id(r.Cost))}
	if t.Prices != "" {
		fields = append(fields, jen.Line(), jen.Id("Prices").Id(t.Prices).Comment("// for Cost of "+r.Usage))
	}
	return []jen.Code{
		field(fmt.Sprintf("%s is the type of Limiter.%s: its Named returns the %s of a name in the catalog, or an "+
			"*UnknownNameError. Call it for each request.", t.Names, r.Const, r.Resource)),
		jen.Id(t.Names).Op("=").Qual(runtimePath, "Names").Types(jen.Id(r.Resource)),
		field(about(says, r.Doc)),
		jen.Id(r.Resource).Struct(fields...),
	}
}

// nameType begins the description of the type of a name.
func nameType(r *model.Resource) string {
	says := fmt.Sprintf("%s is one name of %s: Limiter.%s.Named returns it.", r.Resource, r.Name, r.Const)
	if r.Template.Prices != "" {
		says += " It does not change, so a lease is settled with the prices of its acquire."
	}
	return says
}

// named prints the function that makes the resource of a name, the type of its prices, and its overrides.
func named(f *file, r *model.Resource) {
	t := r.Template
	values := []jen.Code{jen.Id("r")}
	parameter := "_"
	var body []jen.Code
	if t.Prices != "" {
		pricesType(f, r)
		parameter = "stored"
		values = append(values, jen.Id("prices"))
		arguments := []string{"prices.of[:]", "stored"}
		for _, u := range r.Consumes {
			arguments = append(arguments, words.Digits(u.Price, "_"))
		}
		body = []jen.Code{
			jen.Var().Id("prices").Id(t.Prices),
			jen.Qual(storePath, "Prices").Add(flow(len("store.Prices"), arguments)),
		}
	}
	f.decl("", jen.Func().Id(t.Named).Params(
		jen.Id("r").Op("*").Qual(runtimePath, "Resource").Types(jen.Id(r.Entity), jen.Id(r.Cost)),
		jen.Id(parameter).Index().Int64(),
	).Id(r.Resource).Block(append(body, jen.Return(jen.Id(r.Resource).Values(values...)))...))
	nameConfig(f, r)
}

// pricesType prints the type of a name's prices.
func pricesType(f *file, r *model.Resource) {
	prices := make([]string, len(r.Consumes))
	names := []string{strconv.Quote(r.Currency), "p.of[:]"}
	for i, u := range r.Consumes {
		prices[i] = u.Field + " " + words.Price(u.Price)
		if u.Price == 0 {
			prices[i] = u.Field + " none"
		}
		names = append(names, strconv.Quote(u.Name))
	}
	f.decl(fmt.Sprintf("%s has the prices of what calls on one name consume: those of its entry in the "+
		"catalog, and for usages that the entry leaves out, in %s: %s.", r.Template.Prices, r.Currency,
		strings.Join(prices, ", ")),
		jen.Type().Id(r.Template.Prices).Struct(jen.Id("of").Index(jen.Lit(len(r.Consumes))).Qual(moneyPath,
			"Price").Comment("// in the order of "+r.Usage)))
	f.decl("String returns the prices, each for one unit, for 1k or for 1M.",
		jen.Func().Params(jen.Id("p").Id(r.Template.Prices)).Id("String").Params().String().Block(
			jen.Return(jen.Qual(storePath, "PricesText").Add(flow(len("\treturn store.PricesText"), names)))))
}

// nameConfig prints the overrides of a template and of one of its names.
func nameConfig(f *file, r *model.Resource) {
	config := jen.Op("*").Qual(runtimePath, "Config").Types(jen.Id(r.Entity), jen.Id(r.Cost), jen.Id(r.Override))
	too := ""
	if r.OnPlans {
		too = ", and numbers of plans"
	}
	configType(f, r, r.Config, fmt.Sprintf("%s reads and writes overrides of all names of %s%s. Named is for "+
		"one name. Reset and Grant are for the buckets of all names together.", r.Config, r.Name, too))
	if r.OnPlans {
		planMethod(f, r, r.Config, planSays)
	}
	typ, bind := config, jen.Qual(runtimePath, "NamedConfig").Call(jen.Id("c").Dot("Config"), jen.Id("name"))
	if r.OnPlans {
		typ, bind = jen.Op("*").Id(r.Template.Config), jen.Op("&").Id(r.Template.Config).Values(bind)
	}
	f.decl("Named returns the overrides of one name: Entity is for that name alone, and Kind is what the "+
		"catalog has for the name on all plans. Its methods fail with an *UnknownNameError for a name that the "+
		"catalog lacks.",
		jen.Func().Params(jen.Id("c").Op("*").Id(r.Config)).Id("Named").Params(jen.Id("name").String()).Add(
			typ).Block(jen.Return(bind)))
	if r.OnPlans {
		configType(f, r, r.Template.Config, fmt.Sprintf("%s reads and writes overrides of one name of %s.",
			r.Template.Config, r.Name))
		planMethod(f, r, r.Template.Config, "Plan returns what the catalog has for the name, for all entities of "+
			"a kind that are on plan, themselves or by an ancestor.")
	}
}

// allNames prints the indexes in Spec.Kinds of r's buckets of all names together.
func allNames(f *file, p *model.Package, r *model.Resource) {
	all := r.AllNames()
	if all == nil {
		return
	}
	f.decl(fmt.Sprintf("Indexes of the buckets of all names of %s together, behind the kinds.", r.Name),
		jen.Const().Defs(each(all, func(i int, c *model.Charged) jen.Code {
			if i > 0 {
				return jen.Id(c.Const)
			}
			return jen.Id(c.Const).Op("=").Iota().Op("+").Lit(len(p.Kinds))
		})...))
}

// specNames is the fields of a Spec that only a template has.
func specNames(r *model.Resource) []jen.Code {
	fields := []jen.Code{pair("Names", jen.True())}
	if r.Template.Prices != "" {
		fields = append(fields, pair("Usages", slice(jen.String(), each(r.Consumes, func(_ int,
			u *model.Usage) jen.Code {
			return jen.Lit(u.Name)
		}))))
	}
	return fields
}
