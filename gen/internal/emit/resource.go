package emit

import (
	"fmt"
	"slices"
	"strconv"

	"github.com/dave/jennifer/jen"

	"github.com/sluice-go/sluice/gen/internal/model"
	"github.com/sluice-go/sluice/gen/internal/schema"
	"github.com/sluice-go/sluice/gen/internal/words"
)

// resource prints the code that no store is part of: names, types, numbers and vectors.
func resource(f *file, p *model.Package, r *model.Resource) {
	constants(f, r)
	aliases(f, r)
	limitMethods(f, r)

	cost(f, p, r)
	if r.Usage != "" {
		usage(f, r)
	}
	if r.Template != nil {
		named(f, r)
	}
	override(f, p, r)
	if p.DynamoDB {
		bucket(f, r)
	}

	if r.Windows != "" {
		calendars(f, r)
	}
	if r.Template != nil {
		allNames(f, p, r)
	}
	spec(f, p, r)
	vectors(f, r)
}

// constants prints the names.
func constants(f *file, r *model.Resource) {
	f.decl(fmt.Sprintf("%s is the name of resource %s.", r.Const, r.Name),
		jen.Const().Id(r.Const).Op("=").Lit(r.Name))
	var defs []jen.Code
	for i, l := range r.Limits {
		def := jen.Id(l.Const)
		if i == 0 {
			def.Id(r.LimitType).Op("=").Iota().Op("+").Lit(1)
		}
		defs = append(defs, field(limitDoc(l)), def)
	}
	f.decl("", jen.Const().Defs(defs...))
}

// limitMethods prints the methods of the type of limits.
func limitMethods(f *file, r *model.Resource) {
	f.decl("String returns the limit's name, as in DeniedError.Limit and on dashboards.",
		jen.Func().Params(jen.Id("l").Id(r.LimitType)).Id("String").Params().String().Block(
			jen.Return(jen.Qual(storePath, "NameOf").Add(flow(len("\treturn store.NameOf"),
				append([]string{"l"}, quotedLimits(r)...))))))
	f.decl(fmt.Sprintf("Resource returns %s.", r.Name),
		jen.Func().Params(jen.Id(r.LimitType)).Id("Resource").Params().String().Block(jen.Return(jen.Id(r.Const))))
	if r.Currency != "" {
		units := ofLimits(r, func(l *model.Limit) string { return strconv.Quote(l.Currency) })
		f.decl("Unit returns the limit's currency, \"\" for tokens, as in DeniedError.Unit.",
			jen.Func().Params(jen.Id("l").Id(r.LimitType)).Id("Unit").Params().String().Block(
				jen.Return(jen.Qual(storePath, "NameOf").Add(flow(len("\treturn store.NameOf"),
					append([]string{"l"}, units...))))))
	}
	f.decl("Of implements runtime.LimitOf.",
		jen.Func().Params(jen.Id(r.LimitType)).Id("Of").Params(jen.Id(r.Cost)).Block())
}

// aliases prints instances of runtime's generic types, and the types without fields.
func aliases(f *file, r *model.Resource) {
	two := []jen.Code{jen.Id(r.Entity), jen.Id(r.Cost)}
	typeOf := fmt.Sprintf("%s is the type of Limiter.%s.", r.Resource, r.Const)
	if r.Template != nil {
		typeOf = nameType(r)
	}
	typeOf += regionsNote(r)
	if r.LazySettle {
		typeOf += " Settle and Release of its leases return at once. Their change goes out with the bucket's " +
			"next write, or" +
			" within 100 ms; a failure goes to the observer and the log."
	}
	if r.Prefetch > 0 {
		typeOf += " Its calls take tokens from blocks that the process has taken up to " +
			schema.Period(r.Prefetch) + " before: see EXPRESSIONS.md."
	}
	if r.Shadow {
		typeOf += " In shadow: it denies no call, and Shadowed of a lease has the limits that would have denied it."
	}
	own := []jen.Code{
		field(about(typeOf, r.Doc)),
		jen.Id(r.Resource).Op("=").Qual(runtimePath, "Resource").Types(two...),
	}
	if r.Template != nil {
		own = namesTypes(r, typeOf)
	}
	f.decl("", jen.Type().Defs(append(own,
		field(fmt.Sprintf("%s is a limit of %s: a runtime.LimitOf[%s].", r.LimitType, r.Name, r.Cost)),
		jen.Id(r.LimitType).Uint8(),
		field(fmt.Sprintf("%s is the interface for handlers, whose tests can pass a fake.", r.Acquirer)),
		jen.Id(r.Acquirer).Op("=").Qual(runtimePath, "Acquirer").Types(two...),
		field(fmt.Sprintf("%s is the result of an acquire, to be settled, kept or released.", r.Lease)),
		jen.Id(r.Lease).Op("=").Qual(runtimePath, "Lease").Types(jen.Id(r.Cost)),
		field(fmt.Sprintf("%s is an entity that calls on %s can charge: %s.", r.Entity, r.Name,
			words.List(chargedChains(r, article), "or"))),
		jen.Id(r.Entity).Interface(jen.Id("Entity"), jen.Id(r.Definition).Params()),
		jen.Id(r.Definition).Struct(),
	)...))
}

