package emit

import (
	"fmt"
	"strconv"

	"github.com/dave/jennifer/jen"

	"github.com/sluice-go/sluice/gen/internal/lua"
	"github.com/sluice-go/sluice/gen/internal/model"
)

// tests prints a resource's test file: one test and one benchmark, with a sub-test for each promise.
func tests(f *file, p *model.Package, r *model.Resource) {
	var body []jen.Code
	if p.DynamoDB {
		body = append(body, define("r", jen.Id(r.Definition).Values()), define("b", sampleBucket(r)))
	}
	body = append(body, run("vectors", testVectors(r)...), run("overrides", testOverrides(r)...))
	if p.DynamoDB {
		body = append(body,
			run("item", testItem(r)...),
			run("malformed", testMalformed(r)...),
			run("image", testImage(r)...),
			run("levels", testLevels(r)...),
			run("expressions", testExpressions()...),
			run("allocations", testAllocations()...))
	}
	if p.Redis {
		body = append(body, run("scripts", testScripts(r)...))
	}
	f.decl(fmt.Sprintf("%s holds the code of %s against itself.", r.Test, r.Name),
		jen.Func().Id(r.Test).Params(jen.Id("t").Op("*").Qual("testing", "T")).Block(body...))
	if p.DynamoDB {
		benchmarks(f, r)
		sample(f, r)
	}
}

// run is a sub-test.
func run(name string, body ...jen.Code) jen.Code {
	return jen.Line().Id("t").Dot("Run").Call(jen.Lit(name), jen.Func().Params(jen.Id("t").Op("*").Qual("testing", "T")).Block(body...))
}

// fail reports a failure.
func fail(format string, values ...jen.Code) jen.Code {
	return jen.Id("t").Dot("Errorf").Call(append([]jen.Code{jen.Lit(format)}, values...)...)
}

// sampleBucket is a bucket whose numbers are all different.
func sampleBucket(r *model.Resource) jen.Code {
	fields := []jen.Code{
		pair("Entity", jen.Lit(r.Charged[0].Kind.Prefix+"1")),
		pair("Refilled", jen.Lit(1)),
		pair("Version", jen.Lit(2)),
		pair("Op", jen.Lit("op")),
		pair("TTL", jen.Lit(3)),
	}
	for i, l := range r.Limits {
		n := 10 * (i + 1)
		fields = append(fields, pair(l.Field, jen.Qual(bucketPath, "Balance").Add(lines(
			pair("Limit", jen.Qual(bucketPath, "Limit").Values(
				pair("Capacity", jen.Lit(n)), pair("Burst", jen.Lit(n+1)), pair("Refill", jen.Lit(n+2)), pair("Period", jen.Lit(n+3)))),
			pair("Tokens", jen.Lit(-n)),
			pair("Consumed", jen.Lit(n+4)),
		))))
	}
	return jen.Id(r.Bucket).Add(lines(fields...))
}

// testVectors holds schema order against the cost's fields, and each vector function against the other.
func testVectors(r *model.Resource) []jen.Code {
	fields := each(r.Limits, func(i int, l *model.Limit) jen.Code { return pair(l.Field, jen.Lit(i+1)) })
	numbers := each(r.Limits, func(i int, _ *model.Limit) jen.Code { return jen.Lit(i + 1) })
	return []jen.Code{
		define("c", jen.Id(r.Cost).Add(braces(fields, few(4, len("\t\tc := {}")+len(r.Cost), len(": 1, "), limitFields(r))))),
		define("v", jen.Id(r.ToVector).Call(jen.Id("c"), jen.Nil())),
		jen.If(jen.Op("!").Qual("slices", "Equal").Call(jen.Id("v"), slice(jen.Int64(), numbers)).
			Op("||").Id(r.FromVector).Call(jen.Id("v")).Op("!=").Id("c")).Block(
			fail("%+v became %v", jen.Id("c"), jen.Id("v"))),
	}
}

// testOverrides holds schema order against the fields of overrides, and each vector function against the other.
func testOverrides(r *model.Resource) []jen.Code {
	fields := each(r.Limits, func(i int, l *model.Limit) jen.Code { return pair(l.Field, jen.Id("v").Index(jen.Lit(i))) })
	limits := each(r.Limits, func(i int, _ *model.Limit) jen.Code { return jen.Values(pair("Capacity", jen.Lit(i+1))) })
	return []jen.Code{
		define("v", slice(jen.Op("*").Qual(bucketPath, "Limit"), limits)),
		define("l", jen.Id(r.Override).Add(braces(fields, few(4, len("\t\tl := {}")+len(r.Override), len(": v[0], "), limitFields(r))))),
		jen.If(jen.Op("!").Qual("slices", "Equal").Call(jen.Id(r.ToLimits).Call(jen.Id("l"), jen.Nil()), jen.Id("v")).
			Op("||").Id(r.FromLimits).Call(jen.Id("v")).Op("!=").Id("l")).Block(
			fail("%+v is not %v", jen.Id("l"), jen.Id("v"))),
	}
}

