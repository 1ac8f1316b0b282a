package emit

import (
	"fmt"
	"strconv"

	"github.com/dave/jennifer/jen"

	"github.com/sluice-go/sluice/gen/internal/expr"
	"github.com/sluice-go/sluice/gen/internal/model"
	"github.com/sluice-go/sluice/gen/internal/words"
)

// dynamoDB prints a resource's implementation of codec.Resource, or of codec.ByKind, and the bucket's
// marshalers.
func dynamoDB(f *file, r *model.Resource) {
	if r.Variants != nil {
		byKind(f, r)
	} else {
		f.decl("", jen.Var().Id("_").Qual(codecPath, "Resource").Op("=").Id(r.Definition).Values())
		paths(f, r)
	}
	key(f, r)
	decode(f, r)
	if r.Variants == nil {
		decodeBalances(f, r)
	}
	marshal(f, r)
	unmarshal(f, r)
}

// paths prints all write paths.
func paths(f *file, r *model.Resource) {
	for _, p := range expr.Paths(r) {
		path(f, r, p)
	}
}

// byKind prints a resource's variants, and the method that chooses one.
func byKind(f *file, r *model.Resource) {
	f.decl("", jen.Var().Id("_").Qual(codecPath, "ByKind").Op("=").Id(r.Definition).Values())
	f.decl("Of implements codec.ByKind: the code for buckets of a kind, which differ in their limits.",
		jen.Func().Params(jen.Id(r.Definition)).Id("Of").Params(jen.Id("kind").Int()).Qual(codecPath,
			"Resource").Block(
			jen.Switch(jen.Id("kind")).BlockFunc(func(g *jen.Group) {
				for _, v := range r.Variants {
					g.Case(each(v.Kinds, func(_ int, k *model.Kind) jen.Code { return jen.Id(k.Const) })...).Block(
						jen.Return(jen.Id(v.Definition).Values()))
				}
			}),
			jen.Return(jen.Nil())))
	for _, v := range r.Variants {
		f.decl(fmt.Sprintf("%s is %s for %s, whose buckets hold %s.", v.Definition, r.Name,
			words.List(kindTypes(v.Kinds), "and"), words.List(limitNames(&v.Resource), "and")),
			jen.Type().Id(v.Definition).Struct(jen.Id(r.Definition)))
		paths(f, &v.Resource)
		decode(f, &v.Resource)
		decodeBalances(f, &v.Resource)
	}
}

// kindTypes returns the types of kinds.
func kindTypes(kinds []*model.Kind) []string {
	names := make([]string, len(kinds))
	for i, k := range kinds {
		names[i] = k.Type
	}
	return names
}

func item() *jen.Statement { return jen.Qual(codecPath, "Item") }

// number and text encode an attribute. write is a field or a method of the Write.
func number(v jen.Code) *jen.Statement { return jen.Qual(codecPath, "N").Call(v) }
func text(v jen.Code) *jen.Statement   { return jen.Qual(codecPath, "S").Call(v) }
func write(name string) *jen.Statement { return jen.Id("w").Dot(name) }

// path prints one write path: its text, and below it the builder.
func path(f *file, r *model.Resource, p *expr.Path) {
	if p.Update == "" {
		f.decl("", jen.Const().Id(p.Path.Condition).Op("=").Add(raw(p.Condition)))
		f.decl("Create implements codec.Resource: puts a full bucket less the cost.",
			builder(r, p, create(r, p)...))
		return
	}
	f.decl("", jen.Const().Id(p.Path.Update).Op("=").Add(raw(p.Update)))
	f.decl("", jen.Const().Id(p.Path.Condition).Op("=").Add(raw(p.Condition)))
	body := []jen.Code{write("Begin").Call(jen.Id(p.Path.Update), jen.Id(p.Path.Condition))}
	body = append(body, operands(r, p)...)
	f.decl(p.Method+" implements codec.Resource: "+purpose(p.Method),
		builder(r, p, append(body, write("End").Call())...))
}

func builder(r *model.Resource, p *expr.Path, body ...jen.Code) jen.Code {
	return jen.Func().Params(jen.Id(r.Definition)).Id(p.Method).
		Params(jen.Id("w").Op("*").Qual(codecPath, "Write")).Block(body...)
}

// purpose returns the effect of a path, for its doc comment.
func purpose(method string) string {
	switch method {
	case "Normal":
		return "claims the refill and takes the cost."
	case "Retry":
		return "takes the cost of stored tokens and leaves the refill unclaimed."
	case "Adjust":
		return "gives back, whatever the balance."
	}
	return "stores the numbers, adds new limits, drops removed ones, and takes the cost."
}

