package schema

import (
	"fmt"
	"go/token"
	"go/types"
	"slices"
	"strings"

	"github.com/sluice-go/sluice/gen/internal/goname"
	"github.com/sluice-go/sluice/gen/internal/hint"
	"github.com/sluice-go/sluice/gen/internal/rules"
)

// Generated code has these scopes, each a section of this file: the package, its structs, its folder. The
// names in them are listed here only. The generator's tests hold its output against Declared.

// packageNames are the names that generated code and its tests declare for every schema.
func packageNames() []string {
	return []string{
		"Entity", "ParseEntity", "Limiter", "Config", "New", "ExtractDeltas", "Revision", "ErrSettled",
		"DeniedError", "CostTooLargeError", "UnavailableError", "InvalidError", "SetupError", "ContendedError",
		"ConflictError", "QueueFullError", "ErrLeaseLost",
		"TestEntities",
	}
}

// kindNamesInGo are the names that generated code declares for a kind.
func kindNamesInGo(k *Kind) []string {
	names := []string{k.GoName, "kind" + k.GoName}
	if k.Parent >= 0 {
		names = append(names, k.GoName+"ByID")
	}
	return names
}

// typeSuffixes are the ends of the names of a resource's exported types.
func typeSuffixes() []string {
	return []string{"Resource", "Acquirer", "Lease", "Entity", "Cost", "Limit", "Limits", "Bucket"}
}

// resourceNamesInGo are the names that generated code and its tests declare for r, without its limits'
// constants. chain is the most buckets that a call on it charges. kinds are the Go names of those kinds that
// variants of its DynamoDB code are named after; nil if there are none.
func resourceNamesInGo(r *Resource, chain int, kinds []string) []string {
	goName := r.GoName
	names := []string{goName}
	for _, s := range typeSuffixes() {
		names = append(names, goName+s)
	}
	if r.Usage != nil {
		names = append(names, goName+UsageSuffix)
	}
	private := goname.Unexported(goName)
	names = append(names, private)
	for _, s := range []string{"Vector", "Cost", "LimitsVector", "LimitsOf"} {
		names = append(names, private+s)
	}
	if r.Windows() {
		names = append(names, private+WindowsSuffix)
	}
	for n := range chain {
		names = append(names, fmt.Sprintf("%sScript%d", private, n+1))
	}
	variants := []string{private}
	if kinds != nil {
		variants = nil
	}
	for _, kind := range kinds {
		variants = append(variants, private+VariantInfix+kind)
		names = append(names, private+VariantInfix+kind)
	}
	for _, v := range variants {
		names = append(names, v+"CreateCondition")
		for _, path := range []string{"Normal", "Retry", "Adjust", "Reshape"} {
			names = append(names, v+path+"Update", v+path+"Condition")
		}
	}
	for _, s := range []string{"Test", "Benchmark"} {
		names = append(names, s+goName)
	}
	return names
}

// limitNameInGo is the constant that generated code declares for a limit.
func limitNameInGo(r *Resource, l *Limit) string { return r.GoName + l.GoName }

// limiterMembers are the members of Limiter besides its resources, with the methods of runtime.Limiter. A
// resource may hide Specs, which Limiter.Limiter still has.
func limiterMembers() []string {
	return []string{"Limiter", "Config", "AcquireAll", "Entities", "Check", "Close"}
}

// kindMembers are the members of a kind's struct besides its parent.
func kindMembers() []string { return []string{"ID", "Chain", "String"} }

// UsageSuffix ends the name of a resource's struct of usage.
const UsageSuffix = "Usage"

// usageMembers are the members of a resource's struct of usage besides its usages.
func usageMembers() []string { return []string{"Cost"} }

// costMembers are the members of a resource's structs of costs and overrides besides its limits.
func costMembers() []string { return []string{"String"} }

// bucketMembers are the members of a bucket struct besides its limits.
func bucketMembers() []string {
	return []string{"Entity", "Refilled", "Version", "Op", "TTL", "MarshalItem", "UnmarshalItem"}
}

// Declared returns the package-level names that code generated from s may declare, with its tests. Each is
// there once, in the schema's order. Any other name in generated code could clash with one from a
// limits.yaml.
func (s *Schema) Declared() []string {
	names := packageNames()
	for _, k := range s.Kinds {
		names = append(names, kindNamesInGo(k)...)
	}
	for _, r := range s.Resources {
		names = append(names, resourceNamesInGo(r, s.longest(r), s.variants(r))...)
		for _, l := range r.Limits {
			names = append(names, limitNameInGo(r, l))
		}
	}
	return names
}

// longest returns the most buckets that a call on r charges. It stops at a cycle of parents, which has been
// reported.
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

// WindowsSuffix ends the name of a resource's calendars.
const WindowsSuffix = "Windows"

// VariantInfix joins the names of a resource and of a kind in that of the code for the kind's buckets.
const VariantInfix = "Of"

// variants returns the Go names of the kinds that name a variant of r: the first of each set of limits that
// kinds have. It returns nil if all have all limits.
func (s *Schema) variants(r *Resource) (kinds []string) {
	partial := func(c Charged) bool { return slices.ContainsFunc(c.Limits, Numbers.Absent) }
	if !slices.ContainsFunc(r.Charged, partial) {
		return nil
	}
	same := func(a, b Numbers) bool { return a.Absent() == b.Absent() }
	for i, c := range r.Charged {
		known := slices.ContainsFunc(r.Charged[:i], func(other Charged) bool {
			return slices.EqualFunc(other.Limits, c.Limits, same)
		})
		if !known && c.Kind >= 0 && s.Kinds[c.Kind].GoName != "" { // else a mistake that has been reported
			kinds = append(kinds, s.Kinds[c.Kind].GoName)
		}
	}
	return kinds
}

