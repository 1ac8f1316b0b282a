package emit

import (
	"github.com/dave/jennifer/jen"

	"github.com/sluice-go/sluice/gen/internal/model"
)

// deltas prints deltas.go. Its function names no private type, so that its variables are free to have any name.
func deltas(f *file, p *model.Package) {
	text := func(attr string) *jen.Statement { return jen.Id("rec").Dot("New").Dot("Text").Call(jen.Lit(attr)) }
	cases := each(p.Resources, func(_ int, r *model.Resource) jen.Code {
		return jen.Case(jen.Id(r.Const)).Block(jen.Id("counters").Op("=").Add(jen.Index().Id("counter").Add(lines(
			each(r.Limits, func(_ int, l *model.Limit) jen.Code {
				return jen.Values(jen.Id(l.Const), jen.Lit(l.Attrs.Consumed))
			})...))))
	})
	f.decl("ExtractDeltas returns what rec consumed, in schema order: nothing for items that are no buckets of this schema's\n"+
		"resources, and nothing for those that were removed, for what expires consumes nothing. An attribute that is\n"+
		"malformed is an error that names it.",
		jen.Func().Id("ExtractDeltas").Params(jen.Id("rec").Qual(runtimePath, "Record")).
			Params(jen.Index().Qual(runtimePath, "Delta"), jen.Error()).Block(
			jen.If(jen.Id("rec").Dot("New").Op("==").Nil()).Block(jen.Return(jen.Nil(), jen.Nil())),
			define("sk, _", text("SK")),
			define("resource, ok", jen.Qual("strings", "CutPrefix").Call(jen.Id("sk"), jen.Lit("#BUCKET#"))),
			jen.If(jen.Op("!").Id("ok")).Block(jen.Return(jen.Nil(), jen.Nil())),
			jen.Line(),
			jen.Type().Id("counter").Struct(jen.List(jen.Id("limit"), jen.Id("attr")).String()),
			jen.Var().Id("counters").Index().Id("counter"),
			jen.Switch(jen.Id("resource")).Block(append(cases,
				jen.Default().Block(jen.Return(jen.Nil(), jen.Nil())))...),
			jen.Line(),
			define("entity, ok", text("entity_id")),
			jen.If(jen.Op("!").Id("ok")).Block(jen.Return(jen.Nil(),
				jen.Qual("errors", "New").Call(jen.Lit("sluice: stream record: attribute entity_id: missing, want a string")))),
			jen.Line(),
			jen.Var().Id("out").Index().Qual(runtimePath, "Delta"),
			jen.For(jen.List(jen.Id("_"), jen.Id("c")).Op(":=").Range().Id("counters")).Block(
				jen.Var().Err().Error(),
				jen.If(jen.List(jen.Id("out"), jen.Err()).Op("=").Qual(runtimePath, "AppendDelta").Call(
					jen.Id("out"), jen.Id("rec"), jen.Id("entity"), jen.Id("resource"),
					jen.Id("c").Dot("limit"), jen.Id("c").Dot("attr")),
					jen.Err().Op("!=").Nil()).Block(jen.Return(jen.Nil(), jen.Err())),
			),
			jen.Return(jen.Id("out"), jen.Nil()),
		))
}
