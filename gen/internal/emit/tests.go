package emit

import (
	"fmt"
	"slices"

	"github.com/dave/jennifer/jen"

	"github.com/sluice-go/sluice/gen/internal/lua"
	"github.com/sluice-go/sluice/gen/internal/model"
)

// tests prints a resource's test file: a test that is a list of its limits, and a benchmark. The bodies are
// in gentest and codectest.
func tests(f *file, p *model.Package, r *model.Resource) {
	overrides := "Overrides"
	if slices.ContainsFunc(r.Limits, capacityAlone) {
		overrides = "Windowed"
	}
	body := []jen.Code{
		jen.Var().Id("c").Id(r.Cost),
		jen.Qual(gentestPath, "Costs").Add(flow(len("gentest.Costs"), append([]string{"t", r.ToVector, r.FromVector,
			"&c"}, costFields(r)...))),
		jen.Var().Id("l").Id(r.Override),
		jen.Qual(gentestPath, overrides).Add(fieldsOf(r, len("gentest."+overrides), "l", "t", r.ToLimits,
			r.FromLimits, "&l")),
	}
	definition := r.Definition + "{}"
	kind := r.Charged[0].Buckets[0].Const
	if p.DynamoDB {
		body = append(body, jen.Var().Id("b").Id(r.Bucket))
		if r.Variants == nil {
			body = append(body, codecTest(r, definition, kind))
		}
		for _, v := range r.Variants {
			body = append(body, codecTest(&v.Resource, v.Definition+"{}", v.Buckets[0].Const))
		}
	}
	if p.Redis {
		body = append(body, jen.Qual(gentestPath, "Scripts").Call(append([]jen.Code{jen.Id("t"),
			jen.Id(definition)}, scriptKeys(r)...)...))
	}
	f.decl(fmt.Sprintf("%s checks the code of %s against its schema.", r.Test, r.Name),
		jen.Func().Id(r.Test).Params(jen.Id("t").Op("*").Qual("testing", "T")).Block(body...))
	if p.DynamoDB {
		if r.Variants != nil {
			definition += ".Of(" + kind + ")"
		}
		f.decl(fmt.Sprintf("%s measures one write of %s, and the decoding of one image.", r.Benchmark, r.Name),
			jen.Func().Id(r.Benchmark).Params(jen.Id("b").Op("*").Qual("testing", "B")).Block(
				jen.Qual(codectestPath, "Benchmark").Call(jen.Id("b"), jen.Id(definition), jen.Id(kind))))
	}
}

// codecTest is the check of a definition's DynamoDB code, by a bucket of a kind.
func codecTest(r *model.Resource, definition, kind string) jen.Code {
	arguments := fieldsOf(r, len("codectest.Test"), "b", "t", definition, kind, "&b")
	return jen.Qual(codectestPath, "Test").Add(arguments)
}

// fieldsOf is the arguments of a call: those given, then a pointer to the field of each limit in the variable
// name.
func fieldsOf(r *model.Resource, before int, name string, arguments ...string) jen.Code {
	for _, field := range limitFields(r) {
		arguments = append(arguments, "&"+name+"."+field)
	}
	return flow(before, arguments)
}

// costFields is pointers to the numbers of a cost in the variable c.
func costFields(r *model.Resource) []string {
	fields := make([]string, len(r.Limits))
	for i, l := range r.Limits {
		fields[i] = "&c." + l.Field
		if l.Currency != "" {
			fields[i] = "(*int64)(" + fields[i] + ")"
		}
	}
	return fields
}

// scriptKeys is the number of keys of each script that is written out.
func scriptKeys(r *model.Resource) []jen.Code {
	var keys []jen.Code
	for _, s := range lua.Scripts(r) {
		if s.Text != "" {
			keys = append(keys, jen.Lit(s.Keys))
		}
	}
	return keys
}

// entitiesTest prints the test of entities.go: a list of the kinds.
func entitiesTest(f *file, p *model.Package) {
	kinds := each(p.Kinds, func(_ int, k *model.Kind) jen.Code {
		entity := jen.Func().Params(jen.Id("id").String()).Id("Entity").Op("{").Return(unresolved(k,
			jen.Id("id"))).Op("}")
		fields := []jen.Code{pair("Name", jen.Lit(k.Name)), pair("ByID", entity)}
		if k.Parent != nil {
			with := jen.Id(k.Type).Values(pair("ID", jen.Lit("1")),
				pair(k.Parent.Type, unresolved(k.Parent, jen.Lit("2"))))
			fields = append(fields, pair("With", with), pair("Parent", jen.Lit(k.Parent.Name)))
		}
		return lines(fields...)
	})
	f.decl("TestEntities checks the chain of each kind's entities, and the parsing of stored ids.",
		jen.Func().Id("TestEntities").Params(jen.Id("t").Op("*").Qual("testing", "T")).Block(
			jen.Qual(gentestPath, "Entities").Call(jen.Id("t"), jen.Id("ParseEntity"),
				jen.Index().Qual(gentestPath, "Kind").Types(jen.Id("Entity")).Add(lines(kinds...))),
		))
}
