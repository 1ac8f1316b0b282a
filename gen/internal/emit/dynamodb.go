package emit

import (
	"fmt"
	"slices"
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
					g.Case(each(v.Buckets, func(_ int, c *model.Charged) jen.Code { return jen.Id(c.Const) })...).Block(
						jen.Return(jen.Id(v.Definition).Values()))
				}
			}),
			jen.Return(jen.Nil())))
	for _, v := range r.Variants {
		f.decl(fmt.Sprintf("%s is %s for %s, whose buckets hold %s.", v.Definition, r.Name,
			words.List(bucketTypes(v.Buckets), "and"), words.List(limitNames(&v.Resource), "and")),
			jen.Type().Id(v.Definition).Struct(jen.Id(r.Definition)))
		paths(f, &v.Resource)
		decode(f, &v.Resource)
		decodeBalances(f, &v.Resource)
	}
}

// bucketTypes returns the types of kinds that have buckets: all names of Key for those of all names.
func bucketTypes(buckets []*model.Charged) []string {
	names := make([]string, len(buckets))
	for i, c := range buckets {
		if names[i] = c.Kind.Type; c.AllNames {
			names[i] = "all names of " + c.Kind.Type
		}
	}
	return names
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

// write is a field or a method of the Write.
func write(name string) *jen.Statement { return jen.Id("w").Dot(name) }

// path prints one write path: its text, and below it the builder. The builders of the hot path give each
// operand. Those of rare paths name the limits, and package codec loops over them, which costs the compiler
// less (docs/design.md, "Write paths").
func path(f *file, r *model.Resource, p *expr.Path) {
	texts := []string{p.Path.Condition}
	if p.Update != "" {
		texts = []string{p.Path.Update, p.Path.Condition}
		f.decl("", jen.Const().Id(p.Path.Update).Op("=").Add(raw(p.Update)))
	}
	f.decl("", jen.Const().Id(p.Path.Condition).Op("=").Add(raw(p.Condition)))
	var body []jen.Code
	switch p.Method {
	case "Create":
		body = rare(r, p, append([]string{r.Const}, texts...))
	case "Reshape":
		body = rare(r, p, texts)
	default:
		body = append(body, write("Begin").Call(jen.Id(p.Path.Update), jen.Id(p.Path.Condition)))
		body = append(append(body, operands(r, p)...), write("End").Call())
	}
	f.decl(p.Method+" implements codec.Resource: "+purpose(r, p.Method), builder(r, p, body...))
}

// onPlan ends the names of functions of package codec for resources with plans.
const onPlan = "OnPlan"

// rare is the body of a rare path: one call, of the method of codec.Write with the path's name, or of the
// function for resources with plans.
func rare(r *model.Resource, p *expr.Path, arguments []string) []jen.Code {
	arguments = append(arguments, limitsByIndex(r)...)
	if r.OnPlans {
		name := p.Method + onPlan
		return []jen.Code{jen.Qual(codecPath, name).Add(flow(len("codec.")+len(name), append([]string{"w"},
			arguments...)))}
	}
	return []jen.Code{write(p.Method).Add(flow(len("w.")+len(p.Method), arguments))}
}

// limitsByIndex returns the names of r's limits as Go literals, by their index in vectors: "" for a limit
// that a variant does not have.
func limitsByIndex(r *model.Resource) []string {
	names := slices.Repeat([]string{`""`}, r.Width)
	for _, l := range r.Limits {
		names[l.Index] = strconv.Quote(l.Name)
	}
	return names
}

func builder(r *model.Resource, p *expr.Path, body ...jen.Code) jen.Code {
	return jen.Func().Params(jen.Id(r.Definition)).Id(p.Method).
		Params(jen.Id("w").Op("*").Qual(codecPath, "Write")).Block(body...)
}

// purpose returns the effect of a path, for its doc comment.
func purpose(r *model.Resource, method string) string {
	switch method {
	case "Create":
		return "puts a full bucket less the cost."
	case "Normal":
		switch {
		case r.Windows != "" && r.Holds:
			return "claims the refill, opens windows that are due, sweeps holds that are over, and takes the cost."
		case r.Windows != "":
			return "claims the refill, opens windows that are due, and takes the cost."
		case r.Holds:
			return "claims the refill, sweeps holds that are over, and takes the cost."
		}
		return "claims the refill and takes the cost."
	case "Retry":
		return "takes the cost of stored tokens and leaves the refill unclaimed."
	case "Adjust":
		if r.Holds {
			return "gives back, and ends or extends holds, whatever the balance."
		}
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
		{"Bounds", []expr.Value{expr.Lo, expr.Hi}},
		{"Window", []expr.Value{expr.Ends}},
		{"WindowSeen", []expr.Value{expr.EndsSeen}},
		{"Cells", []expr.Value{expr.Cell0, expr.Cell1}},
		{"Epochs", []expr.Value{expr.EpochLo, expr.EpochHi}},
		{"Epoch", []expr.Value{expr.Epoch, expr.EpochSeen}},
		{"CellBounds", []expr.Value{expr.Cell0Lo, expr.Cell0Hi, expr.Cell1Lo, expr.Cell1Hi}},
	}
}

// shared is the method of codec.Write, and the Go code of the value, for an operand of the bucket itself.
func shared(v expr.Value) (method string, value jen.Code) {
	switch v {
	case expr.Refilled:
		return "N", write("RF")
	case expr.RefilledSeen:
		return "N", write("Image").Dot("Refilled")
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

// key prints Key.
func key(f *file, r *model.Resource) {
	f.decl("Key implements codec.Resource.",
		jen.Func().Params(jen.Id(r.Definition)).Id("Key").Params(jen.Id("entity").String()).Add(item()).Block(
			jen.Return(jen.Qual(codecPath, "Key").Call(jen.Id("entity"), jen.Id(r.Const)))))
}

// decode prints Decode, which every reader of an item goes through.
func decode(f *file, r *model.Resource) {
	body := []jen.Code{
		define("d", jen.Qual(codecPath, "Decoder").Values(pair("Item", jen.Id("item")))),
		jen.Id("d").Dot("Image").Call(jen.Id("dst"), jen.Lit(r.Width)),
	}
	if r.OnPlans {
		body = append(body, jen.Id("d").Dot("PlanOf").Call(jen.Id("dst")))
	}
	if len(r.Limits) < r.Width { // the memory may hold balances of another bucket
		body = append(body, jen.Id("clear").Call(jen.Id("dst").Dot("Balances")),
			jen.Id("clear").Call(jen.Id("dst").Dot("Missing")))
	}
	for _, l := range r.Limits {
		call := func(method string, attrs []string) {
			into := []string{fmt.Sprintf("&dst.Balances[%d]", l.Index), fmt.Sprintf("&dst.Missing[%d]", l.Index)}
			body = append(body, jen.Id("d").Dot(method).Add(flow(len("\td.")+len(method), append(into, attrs...))))
		}
		switch all := quoted(l.Attrs); {
		case l.InFlight:
			call("InFlight", all)
		case l.Holds(): // with windows
			own := len(all) - 3
			call("Window", all[:own])
			call("Holds", all[own:])
		case l.Window != nil:
			call("Window", all)
		default:
			call("Balance", all)
		}
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
		balance := func() *jen.Statement { return jen.Id("dst").Dot("Balances").Index(jen.Lit(l.Index)) }
		body = append(body, balance().Dot("Tokens").Op("=").Add(read(l.Attrs.Tokens)))
		if l.Window != nil {
			body = append(body, balance().Dot("Ends").Op("=").Add(read(l.Attrs.Ends)))
		}
		if l.Holds() {
			for cell, attr := range l.Attrs.Cells {
				body = append(body, balance().Dot("Cells").Index(jen.Lit(cell)).Op("=").Add(read(attr)))
			}
			body = append(body, balance().Dot("Epoch").Op("=").Add(read(l.Attrs.Epoch)))
		}
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

// marshal prints MarshalItem, the reverse of UnmarshalItem.
func marshal(f *file, r *model.Resource) {
	b := func(field string) *jen.Statement { return jen.Id("b").Dot(field) }
	balances := ofLimits(r, func(l *model.Limit) string { return "b." + l.Field })
	var fields []jen.Code
	for _, field := range bucketFields(r) {
		fields = append(fields, pair(field.Name, b(field.Name)))
	}
	fields = append(fields, pair("Balances", jen.Index().Qual(bucketPath, "Balance").Op("{"+
		flowing(len("\t\tBalances: []bucket.Balance{"), balances)+"}")))
	marshaler := "Marshal"
	if r.OnPlans {
		marshaler += onPlan
	}
	f.decl("MarshalItem returns b as DynamoDB stores it, without limits that are zero.",
		jen.Func().Params(jen.Id("b").Op("*").Id(r.Bucket)).Id("MarshalItem").Params().Add(attributes()).Block(
			define("i", jen.Qual(bucketPath, "Image").Add(lines(fields...))),
			jen.Return(jen.Qual(codecPath, marshaler).Add(flow(len("return codec.")+len(marshaler), append([]string{
				"b.Entity", r.Const, "&i"}, quotedLimits(r)...))))))
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