// printed prints String of a struct with a field for each limit.
func printed(f *file, receiver, of string) {
	f.decl("String returns "+receiver+" with the names of its fields.",
		jen.Func().Params(jen.Id(receiver).Id(of)).Id("String").Params().String().Block(
			jen.Return(jen.Qual(storePath, "Format").Call(jen.Id(receiver)))))
}

// cost prints the cost struct.
func cost(f *file, p *model.Package, r *model.Resource) {
	fields := []jen.Code{
		jen.Id("_").Struct().Comment("// forces field names"),
		jen.Line(),
	}
	for _, l := range r.Limits {
		field := jen.Id(l.Field).Int64()
		if l.Currency != "" {
			field = jen.Id(l.Field).Qual(moneyPath, "Amount")
		}
		fields = append(fields, described(field, costNote(r, l))...)
	}
	in := "whole tokens"
	if r.Currency != "" {
		in = "whole tokens or in " + r.Currency
	}
	f.decl(fmt.Sprintf("%s is the cost of one call in each limit of %s, in %s. %s:\n%s",
		r.Cost, r.Name, in, ifGlobal(r, "All regions' buckets of an entity hold together", "A bucket holds"),
		bucketNumbers(p, r)),
		jen.Type().Id(r.Cost).Struct(fields...))
	printed(f, "c", r.Cost)
}

// override prints the struct of optional limits.
func override(f *file, p *model.Package, r *model.Resource) {
	fields := []jen.Code{
		jen.Id("_").Struct().Comment("// forces field names"),
		jen.Line(),
	}
	for _, l := range r.Limits {
		field := jen.Id(l.Field).Op("*").Qual(runtimePath, "Rate")
		switch {
		case l.Currency != "":
			field = jen.Id(l.Field).Op("*").Qual(moneyPath, "Amount")
		case capacityAlone(l):
			field = jen.Id(l.Field).Op("*").Int64()
		}
		fields = append(fields, described(field, overrideNote(r, l))...)
	}
	example, windows, of := "&runtime.Rate{Capacity: 200}", "", "tokens"
	switch {
	case r.Limits[0].Currency != "":
		example, of = "new(200 * money.Unit)", r.Currency
	case capacityAlone(r.Limits[0]):
		example = "new(int64(200))"
	}
	if r.Windows != "" {
		windows = "Fields of limits with windows are the whole tokens of a window. "
	}
	if r.Currency != "" {
		windows = "Fields of limits with windows are the whole tokens, or the money, of a window. "
	}
	if slices.ContainsFunc(r.Limits, func(l *model.Limit) bool { return l.InFlight }) {
		windows += "Fields of limits in flight are the whole tokens that calls have at the same time. "
	}
	f.decl(fmt.Sprintf("%s overrides limits of %s; nil fields inherit. %s%sFor 200 %s "+
		"instead:\n\n\t%s.%s{%s: %s}",
		r.Override, r.Name, ifGlobal(r, "Overrides of a kind are for all regions together, those of an entity "+
			"for the region of the table. ", ""), windows, of, p.Name, r.Override, r.Limits[0].Field, example),
		jen.Type().Id(r.Override).Struct(fields...))
	printed(f, "l", r.Override)
}

// described puts note behind a field, or above it if note is long or has several paragraphs.
func described(code *jen.Statement, note string) []jen.Code {
	switch {
	case note == "":
		return []jen.Code{code}
	case len(note) > 80, paragraphs(note):
		return []jen.Code{field(note), code}
	}
	return []jen.Code{code.Comment(line(note))}
}