// takenPrivately returns the use of an unexported name in all generated code, "" if it has none.
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
	case "runtime", "store", "bucket", "money", "codec", "types", "testing", "time", "codectest", "gentest":
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

// takenFile reports whether all generated code has a file of this name, without ".go".
func takenFile(base string) bool {
	return slices.Contains([]string{"limits", "entities", "deltas", "doc"}, base)
}

// owner is the entry of limits.yaml that a Go name comes from.
type owner struct {
	what string // for messages
	name string // as in limits.yaml
	pos  Pos
}

// clashes finds names that have two owners. Two owners are reported once, even for several names.
type clashes struct {
	*reader
	reported map[[2]Pos]bool
}

// scope maps the names of a scope to their owners.
type scope map[string]owner

// declare adds a name to sc. If sc has the name already, declare reports that, at the later of the two in the
// file.
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
		if first.name != o.name && goname.Of(first.name) == goname.Of(o.name) {
			shown += ", where names keep letters and digits alone, each word with a capital"
		}
		c.add(o.pos, rules.GoClash, "%s and %s, in line %d, both give %s: set go_name on one of them", o.what,
			first.what, first.pos.Line, shown)
	}
	return false
}

// reserved reports a Go name that generated code uses itself.
func (c *clashes) reserved(o owner, name, as string) {
	c.add(o.pos, rules.ReservedName, "%s would be %s in Go, which is %s: set its go_name", o.what, name, as)
}

// checkGoNames reports the clashes between names of s, and between them and generated code's own.
func (r schemaReader) checkGoNames(s *Schema) {
	c := &clashes{reader: r.reader, reported: make(map[[2]Pos]bool)}
	pkg, files := make(scope), make(scope)
	for _, name := range packageNames() {
		pkg[name] = owner{}
	}
	for _, k := range s.Kinds {
		o := owner{"kind " + hint.Quote(k.Name), k.Name, k.Pos}
		switch {
		case k.GoName == "":
		case slices.Contains(kindMembers(), k.GoName):
			c.reserved(o, k.GoName, "a member of every kind")
		default:
			c.declareAll(pkg, kindNamesInGo(k), o)
		}
	}
	for _, res := range s.Resources {
		usable := c.resource(pkg, files, res, resourceNamesInGo(res, s.longest(res), s.variants(res)))
		c.limits(pkg, res, usable)
		c.usage(res)
	}
}

// declareAll declares names up to the first that is taken. Names derived from it would be taken, too.
func (c *clashes) declareAll(pkg scope, names []string, o owner) bool {
	for _, name := range names {
		if !c.declare(pkg, name, name+" in Go", o) {
			return false
		}
	}
	return true
}

// resource declares the names of res. It reports whether they were free.
func (c *clashes) resource(pkg, files scope, res *Resource, names []string) bool {
	if res.GoName == "" {
		return false
	}
	o := owner{"resource " + hint.Quote(res.Name), res.Name, res.Pos}
	private, file := goname.Unexported(res.GoName), strings.ToLower(res.GoName)
	if as := takenPrivately(private); as != "" {
		c.reserved(o, private, as)
		return false
	}
	if goname.WindowsDevice(file) {
		c.add(o.pos, rules.ReservedName, "%s would be written to %s.go, which cannot be checked out on Windows: "+
			"set its go_name", o.what, file)
		return false
	}
	if takenFile(file) {
		c.add(o.pos, rules.ReservedName, "%s would be written to %s.go, which is another file of generated code: "+
			"set its go_name", o.what, file)
		return false
	}
	if slices.Contains(limiterMembers(), res.GoName) {
		c.reserved(o, res.GoName, "a member of Limiter")
		return false
	}
	return c.declareAll(pkg, names, o) &&
		c.declare(files, file, "file "+file+".go, in small letters", o)
}

// limits declares the names of res's limits, with their constants if the resource's own name is usable.
func (c *clashes) limits(pkg scope, res *Resource, usable bool) {
	members := make(scope)
	for _, l := range res.Limits {
		o := owner{"limit " + hint.Quote(l.Name) + " of resource " + hint.Quote(res.Name), l.Name, l.Pos}
		switch {
		case l.GoName == "":
		case slices.Contains(bucketMembers(), l.GoName):
			c.reserved(o, l.GoName, "a member of every bucket")
		case slices.Contains(costMembers(), l.GoName):
			c.reserved(o, l.GoName, "a member of every cost")
		case slices.Contains(typeSuffixes(), l.GoName), res.Usage != nil && l.GoName == UsageSuffix:
			c.reserved(o, l.GoName, "the end of a type's name in every resource")
		case c.declare(members, l.GoName, l.GoName+" in Go", o) && usable:
			c.declareAll(pkg, []string{limitNameInGo(res, l)}, o)
		}
	}
}

// usage declares the names of res's usages, which are members of a struct.
func (c *clashes) usage(res *Resource) {
	members := make(scope)
	for _, u := range res.Usage {
		o := owner{"usage " + hint.Quote(u.Name) + " of resource " + hint.Quote(res.Name), u.Name, u.Pos}
		switch {
		case u.GoName == "":
		case slices.Contains(usageMembers(), u.GoName):
			c.reserved(o, u.GoName, "a member of every usage")
		default:
			c.declare(members, u.GoName, u.GoName+" in Go", o)
		}
	}
}