// operands is the Go code that gives the operands of a path their values: first the bucket's own, then limit
// by limit.
func operands(r *model.Resource, p *expr.Path) []jen.Code {
	var code []jen.Code
	placeholders := make([]map[expr.Value]string, r.Width)
	for i := range placeholders {
		placeholders[i] = make(map[expr.Value]string)
	}
	for _, o := range p.Operands {
		if o.Value.OfLimit() {
			placeholders[o.Limit][o.Value] = o.Placeholder
			continue
		}
		method, value := shared(o.Value)
		code = append(code, write(method).Call(jen.Lit(o.Placeholder), value))
	}
	for _, l := range r.Limits {
		i := l.Index
		for _, g := range groups() {
			if _, ok := placeholders[i][g.values[0]]; !ok {
				continue
			}
			arguments := []string{strconv.Itoa(i)}
			for _, v := range g.values {
				arguments = append(arguments, strconv.Quote(placeholders[i][v]))
			}
			code = append(code, write(g.method).Add(flow(len("w.")+len(g.method), arguments)))
		}
	}
	return code
}

// together is a set of values of one limit, and the method of codec.Write that gives all of them.
type together struct {
	method string
	values []expr.Value // the first is in no other set
}

func groups() []together {
	return []together{
		{"Charge", []expr.Value{expr.Net, expr.Used}},
		{"Take", []expr.Value{expr.Given, expr.Used}},
		{"Numbers", []expr.Value{expr.Capacity, expr.Burst, expr.Refill, expr.Period}},
		{"Bounds", []expr.Value{expr.Lo, expr.Hi}},
	}
}

// shared is the method of codec.Write, and the Go code of the value, for an operand of the bucket itself.
func shared(v expr.Value) (method string, value jen.Code) {
	switch v {
	case expr.Refilled:
		return "N", write("RF")
	case expr.RefilledSeen:
		return "N", write("Image").Dot("Refilled")
	case expr.Version:
		return "N", write("CV")
	case expr.VersionSeen:
		return "N", write("Image").Dot("Version")
	case expr.Op:
		return "S", write("Op")
	default:
		return "N", write("TTL")
	}
}

// bucketFields returns the fields of r's bucket between its entity and its limits.
func bucketFields(r *model.Resource) []*model.Field {
	var fields []*model.Field
	for _, a := range r.Attributes() {
		if a.Field != nil {
			fields = append(fields, a.Field)
		}
	}
	return fields
}

// create builds the item by the bucket's own marshaler, so that its attributes are listed once.
func create(r *model.Resource, p *expr.Path) []jen.Code {
	fields := []jen.Code{pair("Entity", write("Entity"))}
	for _, field := range bucketFields(r) {
		fields = append(fields, pair(field.Name, write(field.Write)))
	}
	for _, l := range r.Limits {
		fields = append(fields, pair(l.Field, write("Full").Call(jen.Lit(l.Index))))
	}
	return []jen.Code{
		define("b", jen.Id(r.Bucket).Add(lines(fields...))),
		write("Put").Call(jen.Id("b").Dot("MarshalItem").Call(), jen.Id(p.Path.Condition)),
	}
}

// key prints Key.
func key(f *file, r *model.Resource) {
	f.decl("Key implements codec.Resource.",
		jen.Func().Params(jen.Id(r.Definition)).Id("Key").Params(jen.Id("entity").String()).Add(item()).Block(
			jen.Return(item().Values(
				pair(`"PK"`, text(jen.Lit(model.EntityPrefix).Op("+").Id("entity"))),
				pair(`"SK"`, text(jen.Lit(r.SortKey))),
			))))
}

// decode prints Decode, which every reader of an item goes through.
func decode(f *file, r *model.Resource) {
	body := []jen.Code{
		define("d", jen.Qual(codecPath, "Decoder").Values(pair("Item", jen.Id("item")))),
		jen.Id("d").Dot("Image").Call(jen.Id("dst"), jen.Lit(r.Width)),
	}
	if len(r.Limits) < r.Width { // the memory may hold balances of another bucket
		body = append(body, jen.Id("clear").Call(jen.Id("dst").Dot("Balances")),
			jen.Id("clear").Call(jen.Id("dst").Dot("Missing")))
	}
	for _, l := range r.Limits {
		body = append(body, jen.Id("d").Dot("Balance").Add(flow(len("\td.Balance"), append([]string{
			fmt.Sprintf("&dst.Balances[%d]", l.Index), fmt.Sprintf("&dst.Missing[%d]", l.Index)},
			quoted(l.Attrs)...))))
	}
	body = append(body,
		jen.Id("dst").Dot("Extra").Op("=").Id("d").Dot("Extra").Add(flow(len("\tdst.Extra = d.Extra"),
			quotedLimits(r))),
		jen.Return(jen.Id("d").Dot("Err").Call()))
	says := "Decode implements codec.Resource."
	if r.Variants != nil {
		says = "Decode reads a bucket of any kind: limits that its kind does not have are Missing."
	}
	f.decl(says, reader(r, "Decode", body...))
}

