package emit

import (
	"fmt"
	"slices"
	"strings"

	"github.com/dave/jennifer/jen"

	"github.com/sluice-go/sluice/gen/internal/digest"
	"github.com/sluice-go/sluice/gen/internal/model"
	"github.com/sluice-go/sluice/gen/internal/words"
)

// Generation is that of the code that Files returns. It compiles only beside a runtime that serves it, whose
// package store has a constant of that name and number.
const Generation = 7

// limits prints limits.go: the package's doc, the handshake, the Limiter, errors and digests.
func limits(f *file, p *model.Package, digests []digest.Entry) {
	f.PackageComment(comment(packageDoc(p), 117))
	if needsZones(p) {
		f.Anon("time/tzdata")
	}

	handshake := fmt.Sprint("Generation", Generation)
	f.decl("If "+handshake+" is undefined, this code and the runtime package do not fit: run `go get\n"+
		"github.com/sluice-go/sluice@latest` when the runtime is older, `go generate ./...` when this code is.",
		jen.Const().Id("_").Op("=").Qual(storePath, handshake))

	f.decl(fmt.Sprintf("Revision is the revision of the numbers in %s that this code was made from.", p.Source),
		jen.Const().Id("Revision").Op("=").Add(num(p.Revision)))

	limiter(f, p)
	failures(f, p)

	f.Line()
	f.Comment(digest.Comment(p.Revision, digests))
}

func packageDoc(p *model.Package) string {
	var resources, kinds []string
	for _, r := range p.Resources {
		resources = append(resources, r.Name)
	}
	for _, k := range p.Kinds {
		kinds = append(kinds, k.Name)
	}
	s := fmt.Sprintf("Package %s holds the limits of %s: ", p.Name, p.Source)
	switch n := len(resources); {
	case n == 1:
		s += "resource " + resources[0]
	case n <= manyResources:
		s += "resources " + words.List(resources, "and")
	default:
		s += resourceNames(resources)
	}
	if len(kinds) == 1 {
		return s + ", for entities of kind " + kinds[0] + "."
	}
	return s + ", for entities of the kinds " + words.List(kinds, "and") + "."
}

// limiter prints the Limiter and its constructor.
func limiter(f *file, p *model.Package) {
	fields := []jen.Code{jen.Op("*").Qual(runtimePath, "Limiter"), jen.Line()}
	var binds, configs, overrides []jen.Code
	longest := 0
	for _, r := range p.Resources {
		longest = max(longest, len(r.Const))
	}
	for _, r := range p.Resources {
		says := fmt.Sprintf("%s limits %s by %s, for %s%s.", r.Const, r.Name, words.List(limitNames(r), "and"),
			words.List(chargedChains(r, plain), "and"), ifGlobal(r, ", in all regions together", ""))
		typ, bind := r.Resource, "Bind"
		arguments := []string{"b", r.Definition + "{}", r.ToVector, r.FromVector}
		if r.Template != nil {
			says = strings.TrimSuffix(says, ".") + ". It has these limits for each name of a catalog: see Named."
			typ, bind, arguments = r.Template.Names, "BindNames", append(arguments, r.Template.Named)
		}
		fields = append(fields, field(about(says, r.Doc)), jen.Id(r.Const).Op("*").Id(typ))
		before := tab + longest + len(": runtime.[]") + len(bind) + len(r.Entity)
		binds = append(binds, pair(r.Const, jen.Qual(runtimePath, bind).Types(jen.Id(r.Entity)).Add(
			flow(before, arguments))))
		config, override := configOf(r, tab+longest+len(": runtime.Bind[]")+len(r.Entity))
		configs = append(configs, jen.Id(r.Const).Op("*").Add(config))
		overrides = append(overrides, pair(r.Const, override))
	}
	fields = append(fields, jen.Line(),
		field("Config reads and writes overrides of these numbers, and adds to buckets."),
		jen.Id("Config").Id("Config"))
	binds = append(binds, pair("Config", jen.Id("Config").Add(lines(overrides...))))
	if p.Plans != nil {
		of := []jen.Code{jen.Id(p.Plans.Kind.Type), jen.Id("Plan")}
		fields = append(fields, jen.Line(), jen.Id("plans").Op("*").Qual(runtimePath, "Plans").Types(of...))
		binds = append(binds, pair("plans", jen.Qual(runtimePath, "BindPlans").Types(of...).Add(
			flow(tab+len("plans: runtime.BindPlans[, Plan]")+len(p.Plans.Kind.Type),
				append([]string{"b"}, quotedNames(p.Plans)...)))))
	}
	f.decl("Limiter holds one typed entry per resource. It is safe for concurrent use.",
		jen.Type().Id("Limiter").Struct(fields...))
	f.decl("Config holds one typed entry per resource, for overrides of the numbers of "+p.Source+": for one "+
		"entity, "+
		"or for all of a kind. It is safe for concurrent use.",
		jen.Type().Id("Config").Struct(configs...))

	f.decl("New returns a Limiter on s. It does no I/O: call Check before serving. It fails, and returns nil, "+
		"if s is not\n"+
		"one of "+p.Source+"'s stores, or an option is wrong.",
		jen.Func().Id("New").Params(
			jen.Id("s").Qual(runtimePath, "Store"), jen.Id("opts").Op("...").Qual(runtimePath, "Option"),
		).Params(jen.Op("*").Id("Limiter"), jen.Error()).Block(
			define("b", jen.Qual(runtimePath, "NewBuilder").Call(jen.Id("s"), jen.Id("opts").Op("..."))),
			define("l", jen.Op("&").Id("Limiter").Add(lines(binds...))),
			jen.Var().Err().Error(),
			jen.If(jen.List(jen.Id("l").Dot("Limiter"), jen.Err()).Op("=").Id("b").Dot("Limiter").Call(),
				jen.Err().Op("!=").Nil()).Block(jen.Return(jen.Nil(), jen.Err())),
			jen.Return(jen.Id("l"), jen.Nil()),
		))
}

