package emit

import (
	"github.com/dave/jennifer/jen"

	"github.com/sluice-go/sluice/gen/internal/model"
)

// deltas prints deltas.go.
func deltas(f *file, p *model.Package) {
	counter := func(_ int, l *model.Limit) jen.Code {
		fields := []jen.Code{
			pair("Limit", jen.Lit(l.Name)), pair("Consumed", jen.Lit(l.Attrs.Consumed)), pair("Carried",
				jen.Lit(l.Attrs.Carried)),
		}
		around := `codec.Counter{Limit: "", Consumed: "", Carried: ""},`
		if l.Window != nil {
			fields = append(fields, pair("Ends", jen.Lit(l.Attrs.Ends)))
			around += `, Ends: ""` + l.Attrs.Ends
		}
		few := len(fields)
		if 3*tab+len(around)+len(l.Name)+len(l.Attrs.Consumed)+len(l.Attrs.Carried) > columns {
			few = 0
		}
		return jen.Qual(codecPath, "Counter").Add(braces(fields, few))
	}
	found := func(r *model.Resource) jen.Code {
		return jen.Return(jen.Id("rec").Dot("Deltas").Add(arguments(each(r.Limits, counter)...)))
	}
	choices := append(each(p.Resources, func(_ int, r *model.Resource) jen.Code {
		return jen.Case(jen.Id(r.Const)).Block(found(r))
	}), jen.Case(jen.Lit("")).Block(jen.Return(jen.Nil(), jen.Nil())))
	f.decl("ExtractDeltas returns the consumption in rec, a record of the table's stream. Limits of this "+
		"schema come first, in its order, then limits that only the bucket has, by name. Resources that are not "+
		"in this schema are included. Items that are no buckets, and items that expire, have none. An error "+
		"names the item and the malformed attribute.",
		jen.Func().Id("ExtractDeltas").Params(jen.Id("rec").Qual(codecPath, "Record")).
			Params(jen.Index().Qual(codecPath, "Delta"), jen.Error()).Block(
			jen.Switch(jen.Id("rec").Dot("Bucket").Call()).Block(choices...),
			jen.Return(jen.Id("rec").Dot("Deltas").Call()),
		))
}