// decodeBalances prints DecodeBalances, the reader of the hot path.
func decodeBalances(f *file, r *model.Resource) {
	read := func(attr string) jen.Code { return jen.Id("d").Dot("Int").Call(jen.Lit(attr)) }
	body := []jen.Code{
		define("d", jen.Qual(codecPath, "Decoder").Values(pair("Item", jen.Id("item")))),
		jen.Id("dst").Dot("Refilled").Op("=").Add(read(model.Refilled)),
	}
	for _, l := range r.Limits {
		body = append(body, jen.Id("dst").Dot("Balances").Index(jen.Lit(l.Index)).Dot("Tokens").Op("=").Add(read(
			l.Attrs.Tokens)))
	}
	f.decl("DecodeBalances implements codec.Resource: reads what a charge changes into an image that "+
		"Decode filled.",
		reader(r, "DecodeBalances", append(body, jen.Return(jen.Id("d").Dot("Err").Call()))...))
}

// reader is a method that reads an item into an image.
func reader(r *model.Resource, method string, body ...jen.Code) jen.Code {
	return jen.Func().Params(jen.Id(r.Definition)).Id(method).Params(
		jen.Id("dst").Op("*").Qual(bucketPath, "Image"), jen.Id("item").Add(item()),
	).Error().Block(body...)
}

// quoted returns the names of a limit's attributes as Go literals.
func quoted(a model.Attrs) []string {
	all := a.All()
	for i, attr := range all {
		all[i] = strconv.Quote(attr)
	}
	return all
}

// marshal prints MarshalItem.
func marshal(f *file, r *model.Resource) {
	b := func(field string) *jen.Statement { return jen.Id("b").Dot(field) }
	value := func(a model.Attribute) jen.Code {
		switch {
		case a.Field != nil && a.Field.Number:
			return number(b(a.Field.Name))
		case a.Field != nil:
			return text(b(a.Field.Name))
		case a.Entity && a.Text == "":
			return text(b("Entity"))
		case a.Entity:
			return text(jen.Lit(a.Text).Op("+").Add(b("Entity")))
		case a.Const != "":
			return text(jen.Id(a.Const))
		}
		return text(jen.Lit(a.Text))
	}
	var elements []jen.Code
	for _, a := range r.Attributes() {
		elements = append(elements, pair(strconv.Quote(a.Name), value(a)))
	}
	body := []jen.Code{define("item", attributes().Add(lines(elements...)))}
	for _, l := range r.Limits {
		body = append(body, jen.Qual(codecPath, "PutBalance").Add(flow(len("\tcodec.PutBalance"),
			append([]string{"item", "&b." + l.Field}, quoted(l.Attrs)...))))
	}
	f.decl("MarshalItem returns b as DynamoDB stores it, without limits that are zero.",
		jen.Func().Params(jen.Id("b").Op("*").Id(r.Bucket)).Id("MarshalItem").Params().Add(attributes()).Block(
			append(body, jen.Return(jen.Id("item")))...))
}

// attributes is the type of an item in exported functions.
func attributes() *jen.Statement { return jen.Map(jen.String()).Qual(typesPath, "AttributeValue") }

// unmarshal prints UnmarshalItem, which copies the image that Decode fills.
func unmarshal(f *file, r *model.Resource) {
	image := func(field string) *jen.Statement { return jen.Id("i").Dot(field) }
	fields := []jen.Code{pair("Entity", jen.Id("d").Dot("Text").Call(jen.Lit(model.EntityID)))}
	for _, field := range bucketFields(r) {
		fields = append(fields, pair(field.Name, image(field.Name)))
	}
	for i, l := range r.Limits {
		fields = append(fields, pair(l.Field, image("Balances").Index(jen.Lit(i))))
	}
	f.decl("UnmarshalItem reads b from an item. Limits that the item lacks are zero. An error names the bad "+
		"attribute.",
		jen.Func().Params(jen.Id("b").Op("*").Id(r.Bucket)).Id("UnmarshalItem").Params(jen.Id("item").Add(
			attributes())).Error().Block(
			jen.Var().Id("i").Qual(bucketPath, "Image"),
			jen.If(define("err", jen.Parens(jen.Id(r.Definition).Values()).Dot("Decode").Call(jen.Op("&").Id("i"),
				jen.Id("item"))),
				jen.Err().Op("!=").Nil()).Block(jen.Return(jen.Err())),
			define("d", jen.Qual(codecPath, "Decoder").Values(pair("Item", jen.Id("item")))),
			jen.Op("*").Id("b").Op("=").Id(r.Bucket).Add(lines(fields...)),
			jen.Return(jen.Id("d").Dot("Err").Call()),
		))
}