// testItem reads marshaled items back: with an attribute that nobody knows, and without the first limit.
func testItem(r *model.Resource) []jen.Code {
	return []jen.Code{
		define("item", jen.Id("b").Dot("MarshalItem").Call()),
		jen.Id("item").Index(jen.Lit("later")).Op("=").Add(text(jen.Lit("of a coming version"))),
		jen.Var().Id("u").Id(r.Bucket),
		jen.If(define("err", jen.Id("u").Dot("UnmarshalItem").Call(jen.Id("item"))),
			jen.Err().Op("!=").Nil().Op("||").Id("u").Op("!=").Id("b")).Block(
			fail("read back as %+v, %v", jen.Id("u"), jen.Err())),
		define("l", jen.Id("b")),
		jen.Id("l").Dot(r.Limits[0].Field).Op("=").Qual(bucketPath, "Balance").Values(),
		jen.If(define("err", jen.Id("u").Dot("UnmarshalItem").Call(jen.Id("l").Dot("MarshalItem").Call())),
			jen.Err().Op("!=").Nil().Op("||").Id("u").Op("!=").Id("l")).Block(
			fail("without "+r.Limits[0].Name+", read back as %+v, %v", jen.Id("u"), jen.Err())),
	}
}

// testMalformed spoils each number, for both readers.
func testMalformed(r *model.Resource) []jen.Code {
	attrs := []jen.Code{jen.List(literals("rf", "cv", "ttl")...)} // a line for each limit
	for _, l := range r.Limits {
		attrs = append(attrs, jen.Op(flowing(3*tab, quoted(l.Attrs))))
	}
	check := func(err jen.Code) jen.Code {
		return jen.If(define("err", err), jen.Op("!").Qual("errors", "As").Call(jen.Err(), jen.Op("&").Id("e")).
			Op("||").Id("e").Dot("Attr").Op("!=").Id("a")).Block(fail("%s: %v", jen.Id("a"), jen.Err()))
	}
	return []jen.Code{
		jen.For(jen.List(jen.Id("_"), jen.Id("a")).Op(":=").Range().Index().String().Add(lines(attrs...))).Block(
			define("item", jen.Id("b").Dot("MarshalItem").Call()),
			jen.Id("item").Index(jen.Id("a")).Op("=").Qual(codecPath, "Bound").Call(jen.Qual("math", "MaxInt64")).
				Comment("// 38 digits"),
			jen.Var().Id("e").Op("*").Qual(codecPath, "AttributeError"),
			check(jen.New(jen.Id(r.Bucket)).Dot("UnmarshalItem").Call(jen.Id("item"))),
			check(jen.Id("r").Dot("Decode").Call(jen.New(jen.Qual(bucketPath, "Image")), jen.Id("item"))),
		),
	}
}

// testImage reads what Create puts, whole and without its first limit.
func testImage(r *model.Resource) []jen.Code {
	decode := func(wrong jen.Code) jen.Code {
		return jen.If(define("err", jen.Id("r").Dot("Decode").Call(jen.Op("&").Id("i"), jen.Id("w").Dot("Item"))),
			jen.Err().Op("!=").Nil().Op("||").Add(wrong)).Block(fail("read as %+v, %v", jen.Id("i"), jen.Err()))
	}
	return []jen.Code{
		define("w", jen.Id("r").Dot("sample").Call()),
		jen.Id("r").Dot("Create").Call(jen.Id("w")),
		jen.Var().Id("i").Qual(bucketPath, "Image"),
		decode(jen.Qual("slices", "Contains").Call(jen.Id("i").Dot("Missing"), jen.True()).
			Op("||").Id("i").Dot("Extra").Op("!=").Nil()),
		jen.For(jen.List(jen.Id("n"), jen.Id("b")).Op(":=").Range().Id("i").Dot("Balances")).Block(
			jen.If(jen.Id("b").Dot("Limit").Op("!=").Add(write("Limits").Index(jen.Id("n"))).
				Op("||").Id("b").Dot("Tokens").Op("!=").Id("b").Dot("Burst").Op("-").Add(write("Cost").Index(jen.Id("n"))).
				Op("||").Id("b").Dot("Consumed").Op("!=").Add(write("Cost").Index(jen.Id("n")))).Block(
				fail("limit %d was put as %+v", jen.Id("n"), jen.Id("b"))),
		),
		jen.For(jen.List(jen.Id("_"), jen.Id("a")).Op(":=").Range().Index().String().Add(lines(jen.Op(flowing(3*tab, quoted(r.Limits[0].Attrs)))))).Block(
			jen.Delete(jen.Id("w").Dot("Item"), jen.Id("a"))),
		decode(jen.Op("!").Id("i").Dot("Missing").Index(jen.Lit(0))),
	}
}