// configOf returns the type of r's overrides, and the code that makes them. before is the columns in front of
// it.
func configOf(r *model.Resource, before int) (typ, bind jen.Code) {
	at := before - len("Bind") - len(r.Entity) + len("Config")
	typ = jen.Qual(runtimePath, "Config").Op("[" + flowing(at, []string{r.Entity, r.Cost, r.Override}) + "]")
	arguments := []string{"b", r.Definition + "{}", r.ToVector, r.ToLimits, r.FromLimits}
	before += tab + len("Config")
	if r.Config != "" {
		before += len("&{}") + len(r.Config)
	}
	bind = jen.Qual(runtimePath, "BindConfig").Types(jen.Id(r.Entity)).Add(flow(before, arguments))
	if r.Config != "" {
		return jen.Id(r.Config), jen.Op("&").Id(r.Config).Values(bind)
	}
	return typ, bind
}

// failures prints runtime's errors under names of the package.
func failures(f *file, p *model.Package) {
	var aliases []jen.Code
	for _, e := range []struct{ name, says string }{
		{"DeniedError", "says that there are too few tokens now, and when there will be enough."},
		{"CostTooLargeError", "says that the call costs more than the burst, so that it can never be " +
			"admitted."},
		{"InvalidError", "says that the caller's input is wrong."},
		{"ContendedError", "says that every attempt met a conflict; nothing was charged, and the call may be " +
			"repeated."},
		{"UnavailableError", "says that the store did not answer in time or is down."},
		{"SetupError", "says that the installation is wrong, and what to do."},
		{"QueueFullError", "says that as many calls wait for the entity as WithMaxWaiters allows; nothing was " +
			"charged."},
		{"ConflictError", "says that an override has changed since it was read."},
	} {
		aliases = append(aliases, field(e.name+" "+e.says), jen.Id(e.name).Op("=").Qual(runtimePath, e.name))
	}
	if slices.ContainsFunc(p.Resources, func(r *model.Resource) bool { return r.Template != nil }) {
		const name = "UnknownNameError"
		aliases = append(aliases, field(name+" says that the catalog does not have a name; nothing was charged."),
			jen.Id(name).Op("=").Qual(runtimePath, name))
	}
	f.decl("Runtime's errors, here so that callers need not import it.", jen.Type().Defs(aliases...))
	f.decl("ErrSettled is returned by Settle and More if the lease was settled, kept or released before.",
		jen.Var().Id("ErrSettled").Op("=").Qual(runtimePath, "ErrSettled"))
	f.decl("ErrLeaseLost is the cause of a lease's context that ends because others may soon have its slots.",
		jen.Var().Id("ErrLeaseLost").Op("=").Qual(runtimePath, "ErrLeaseLost"))
}
