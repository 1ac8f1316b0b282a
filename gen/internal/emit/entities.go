package emit

import (
	"fmt"
	"slices"

	"github.com/dave/jennifer/jen"

	"github.com/sluice-go/sluice/gen/internal/model"
)

// entities prints entities.go: one struct for each kind.
func entities(f *file, p *model.Package) {
	f.decl(fmt.Sprintf("Entity is any kind of entity of %s.", p.Source),
		jen.Type().Id("Entity").Interface(jen.Qual(storePath, "Entity"), jen.Id("entity").Params()))

	f.decl("Kinds in schema order, as store.Link.Kind indexes them.",
		jen.Const().Defs(each(p.Kinds, func(i int, k *model.Kind) jen.Code {
			if i == 0 {
				return jen.Id(k.Const).Op("=").Iota()
			}
			return jen.Id(k.Const)
		})...))

	for _, k := range p.Kinds {
		kind(f, p, k)
	}
	for _, k := range p.Kinds {
		if k.Parent != nil {
			byID(f, k)
		}
	}
	parse(f, p)
	for _, k := range p.Kinds {
		chain(f, k)
	}
	for _, k := range p.Kinds {
		f.decl("String returns the entity as it is stored, quoted unless it is plain.",
			jen.Func().Params(jen.Id(k.Receiver).Id(k.Type)).Id("String").Params().String().Block(jen.Return(
				jen.Qual(storePath, "Quote").Call(jen.Lit(k.Prefix).Op("+").Id(k.Receiver).Dot("ID")))))
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

func kind(f *file, p *model.Package, k *model.Kind) {
	says := fmt.Sprintf("%s is an entity without parent.", k.Type)
	fields := []jen.Code{
		jen.Id("_").Struct().Comment("// forces field names"),
		jen.Id("ID").String().Comment("// 1 to 256 bytes of UTF-8, no '#'"),
	}
	if k.Parent != nil {
		says = fmt.Sprintf("%s is an entity whose parent is %s.", k.Type, article(k.Parent.Type))
		fields = append(fields, described(jen.Id(k.Parent.Type).Id(k.Parent.Type), parentNote(p, k))...)
		fields = append(fields, jen.Id("lookup").Bool().Comment("// the parent comes from the table"))
	}
	says += fmt.Sprintf(" Its id is stored as %s<ID>", k.Prefix)
	if k.Parent != nil {
		says += fmt.Sprintf(": two with the same ID are one entity, even with another %s", k.Parent.Type)
	}
	says += "."
	f.decl(about(says, k.Doc), jen.Type().Id(k.Type).Struct(fields...))
}

// byID prints the constructor of an entity whose parent is looked up. Kinds whose ancestors no call charges
// have it too: ParseEntity needs it, and callers need not change when limits.yaml charges the parent later.
func byID(f *file, k *model.Kind) {
	says := fmt.Sprintf("%s is %s without its %s. No call of %s charges the parent, so it is not looked up.",
		k.ByID, article(k.Type), k.Parent.Type, article(k.Type))
	if by := lookedUpBy(k); len(by) > 0 {
		says = fmt.Sprintf("%s is %s whose %s is looked up in the table, and cached, by calls on %s. They return "+
			"an *InvalidError if the table has no %s of this ID.",
			k.ByID, article(k.Type), k.Parent.Type, resourceNames(by), k.Type)
	}
	f.decl(says, jen.Func().Id(k.ByID).Params(jen.Id("id").String()).Id(k.Type).Block(
		jen.Return(jen.Id(k.Type).Values(pair("ID", jen.Id("id")), pair("lookup", jen.True())))))
}

// lookedUpBy returns the resources whose calls look up the parent of an entity of kind k.
func lookedUpBy(k *model.Kind) (by []string) {
	for _, name := range slices.Concat(k.ParentBy, k.AboveBy, k.PlanBy) {
		if !slices.Contains(by, name) {
			by = append(by, name)
		}
	}
	return by
}

// parse prints ParseEntity.
func parse(f *file, p *model.Package) {
	names := make([]string, len(p.Kinds))
	for i, k := range p.Kinds {
		names[i] = k.Name
	}
	before := len("\tkind, id, err := store.ParseID(stored, []string{})")
	list := jen.Index().String().Add(braces(literals(names...), few(6, before, len(`"", `), names)))
	entities := each(p.Kinds, func(_ int, k *model.Kind) jen.Code {
		return pair(k.Const,
			unresolved(k, jen.Id("id")))
	})
	// stays when a kind is added
	says := "ParseEntity reads an entity as stored, such as " + p.Kinds[0].Prefix + "123."
	if slices.ContainsFunc(p.Kinds, func(k *model.Kind) bool { return k.Parent != nil }) {
		says += " Its parent, if its kind has one, is looked up by calls."
	}
	f.decl(says+" The error is an *InvalidError.",
		jen.Func().Id("ParseEntity").Params(jen.Id("stored").String()).Params(jen.Id("Entity"), jen.Error()).Block(
			define("kind, id, err", jen.Qual(storePath, "ParseID").Call(jen.Id("stored"), list)),
			jen.If(jen.Err().Op("!=").Nil()).Block(jen.Return(jen.Nil(), jen.Err())),
			jen.Return(jen.Index().Id("Entity").Add(lines(entities...)).Index(jen.Id("kind")), jen.Nil()),
		))
}

// unresolved is an entity of which only the id is known.
func unresolved(k *model.Kind, id jen.Code) jen.Code {
	if k.Parent == nil {
		return jen.Id(k.Type).Values(pair("ID", id))
	}
	return jen.Id(k.ByID).Call(id)
}

func chain(f *file, k *model.Kind) {
	link := func(more ...jen.Code) jen.Code {
		return jen.Append(jen.Id("dst"), jen.Qual(storePath, "Link").Values(append([]jen.Code{
			pair("Kind", jen.Id(k.Const)), pair("ID", jen.Id(k.Receiver).Dot("ID"))}, more...)...))
	}
	body := []jen.Code{jen.Return(link())}
	if k.Parent != nil {
		lookup := jen.Id(k.Receiver).Dot("lookup")
		body = []jen.Code{
			jen.Id("dst").Op("=").Add(link(pair("Lookup", lookup))),
			jen.If(lookup).Block(jen.Return(jen.Id("dst"))),
			jen.Return(jen.Id(k.Receiver).Dot(k.Parent.Type).Dot("Chain").Call(jen.Id("dst"))),
		}
	}
	f.decl("Chain implements store.Entity.",
		jen.Func().Params(jen.Id(k.Receiver).Id(k.Type)).Id("Chain").
			Params(jen.Id("dst").Index().Qual(storePath, "Link")).Index().Qual(storePath, "Link").Block(body...))
}