// testLevels reads the levels of an item: those alone, and each of them is asked for.
func testLevels(r *model.Resource) []jen.Code {
	levels := each(r.Limits, func(_ int, l *model.Limit) jen.Code {
		return jen.Values(pair("Tokens", jen.Id("b").Dot(l.Field).Dot("Tokens")))
	})
	attrs := []string{`"rf"`}
	for _, l := range r.Limits {
		attrs = append(attrs, strconv.Quote(l.Attrs.Tokens))
	}
	read := func() jen.Code { return jen.Id("r").Dot("DecodeLevels").Call(jen.Op("&").Id("i"), jen.Id("item")) }
	return []jen.Code{
		define("item", jen.Id("b").Dot("MarshalItem").Call()),
		define("want", jen.Index().Qual(bucketPath, "Balance").Add(lines(levels...))),
		define("i", jen.Qual(bucketPath, "Image").Values(
			pair("Balances", jen.Make(jen.Index().Qual(bucketPath, "Balance"), jen.Lit(len(r.Limits)))))),
		jen.If(define("err", read()),
			jen.Err().Op("!=").Nil().Op("||").Id("i").Dot("Refilled").Op("!=").Id("b").Dot("Refilled").
				Op("||").Op("!").Qual("slices", "Equal").Call(jen.Id("i").Dot("Balances"), jen.Id("want"))).Block(
			fail("read as %+v, %v", jen.Id("i"), jen.Err())),
		jen.For(jen.List(jen.Id("_"), jen.Id("a")).Op(":=").Range().Index().String().Add(
			lines(jen.Op(flowing(3*tab, attrs))))).Block(
			define("item", jen.Id("b").Dot("MarshalItem").Call()),
			jen.Delete(jen.Id("item"), jen.Id("a")),
			jen.Var().Id("e").Op("*").Qual(codecPath, "AttributeError"),
			jen.If(define("err", read()), jen.Op("!").Qual("errors", "As").Call(jen.Err(), jen.Op("&").Id("e")).
				Op("||").Id("e").Dot("Attr").Op("!=").Id("a")).Block(fail("without %s: %v", jen.Id("a"), jen.Err())),
		),
	}
}

// literals is the texts as string literals.
func literals(texts ...string) []jen.Code {
	return each(texts, func(_ int, s string) jen.Code { return jen.Lit(s) })
}

// testExpressions holds each path's text against its values. One Write serves all, as a store may have it.
func testExpressions() []jen.Code {
	paths := each([]string{"Create", "Normal", "Retry", "Adjust", "Reshape"}, func(_ int, m string) jen.Code {
		return jen.Values(jen.Lit(m), jen.Id("r").Dot(m))
	})
	return []jen.Code{
		define("w", jen.Id("r").Dot("sample").Call()),
		jen.For(jen.List(jen.Id("_"), jen.Id("p")).Op(":=").Range().Index().Struct(
			jen.Id("name").String(),
			jen.Id("build").Func().Params(jen.Op("*").Qual(codecPath, "Write")),
		).Add(lines(paths...))).Block(
			jen.Id("p").Dot("build").Call(jen.Id("w")),
			jen.If(define("err", jen.Id("w").Dot("Check").Call()), jen.Err().Op("!=").Nil()).Block(
				fail("%s: %v", jen.Id("p").Dot("name"), jen.Err())),
		),
	}
}