// bucket prints the item as a struct.
func bucket(f *file, r *model.Resource) {
	fields := []jen.Code{
		jen.Id("Entity").String().Comment("// as stored: " + r.Charged[0].Kind.Prefix + "<ID>"),
	}
	for _, field := range bucketFields(r) {
		code := jen.Id(field.Name).String()
		if field.Number {
			code = jen.Id(field.Name).Int64()
		}
		fields = append(fields, code.Comment("// "+field.Comment))
	}
	for _, l := range r.Limits {
		comment := "// b_" + l.Name + "_*"
		if l.Currency != "" {
			comment += ", in billionths of " + l.Currency + ", which its String writes as if they were millitokens"
		}
		fields = append(fields, jen.Id(l.Field).Qual(bucketPath, "Balance").Comment(comment))
	}
	at := fmt.Sprintf("%s is the item ENTITY#<entity> / %s", r.Bucket, r.SortKey)
	if r.Template != nil {
		at += ", which has the limits of all names, or " + r.SortKey + "/<name>, which has those of one"
	}
	f.decl(at+".",
		jen.Type().Id(r.Bucket).Struct(fields...))
}

// spec prints Spec.
func spec(f *file, p *model.Package, r *model.Resource) {
	fields := []jen.Code{
		pair("Resource", jen.Id(r.Const)),
		jen.Add(pair("Owner", jen.Lit(p.Owner))).Op(",").Add(pair("Revision", jen.Id("Revision"))),
		pair("Limits", jen.Index().String().Add(braces(
			each(r.Limits, func(_ int, l *model.Limit) jen.Code { return jen.Lit(l.Name) }),
			few(6, len("\t\tLimits:        []string{},"), len(`"", `), limitNames(r))))),
	}
	if r.Holds {
		fields = append(fields, pair("Held", slice(jen.Bool(), each(r.Limits, func(_ int, l *model.Limit) jen.Code {
			return jen.Lit(l.Holds())
		}))))
	}
	if r.Currency != "" {
		fields = append(fields, pair("Units", slice(jen.String(), each(r.Limits, func(_ int,
			l *model.Limit) jen.Code {
			return jen.Lit(l.Currency)
		}))))
	}
	if len(r.Removed) > 0 {
		fields = append(fields, pair("Removed", slice(jen.String(), each(r.Removed, func(_ int,
			a model.Attrs) jen.Code {
			return jen.Lit(a.Limit)
		}))))
	}
	fields = append(fields, specCalls(r)...)
	if r.OnPlans {
		fields = append(fields, pair("Plans", specPlans(p, r)))
	}
	if r.Template != nil {
		fields = append(fields, specNames(r)...)
	}
	kinds := each(p.Kinds, func(_ int, k *model.Kind) jen.Code { return pair(k.Const, specKind(r, k)) })
	for _, c := range r.AllNames() {
		kinds = append(kinds, pair(c.Const, specBucket(r, c)))
	}
	fields = append(fields, pair("Kinds", jen.Index().Qual(storePath, "Kind").Add(lines(kinds...))))
	f.decl("Spec implements store.Definition.",
		jen.Func().Params(jen.Id(r.Definition)).Id("Spec").Params().Op("*").Qual(storePath, "Spec").Block(
			jen.Return(jen.Op("&").Qual(storePath, "Spec").Add(lines(fields...)))))
}

// specCalls is the fields of a Spec that say what calls do.
func specCalls(r *model.Resource) []jen.Code {
	fields := []jen.Code{
		pair("Cascade", jen.Qual(storePath, r.Cascade)),
		pair("OnUnavailable", jen.Qual(storePath, r.OnUnavailable)),
	}
	if r.LazySettle {
		fields = append(fields, pair("LazySettle", jen.True()))
	}
	if r.Shadow {
		fields = append(fields, pair("Shadow", jen.True()))
	}
	if r.Prefetch > 0 {
		fields = append(fields, pair("Prefetch", jen.Lit(int(r.Prefetch.Milliseconds())).Op("*").
			Qual("time", "Millisecond")))
	}
	if r.Regions != nil {
		fields = append(fields, pair("Regions", specRegions(r.Regions)))
	}
	return fields
}

// specKind is one kind of a Spec, with its numbers where it has a bucket.
func specKind(r *model.Resource, k *model.Kind) jen.Code {
	for _, c := range r.Charged {
		if c.Kind != k {
			continue
		}
		if b := c.Buckets[0]; !b.AllNames {
			return specBucket(r, b)
		}
		return jen.Values(append(specName(k), pair("PerCall", perCalls(c)))...) // all names have its limits
	}
	return jen.Values(specName(k)...)
}

