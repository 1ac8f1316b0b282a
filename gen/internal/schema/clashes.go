package schema

import (
	"fmt"
	"go/token"
	"go/types"
	"slices"
	"strings"
)

// Generated code has these scopes, each a section of this file: the package, its structs, its folder. This is the one
// list of the names in them; Declared lets the generator's tests hold its output against it.

// packageNames are what generated code and its tests declare whatever the schema.
func packageNames() []string {
	return []string{
		"Entity", "ParseEntity", "Limiter", "Config", "New", "ExtractDeltas", "Revision", "ErrSettled",
		"DeniedError", "CostExceedsBurstError", "UnavailableError", "InvalidError", "SetupError", "ContendedError", "ConflictError",
		"TestEntities",
	}
}

// kindNamesInGo are what generated code declares for a kind.
func kindNamesInGo(k *Kind) []string {
	names := []string{k.GoName, "kind" + k.GoName}
	if k.Parent >= 0 {
		names = append(names, k.GoName+"ByID")
	}
	return names
}

// typeSuffixes are what the exported types of a resource end in.
func typeSuffixes() []string {
	return []string{"Resource", "Acquirer", "Lease", "Entity", "Cost", "Limits", "Bucket"}
}

// resourceNamesInGo are what generated code and its tests declare for a resource, its limits' constants aside; chain is how
// many buckets a call on it charges at most.
func resourceNamesInGo(goName string, chain int) []string {
	names := []string{goName}
	for _, s := range typeSuffixes() {
		names = append(names, goName+s)
	}
	private := Unexported(goName)
	names = append(names, private)
	for _, s := range []string{"Vector", "Cost", "LimitsVector", "LimitsOf"} {
		names = append(names, private+s)
	}
	for n := range chain {
		names = append(names, fmt.Sprintf("%sScript%d", private, n+1))
	}
	names = append(names, private+"CreateCondition")
	for _, path := range []string{"Normal", "Retry", "Adjust", "Reshape"} {
		names = append(names, private+path+"Update", private+path+"Condition")
	}
	for _, s := range []string{"Test", "Benchmark"} {
		names = append(names, s+goName)
	}
	return names
}

// limitNameInGo is the constant that generated code declares for a limit.
func limitNameInGo(r *Resource, l *Limit) string { return r.GoName + l.GoName }

// limiterMembers are what the Limiter struct has beside its resources, the methods of runtime.Limiter included.
func limiterMembers() []string {
	return []string{"Limiter", "Config", "AcquireAll", "Entities", "Check", "Close"}
}

// kindMembers are what the struct of a kind has beside its parent.
func kindMembers() []string { return []string{"ID", "Chain"} }

// bucketMembers are what a bucket struct has beside its limits.
func bucketMembers() []string {
	return []string{"Entity", "Refilled", "Version", "Op", "TTL", "MarshalItem", "UnmarshalItem"}
}

// Declared returns the package-level names that code generated from s may declare, its tests included, each once, in
// the schema's order. What the generator declares beyond these could clash with a name that comes from a limits.yaml.
func (s *Schema) Declared() []string {
	names := packageNames()
	for _, k := range s.Kinds {
		names = append(names, kindNamesInGo(k)...)
	}
	for _, r := range s.Resources {
		names = append(names, resourceNamesInGo(r.GoName, s.longest(r))...)
		for _, l := range r.Limits {
			names = append(names, limitNameInGo(r, l))
		}
	}
	return names
}

// longest returns how many buckets a call on r charges at most. Kinds may be their own ancestors: that has been reported.
func (s *Schema) longest(r *Resource) int {
	longest := 1
	if r.Cascade == CascadeNone {
		return longest
	}
	for _, c := range r.Charged {
		chain, k := 0, c.Kind
		for range s.Kinds {
			if k < 0 {
				break
			}
			if slices.ContainsFunc(r.Charged, func(above Charged) bool { return above.Kind == k }) {
				chain++
			}
			k = s.Kinds[k].Parent
		}
		longest = max(longest, chain)
	}
	return longest
}

// takenPrivately says what an unexported name is in generated code anyway, "" if nothing.
func takenPrivately(name string) string {
	switch {
	case token.IsKeyword(name):
		return "a Go keyword"
	case types.Universe.Lookup(name) != nil, name == "init":
		return "a name of Go's own"
	case len(name) == 1:
		return "a variable of generated code, as all single letters"
	}
	switch name {
	case "runtime", "store", "bucket", "codec", "types", "testing", "time", "codectest", "gentest":
		return "a package that generated code imports"
	case "context", "errors", "fmt", "iter", "math", "slices", "strconv", "strings":
		return "kept for imports of later versions of generated code"
	case "entity", "lookup":
		return "a member of every kind"
	case "opts", "err", "rec", "ok", "dst", "item", "out":
		return "a variable of generated code"
	}
	return ""
}