// testAllocations bounds what one use allocates of a Write, and of an image, that is used again. An error would allocate.
func testAllocations() []jen.Code {
	use := func(name string, most int, does jen.Code) jen.Code {
		return jen.Values(jen.Lit(name), jen.Lit(most), jen.Func().Params().Op("{").Add(does).Op("}"))
	}
	build := func(name string) jen.Code { return use(name, 1, jen.Id("r").Dot(name).Call(jen.Id("w"))) }
	decode := func(name string) jen.Code {
		return use(name, 0, jen.Id("_").Op("=").Id("r").Dot(name).Call(jen.Op("&").Id("i"), jen.Id("item")))
	}
	return []jen.Code{
		define("w", jen.Id("r").Dot("sample").Call()),
		define("item", jen.Id("b").Dot("MarshalItem").Call()),
		jen.Var().Id("i").Qual(bucketPath, "Image"),
		jen.For(jen.List(jen.Id("_"), jen.Id("p")).Op(":=").Range().Index().Struct(
			jen.Id("name").String(),
			jen.Id("most").Float64(),
			jen.Id("use").Func().Params(),
		).Add(lines(
			build("Normal"), build("Retry"), build("Adjust"), build("Reshape"),
			decode("Decode"), decode("DecodeLevels"),
		))).Block(
			jen.If(define("n", jen.Qual("testing", "AllocsPerRun").Call(jen.Lit(100), jen.Id("p").Dot("use"))),
				jen.Id("n").Op(">").Id("p").Dot("most")).Block(
				fail("%s: %v allocations, want no more than %v", jen.Id("p").Dot("name"), jen.Id("n"), jen.Id("p").Dot("most"))),
		),
	}
}

// testScripts holds how many hashes each script reads against how many limits the buckets of its chain have.
func testScripts(r *model.Resource) []jen.Code {
	keys := []jen.Code{jen.Lit(0)}
	for _, s := range lua.Scripts(r) {
		if s.Text != "" {
			keys = append(keys, jen.Lit(s.Keys))
		}
	}
	return []jen.Code{
		jen.For(jen.List(jen.Id("chain"), jen.Id("keys")).Op(":=").Range().Add(slice(jen.Int(), append(keys, jen.Lit(0))))).Block(
			define("text", jen.Id(r.Definition).Values().Dot("Script").Call(jen.Id("chain"))),
			jen.If(define("n", jen.Qual("strings", "Count").Call(jen.Id("text"), jen.Lit("call('HMGET', KEYS["))),
				jen.Id("n").Op("!=").Id("keys")).Block(
				fail("the script for a chain of %d reads %d hashes, want %d:\n%s", jen.Id("chain"), jen.Id("n"), jen.Id("keys"), jen.Id("text"))),
		),
	}
}

// benchmarks prints what the hot path does with one write.
func benchmarks(f *file, r *model.Resource) {
	bench := func(name string, loop jen.Code) jen.Code {
		return jen.Id("b").Dot("Run").Call(jen.Lit(name), jen.Func().Params(jen.Id("b").Op("*").Qual("testing", "B")).Block(
			jen.Id("b").Dot("ReportAllocs").Call(),
			jen.For(jen.Id("b").Dot("Loop").Call()).Block(loop),
		))
	}
	decode := func(name string) jen.Code {
		return bench(name, jen.If(define("err", jen.Id("r").Dot(name).Call(jen.Op("&").Id("i"), jen.Id("w").Dot("Item"))),
			jen.Err().Op("!=").Nil()).Block(jen.Id("b").Dot("Fatal").Call(jen.Err())))
	}
	f.decl(fmt.Sprintf("%s measures what one write of %s costs, and one image.", r.Benchmark, r.Name),
		jen.Func().Id(r.Benchmark).Params(jen.Id("b").Op("*").Qual("testing", "B")).Block(
			define("r", jen.Id(r.Definition).Values()),
			define("w", jen.Id("r").Dot("sample").Call()),
			bench("Normal", jen.Id("r").Dot("Normal").Call(jen.Id("w"))),
			jen.Id("r").Dot("Create").Call(jen.Id("w")),
			jen.Var().Id("i").Qual(bucketPath, "Image"),
			decode("Decode"),
			decode("DecodeLevels"),
		))
}

// sample prints a write that every path can build. It is a method because methods cannot clash with a schema's names.
func sample(f *file, r *model.Resource) {
	vector := func(of func(int) int) jen.Code {
		return slice(jen.Int64(), each(r.Limits, func(i int, _ *model.Limit) jen.Code { return jen.Lit(of(i)) }))
	}
	f.decl("sample returns a write that every path can build.",
		jen.Func().Params(jen.Id("r").Id(r.Definition)).Id("sample").Params().Op("*").Qual(codecPath, "Write").Block(
			define("v", jen.Id("r").Dot("Spec").Call().Dot("Kinds").Index(jen.Id(r.Charged[0].Kind.Const)).Dot("Limits")),
			jen.Return(jen.Op("&").Qual(codecPath, "Write").Add(lines(
				pair("Entity", jen.Lit(r.Charged[0].Kind.Prefix+"1")),
				pair("Image", jen.Op("&").Qual(bucketPath, "Image").Values(pair("Refilled", jen.Lit(1)), pair("Version", jen.Lit(2)))),
				pair("Limits", jen.Id("v")),
				pair("Cost", vector(func(i int) int { return i })),
				pair("Fill", vector(func(i int) int { return i + 1 })),
				pair("Lo", vector(func(i int) int { return i })),
				pair("Hi", vector(func(i int) int { return i + 1 })),
				pair("RF", jen.Lit(1)),
				pair("CV", jen.Lit(2)),
				pair("TTL", jen.Lit(3)),
				pair("Op", jen.Lit("op")),
			))),
		))
}

