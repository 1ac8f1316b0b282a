package emit

import (
	"fmt"

	"github.com/dave/jennifer/jen"

	"github.com/sluice-go/sluice/gen/internal/expr"
	"github.com/sluice-go/sluice/gen/internal/model"
)

// dynamoDB prints what the DynamoDB store asks of a resource: codec.Resource, and the bucket's marshalers.
func dynamoDB(f *file, r *model.Resource) {
	f.decl("", jen.Var().Id("_").Qual(codecPath, "Resource").Op("=").Id(r.Definition).Values())
	for _, p := range expr.Paths(r) {
		path(f, r, p)
	}
	begin(f, r)
	key(f, r)
	decode(f, r)
	marshal(f, r)
	unmarshal(f, r)
}

func item() *jen.Statement { return jen.Qual(codecPath, "Item") }

// number and text encode an attribute; write is a field of the Write.
func number(v jen.Code) *jen.Statement { return jen.Qual(codecPath, "N").Call(v) }
func text(v jen.Code) *jen.Statement   { return jen.Qual(codecPath, "S").Call(v) }
func write(name string) *jen.Statement { return jen.Id("w").Dot(name) }

// path prints one write path: its text, and right below it the builder.
func path(f *file, r *model.Resource, p *expr.Path) {
	if p.Update == "" {
		f.decl("", jen.Const().Id(p.Path.Condition).Op("=").Add(raw(p.Condition)))
		f.decl("Create implements codec.Resource: puts a full bucket less the cost.", builder(jen.Id(r.Definition), p, create(r, p)...))
		return
	}
	f.decl("", jen.Const().Id(p.Path.Update).Op("=").Add(raw(p.Update)))
	f.decl("", jen.Const().Id(p.Path.Condition).Op("=").Add(raw(p.Condition)))
	body := []jen.Code{define("v", jen.Id("r").Dot("begin").Call(
		jen.Id("w"), jen.Id(p.Path.Update), jen.Id(p.Path.Condition), jen.Lit(len(p.Operands))))}
	for _, o := range p.Operands {
		body = append(body, jen.Id("v").Index(jen.Lit(o.Placeholder)).Op("=").Add(operand(o)))
	}
	f.decl(p.Method+" implements codec.Resource: "+purpose(p.Method), builder(jen.Id("r").Id(r.Definition), p, body...))
}

func builder(receiver jen.Code, p *expr.Path, body ...jen.Code) jen.Code {
	return jen.Func().Params(receiver).Id(p.Method).
		Params(jen.Id("w").Op("*").Qual(codecPath, "Write")).Block(body...)
}

// purpose says what a path is for.
func purpose(method string) string {
	switch method {
	case "Normal":
		return "claims the refill and takes the cost."
	case "Retry":
		return "takes the cost of stored tokens and leaves the refill unclaimed."
	case "Adjust":
		return "gives back, whatever the balance."
	}
	return "stores parameters, adds limits that the bucket lacks, drops removed ones, and takes the cost."
}

// operand is the Go code of an operand's value.
func operand(o expr.Operand) jen.Code {
	of := func(vector string) *jen.Statement { return write(vector).Index(jen.Lit(o.Limit)) }
	switch o.Value {
	case expr.Refilled:
		return number(write("RF"))
	case expr.RefilledSeen:
		return number(write("Image").Dot("Refilled"))
	case expr.Version:
		return number(write("CV"))
	case expr.VersionSeen:
		return number(write("Image").Dot("Version"))
	case expr.Op:
		return text(write("Op"))
	case expr.TTL:
		return number(write("TTL"))
	case expr.Net:
		return number(jen.Qual(bucketPath, "Sub").Call(of("Fill"), of("Cost")))
	case expr.Given:
		return number(jen.Op("-").Add(of("Cost")))
	case expr.Used:
		return number(of("Cost"))
	case expr.Lo:
		return jen.Qual(codecPath, "Bound").Call(of("Lo"))
	case expr.Hi:
		return jen.Qual(codecPath, "Bound").Call(of("Hi"))
	case expr.Capacity:
		return number(of("Limits").Dot("Capacity"))
	case expr.Burst:
		return number(of("Limits").Dot("Burst"))
	case expr.Refill:
		return number(of("Limits").Dot("Refill"))
	default:
		return number(of("Limits").Dot("Period"))
	}
}