// takenFile says whether generated code has a file of this name, less ".go", whatever the schema.
func takenFile(base string) bool {
	return slices.Contains([]string{"limits", "entities", "deltas", "doc"}, base)
}

// owner is what a Go name comes from.
type owner struct {
	what string // for messages
	pos  Pos
}

// clashes finds names that are given twice. Two owners are reported once, however many names they share.
type clashes struct {
	*reader
	reported map[[2]Pos]bool
}

// scope maps the names of a scope to what they come from.
type scope map[string]owner

// declare adds a name to sc. It reports a name that is there already, at whichever of the two is later in the file.
func (c *clashes) declare(sc scope, name, shown string, o owner) bool {
	first, taken := sc[name]
	if !taken {
		sc[name] = o
		return true
	}
	if first == (owner{}) {
		c.reserved(o, name, "a name that generated code declares")
		return false
	}
	if first.pos.Compare(o.pos) > 0 {
		first, o = o, first
	}
	if pair := [2]Pos{first.pos, o.pos}; !c.reported[pair] {
		c.reported[pair] = true
		c.add(o.pos, ruleGoClash, "%s and %s, in line %d, both give %s: set go_name on one of them", o.what, first.what, first.pos.Line, shown)
	}
	return false
}

// reserved reports a Go name that generated code uses itself.
func (c *clashes) reserved(o owner, name, as string) {
	c.add(o.pos, ruleReservedName, "%s would be %s in Go, which is %s: set its go_name", o.what, name, as)
}

// checkGoNames reports the clashes between names of s, and between them and generated code's own.
func (r *reader) checkGoNames(s *Schema) {
	c := &clashes{reader: r, reported: make(map[[2]Pos]bool)}
	pkg, files := make(scope), make(scope)
	for _, name := range packageNames() {
		pkg[name] = owner{}
	}
	for _, k := range s.Kinds {
		o := owner{"kind " + quote(k.Name), k.Pos}
		switch {
		case k.GoName == "":
		case slices.Contains(kindMembers(), k.GoName):
			c.reserved(o, k.GoName, "a member of every kind")
		default:
			c.declareAll(pkg, kindNamesInGo(k), o)
		}
	}
	for _, res := range s.Resources {
		usable := c.resource(pkg, files, res, s.longest(res))
		c.limits(pkg, res, usable)
	}
}

// declareAll declares names up to the first that is taken: the ones derived from it would be, too.
func (c *clashes) declareAll(pkg scope, names []string, o owner) bool {
	for _, name := range names {
		if !c.declare(pkg, name, name+" in Go", o) {
			return false
		}
	}
	return true
}

// resource declares what res gives, whose calls charge that many buckets at most, and says whether it was free.
func (c *clashes) resource(pkg, files scope, res *Resource, chain int) bool {
	if res.GoName == "" {
		return false
	}
	o := owner{"resource " + quote(res.Name), res.Pos}
	private, file := Unexported(res.GoName), strings.ToLower(res.GoName)
	if as := takenPrivately(private); as != "" {
		c.reserved(o, private, as)
		return false
	}
	if windowsDevice(file) {
		c.add(o.pos, ruleReservedName, "%s would be written to %s.go, which cannot be checked out on Windows: set its go_name", o.what, file)
		return false
	}
	if takenFile(file) {
		c.add(o.pos, ruleReservedName, "%s would be written to %s.go, which is another file of generated code: set its go_name", o.what, file)
		return false
	}
	if slices.Contains(limiterMembers(), res.GoName) {
		c.reserved(o, res.GoName, "a member of Limiter")
		return false
	}
	return c.declareAll(pkg, resourceNamesInGo(res.GoName, chain), o) && c.declare(files, file, "file "+file+".go", o)
}

// limits declares what the limits of res give: constants too, if the resource's own name is usable.
func (c *clashes) limits(pkg scope, res *Resource, usable bool) {
	members := make(scope)
	for _, l := range res.Limits {
		o := owner{"limit " + quote(l.Name) + " of resource " + quote(res.Name), l.Pos}
		switch {
		case l.GoName == "":
		case slices.Contains(bucketMembers(), l.GoName):
			c.reserved(o, l.GoName, "a member of every bucket")
		case slices.Contains(typeSuffixes(), l.GoName):
			c.reserved(o, l.GoName, "the end of a type's name in every resource")
		case c.declare(members, l.GoName, l.GoName+" in Go", o) && usable:
			c.declareAll(pkg, []string{limitNameInGo(res, l)}, o)
		}
	}
}