// entitiesTest prints the test of entities.go.
func entitiesTest(f *file, p *model.Package) {
	var chains, stored []jen.Code
	bad := []jen.Code{jen.List(literals("", "NONE-1")...)} // kinds are in small letters
	for _, k := range p.Kinds {
		for _, e := range testChains(k) {
			chains = append(chains, lines(e...))
		}
		stored = append(stored, jen.Lit(k.Prefix+"1-2").Op(":").Add(unresolved(k, jen.Lit("1-2"))))
		bad = append(bad, jen.List(literals(k.Name, k.Prefix, k.Prefix+"#")...))
	}
	f.decl("TestEntities holds the chain of each kind against what is to be charged and looked up, and stored ids against entities.",
		jen.Func().Id("TestEntities").Params(jen.Id("t").Op("*").Qual("testing", "T")).Block(
			jen.For(jen.List(jen.Id("_"), jen.Id("c")).Op(":=").Range().Index().Struct(
				jen.Id("entity").Id("Entity"),
				jen.Id("chain").Index().Qual(runtimePath, "Link"),
			).Add(lines(chains...))).Block(
				jen.If(define("got", jen.Id("c").Dot("entity").Dot("Chain").Call(jen.Nil())),
					jen.Op("!").Qual("slices", "Equal").Call(jen.Id("got"), jen.Id("c").Dot("chain"))).Block(
					fail("%+v has chain %+v, want %+v", jen.Id("c").Dot("entity"), jen.Id("got"), jen.Id("c").Dot("chain"))),
			),
			jen.For(jen.List(jen.Id("stored"), jen.Id("want")).Op(":=").Range().Map(jen.String()).Id("Entity").Add(lines(stored...))).Block(
				jen.If(define("got, err", jen.Id("ParseEntity").Call(jen.Id("stored"))),
					jen.Err().Op("!=").Nil().Op("||").Id("got").Op("!=").Id("want")).Block(
					fail("%q is %+v, %v, want %+v", jen.Id("stored"), jen.Id("got"), jen.Err(), jen.Id("want"))),
			),
			jen.For(jen.List(jen.Id("_"), jen.Id("stored")).Op(":=").Range().Index().String().Add(lines(bad...))).Block(
				jen.Var().Id("invalid").Op("*").Id("InvalidError"),
				jen.If(define("got, err", jen.Id("ParseEntity").Call(jen.Id("stored"))),
					jen.Id("got").Op("!=").Nil().Op("||").Op("!").Qual("errors", "As").Call(jen.Err(), jen.Op("&").Id("invalid"))).Block(
					fail("%q is %+v, %v", jen.Id("stored"), jen.Id("got"), jen.Err())),
			),
		))
}

// testChains returns entities of kind k, each with its chain: one whose parent is given, and one whose parent is not.
func testChains(k *model.Kind) [][]jen.Code {
	link := func(k *model.Kind, id string, lookup bool) jen.Code {
		fields := []jen.Code{pair("Kind", jen.Id(k.Const)), pair("ID", jen.Lit(id))}
		if lookup {
			fields = append(fields, pair("Lookup", jen.True()))
		}
		return jen.Values(fields...)
	}
	links := func(links ...jen.Code) jen.Code { return jen.Index().Qual(runtimePath, "Link").Add(braces(links, 1)) }
	alone := []jen.Code{unresolved(k, jen.Lit("1")), links(link(k, "1", k.Parent != nil))}
	if k.Parent == nil {
		return [][]jen.Code{alone}
	}
	return [][]jen.Code{
		{
			jen.Id(k.Type).Values(pair("ID", jen.Lit("1")), pair(k.Parent.Type, unresolved(k.Parent, jen.Lit("2")))),
			links(link(k, "1", false), link(k.Parent, "2", k.Parent.Parent != nil)),
		},
		alone,
	}
}