// create builds the item through the bucket's own marshaler, so that its attributes stand in one place.
func create(r *model.Resource, p *expr.Path) []jen.Code {
	fields := []jen.Code{
		pair("Entity", write("Entity")),
		pair("Refilled", write("RF")),
		pair("Version", write("CV")),
		pair("Op", write("Op")),
		pair("TTL", write("TTL")),
	}
	for i, l := range r.Limits {
		limit, cost := write("Limits").Index(jen.Lit(i)), write("Cost").Index(jen.Lit(i))
		fields = append(fields, pair(l.Field, jen.Qual(bucketPath, "Balance").Add(lines(
			pair("Limit", limit),
			pair("Tokens", jen.Qual(bucketPath, "Sub").Call(jen.Add(limit).Dot("Burst"), cost)),
			pair("Consumed", cost),
		))))
	}
	return []jen.Code{
		define("b", jen.Id(r.Bucket).Add(lines(fields...))),
		jen.List(write("Item"), write("Update"), write("Cond")).Op("=").
			List(jen.Id("b").Dot("MarshalItem").Call(), jen.Lit(""), jen.Id(p.Path.Condition)),
		jen.List(write("Names"), write("Values")).Op("=").List(jen.Nil(), jen.Nil()),
	}
}

// begin prints what the builders of updates share.
func begin(f *file, r *model.Resource) {
	fresh := func(field string, size jen.Code, of jen.Code) []jen.Code {
		return []jen.Code{
			jen.If(write(field).Op("==").Nil()).Block(write(field).Op("=").Make(of, size)),
			jen.Id("clear").Call(write(field)),
		}
	}
	body := []jen.Code{
		jen.List(write("Item"), write("Update"), write("Cond")).Op("=").List(jen.Nil(), jen.Id("update"), jen.Id("cond")),
	}
	body = append(body, fresh("Names", jen.Lit(1), jen.Map(jen.String()).String())...)
	body = append(body, write("Names").Index(jen.Lit("#ttl")).Op("=").Lit("ttl").Comment("// a reserved word"))
	body = append(body, fresh("Values", jen.Id("n"), item())...)
	body = append(body, jen.Return(write("Values")))
	f.decl("begin sets the text of an update with n values, and returns w's values, emptied.",
		jen.Func().Params(jen.Id(r.Definition)).Id("begin").Params(
			jen.Id("w").Op("*").Qual(codecPath, "Write"), jen.List(jen.Id("update"), jen.Id("cond")).String(), jen.Id("n").Int(),
		).Add(item()).Block(body...))
}

// key prints Key.
func key(f *file, r *model.Resource) {
	f.decl("Key implements codec.Resource.",
		jen.Func().Params(jen.Id(r.Definition)).Id("Key").Params(jen.Id("entity").String()).Add(item()).Block(
			jen.Return(item().Values(
				pair(`"PK"`, text(jen.Lit("ENTITY#").Op("+").Id("entity"))),
				pair(`"SK"`, text(jen.Lit(r.SortKey))),
			))))
}

// decode prints Decode, which goes through the bucket's own reader.
func decode(f *file, r *model.Resource) {
	d, dst := jen.Id("d"), jen.Id("dst")
	n := len(r.Limits)
	body := []jen.Code{
		define("d", jen.Qual(codecPath, "Decoder").Values(pair("Item", jen.Id("item")))),
		jen.Op("*").Add(dst).Op("=").Qual(bucketPath, "Image").Add(lines(
			pair("Refilled", jen.Add(d).Dot("Int").Call(jen.Lit("rf"))),
			pair("Version", jen.Add(d).Dot("Int").Call(jen.Lit("cv"))),
			pair("TTL", jen.Add(d).Dot("Int").Call(jen.Lit("ttl"))),
			pair("Op", jen.Add(d).Dot("Text").Call(jen.Lit("op"))),
			pair("Balances", jen.Make(jen.Index().Qual(bucketPath, "Balance"), jen.Lit(n))),
			pair("Missing", jen.Make(jen.Index().Bool(), jen.Lit(n))),
		)),
	}
	for i, l := range r.Limits {
		body = append(body, balance(jen.Op("&").Id("dst").Dot("Balances").Index(jen.Lit(i)),
			jen.Op("&").Id("dst").Dot("Missing").Index(jen.Lit(i)), l))
	}
	names := each(r.Limits, func(_ int, l *model.Limit) jen.Code { return jen.Id(l.Const) })
	body = append(body,
		jen.Id("dst").Dot("Extra").Op("=").Id("d").Dot("Extra").Add(args(names)),
		jen.Return(jen.Id("d").Dot("Err").Call()))
	f.decl("Decode implements codec.Resource.",
		jen.Func().Params(jen.Id(r.Definition)).Id("Decode").Params(
			jen.Id("dst").Op("*").Qual(bucketPath, "Image"), jen.Id("item").Add(item()),
		).Error().Block(body...))
}

