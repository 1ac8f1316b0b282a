package emit

import (
	"fmt"

	"github.com/dave/jennifer/jen"

	"github.com/sluice-go/sluice/gen/internal/model"
)

// entities prints entities.go: one struct for each kind.
func entities(f *file, p *model.Package) {
	f.decl(fmt.Sprintf("Entity is any kind of entity of %s.", p.Source),
		jen.Type().Id("Entity").Interface(jen.Qual(runtimePath, "Entity"), jen.Id("entity").Params()))

	f.decl("Kinds in schema order, as runtime.Link.Kind indexes them.",
		jen.Const().Defs(each(p.Kinds, func(i int, k *model.Kind) jen.Code {
			if i == 0 {
				return jen.Id(k.Const).Op("=").Iota()
			}
			return jen.Id(k.Const)
		})...))

	for _, k := range p.Kinds {
		kind(f, k)
	}
	for _, k := range p.Kinds {
		chain(f, k)
	}
	f.Line()
	for _, k := range p.Kinds {
		f.Func().Params(jen.Id(k.Type)).Id("entity").Params().Block()
	}
	for _, k := range p.Kinds {
		f.Line()
		for _, m := range k.Markers {
			f.Func().Params(jen.Id(k.Type)).Id(m).Params().Block()
		}
	}
}

func kind(f *file, k *model.Kind) {
	says := fmt.Sprintf("%s is an entity without parent.", k.Type)
	fields := []jen.Code{
		jen.Id("_").Struct().Comment("// forces field names"),
		jen.Id("ID").String().Comment("// 1 to 256 bytes of UTF-8, no '#'"),
	}
	if k.Parent != nil {
		says = fmt.Sprintf("%s is an entity whose parent is %s.", k.Type, article(k.Parent.Type))
		fields = append(fields, jen.Id(k.Parent.Type).Id(k.Parent.Type).Comment("// not charged by this entity's calls: may stay empty"))
	}
	says += fmt.Sprintf(" Its id is stored as %s<ID>", k.Prefix)
	if k.Parent != nil {
		says += fmt.Sprintf(": two of the same ID are one, whatever their %s", k.Parent.Type)
	}
	says += "."
	f.decl(about(says, k.Doc), jen.Type().Id(k.Type).Struct(fields...))
}

func chain(f *file, k *model.Kind) {
	link := jen.Append(jen.Id("dst"), jen.Qual(runtimePath, "Link").Values(
		pair("Kind", jen.Id(k.Const)), pair("ID", jen.Id(k.Receiver).Dot("ID"))))
	body := []jen.Code{jen.Return(link)}
	if k.Parent != nil {
		body = []jen.Code{
			jen.Id("dst").Op("=").Add(link),
			jen.Return(jen.Id(k.Receiver).Dot(k.Parent.Type).Dot("Chain").Call(jen.Id("dst"))),
		}
	}
	f.decl("Chain implements runtime.Entity.",
		jen.Func().Params(jen.Id(k.Receiver).Id(k.Type)).Id("Chain").
			Params(jen.Id("dst").Index().Qual(runtimePath, "Link")).Index().Qual(runtimePath, "Link").Block(body...))
}