// specName is the fields of a kind of a Spec that it has without a bucket too.
func specName(k *model.Kind) []jen.Code {
	parent := jen.Qual(storePath, "NoParent")
	if k.Parent != nil {
		parent = jen.Id(k.Parent.Const)
	}
	return []jen.Code{pair("Name", jen.Lit(k.Name)), pair("Prefix", jen.Lit(k.Prefix)), pair("Parent", parent)}
}

// perCalls is what a cost of 0 stands for, by limit.
func perCalls(c *model.Charged) jen.Code {
	return slice(jen.Int64(), each(c.PerCall, func(_ int, n int64) jen.Code { return num(n) }))
}

// specBucket is a kind of a Spec that has a bucket.
func specBucket(r *model.Resource, c *model.Charged) jen.Code {
	fields := specName(c.Kind)
	if c.AllNames {
		fields = append(fields, pair("AllNames", jen.True()))
	}
	fields = append(fields,
		pair("Limits", jen.Index().Qual(bucketPath, "Limit").Add(lines(each(r.Limits, func(i int,
			l *model.Limit) jen.Code {
			if !c.Has(l) {
				return noted(l.Name+": none", jen.Values())
			}
			return noted(l.Name+": "+words.Limit(c.Numbers[i], l.Window), parameters(c.Numbers[i]))
		})...))),
		pair("PerCall", perCalls(c)))
	if r.Windows != "" {
		fields = append(fields, pair("Windows", jen.Id(r.Windows)))
	}
	return lines(fields...)
}

// parameters is a bucket.Limit: millitokens, or nano-units of money, and milliseconds.
func parameters(n schema.Numbers) jen.Code {
	if n.InFlight() {
		return jen.Qual(bucketPath, "InFlight").Call(num(n.Capacity))
	}
	fields := []jen.Code{pair("Capacity", num(n.Stored(n.Capacity))), pair("Burst", num(n.Stored(n.Burst)))}
	if !n.Windowed() {
		fields = append(fields, pair("Refill", num(n.Stored(n.Refill))))
	}
	return jen.Values(append(fields, pair("Period", num(n.Period.Milliseconds())))...)
}

// vectors prints the functions between costs and vectors, and between overrides and vectors.
func vectors(f *file, r *model.Resource) {
	amount := func(convert string) func(l *model.Limit, text string) string {
		return func(l *model.Limit, text string) string {
			if l.Currency != "" {
				return convert + "(" + text + ")"
			}
			return text
		}
	}
	type form func(l *model.Limit, text string) string
	convert := func(name, typ, to, from string, element jen.Code, rate, number form) {
		arguments := []string{"dst"}
		for _, l := range r.Limits {
			arguments = append(arguments, rate(l, name+"."+l.Field))
		}
		vector := jen.Index().Add(element)
		f.decl("", jen.Func().Id(to).Params(jen.Id(name).Id(typ), jen.Id("dst").Add(vector)).Add(vector).Block(
			jen.Return(jen.Id("append").Add(flow(len("return append"), arguments)))))
		values := each(r.Limits, func(i int, l *model.Limit) jen.Code {
			return pair(l.Field, jen.Op(number(l, fmt.Sprintf("v[%d]", i))))
		})
		f.decl("", jen.Func().Id(from).Params(jen.Id("v").Add(vector)).Id(typ).Block(
			jen.Return(jen.Id(typ).Add(braces(values, few(4, len("\treturn {}")+len(typ), len(": v[0], "),
				limitFields(r)))))))
	}
	convert("c", r.Cost, r.ToVector, r.FromVector, jen.Int64(), amount("int64"), amount("money.Amount"))
	convert("l", r.Override, r.ToLimits, r.FromLimits, jen.Op("*").Qual(runtimePath, "Rate"),
		func(l *model.Limit, field string) string {
			switch {
			case l.Currency != "":
				return "runtime.InWindow((*int64)(" + field + "))"
			case !capacityAlone(l):
				return field
			}
			return "runtime.InWindow(" + field + ")"
		}, func(l *model.Limit, rate string) string {
			switch {
			case l.Currency != "":
				return "(*money.Amount)(" + rate + ".InWindow())"
			case !capacityAlone(l):
				return rate
			}
			return rate + ".InWindow()"
		})
}