// balance reads one limit's attributes.
func balance(into, missing jen.Code, l *model.Limit) jen.Code {
	a := []jen.Code{into, missing}
	for _, attr := range l.Attrs.All() {
		a = append(a, jen.Lit(attr))
	}
	return jen.Id("d").Dot("Balance").Call(a...)
}

// marshal prints MarshalItem.
func marshal(f *file, r *model.Resource) {
	b := func(field string) *jen.Statement { return jen.Id("b").Dot(field) }
	elements := []jen.Code{
		pair(`"PK"`, text(jen.Lit("ENTITY#").Op("+").Add(b("Entity")))),
		pair(`"SK"`, text(jen.Lit(r.SortKey))),
		pair(`"GSI2PK"`, text(jen.Lit(r.IndexKey))),
		pair(`"GSI2SK"`, text(jen.Lit("BUCKET#").Op("+").Add(b("Entity")))),
		pair(`"entity_id"`, text(b("Entity"))),
		pair(`"resource"`, text(jen.Id(r.Const))),
		pair(`"rf"`, number(b("Refilled"))),
		pair(`"cv"`, number(b("Version"))),
		pair(`"op"`, text(b("Op"))),
		pair(`"ttl"`, number(b("TTL"))),
	}
	for _, l := range r.Limits {
		for _, a := range []struct{ attr, field string }{
			{l.Attrs.Tokens, "Tokens"}, {l.Attrs.Capacity, "Capacity"}, {l.Attrs.Burst, "Burst"},
			{l.Attrs.Refill, "Refill"}, {l.Attrs.Period, "Period"}, {l.Attrs.Consumed, "Consumed"},
		} {
			elements = append(elements, pair(fmt.Sprintf("%q", a.attr), number(b(l.Field).Dot(a.field))))
		}
	}
	f.decl("MarshalItem returns b as DynamoDB stores it.",
		jen.Func().Params(jen.Id("b").Op("*").Id(r.Bucket)).Id("MarshalItem").Params().Add(attributes()).Block(
			jen.Return(attributes().Add(lines(elements...)))))
}

// attributes is the type of an item as callers know it.
func attributes() *jen.Statement { return jen.Map(jen.String()).Qual(typesPath, "AttributeValue") }

// unmarshal prints UnmarshalItem.
func unmarshal(f *file, r *model.Resource) {
	body := []jen.Code{
		define("d", jen.Qual(codecPath, "Decoder").Values(pair("Item", jen.Id("item")))),
		jen.Op("*").Id("b").Op("=").Id(r.Bucket).Add(lines(
			pair("Entity", jen.Id("d").Dot("Text").Call(jen.Lit("entity_id"))),
			pair("Refilled", jen.Id("d").Dot("Int").Call(jen.Lit("rf"))),
			pair("Version", jen.Id("d").Dot("Int").Call(jen.Lit("cv"))),
			pair("Op", jen.Id("d").Dot("Text").Call(jen.Lit("op"))),
			pair("TTL", jen.Id("d").Dot("Int").Call(jen.Lit("ttl"))),
		)),
		jen.Var().Id("missing").Bool().Comment("// a limit that the item lacks stays zero"),
	}
	for _, l := range r.Limits {
		body = append(body, balance(jen.Op("&").Id("b").Dot(l.Field), jen.Op("&").Id("missing"), l))
	}
	body = append(body, jen.Return(jen.Id("d").Dot("Err").Call()))
	f.decl("UnmarshalItem reads b from an item. Unknown attributes are skipped, limits that the item lacks stay zero, and a\n"+
		"malformed attribute is an error that names it; b is undefined then.",
		jen.Func().Params(jen.Id("b").Op("*").Id(r.Bucket)).Id("UnmarshalItem").Params(jen.Id("item").Add(attributes())).Error().Block(body...))
}
