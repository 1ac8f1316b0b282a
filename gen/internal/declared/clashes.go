package declared

import (
	"go/token"
	"go/types"
	"slices"
	"strings"

	"github.com/sluice-go/sluice/gen/internal/goname"
	"github.com/sluice-go/sluice/gen/internal/hint"
	"github.com/sluice-go/sluice/gen/internal/schema"
)

// The rules that Check holds a schema against.
const (
	RuleClash    = "GO_CLASH"
	RuleReserved = "RESERVED_NAME"
)

// Rules returns the rules of Check.
func Rules() []schema.Rule {
	return []schema.Rule{
		{ID: RuleClash, Purpose: "No two names give the same Go identifier or file."},
		{ID: RuleReserved, Purpose: "No name gives an identifier or file that Go or generated code uses " +
			"for itself."},
	}
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

// takenFile reports whether code generated from s has a file of this name, without ".go".
func takenFile(s *schema.Schema, base string) bool {
	return slices.Contains([]string{"limits", "entities", "deltas", "doc"}, base) ||
		s.Plans != nil && base == "plans"
}

// owner is the entry of limits.yaml that a Go name comes from.
type owner struct {
	what string // for messages
	name string // as in limits.yaml
	pos  schema.Pos
	plan bool // it has no go_name
}

// clashes finds names that have two owners. Two owners are reported once, even for several names.
type clashes struct {
	problems schema.Problems
	reported map[[2]schema.Pos]bool
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
	if pair := [2]schema.Pos{first.pos, o.pos}; !c.reported[pair] {
		c.reported[pair] = true
		if first.name != o.name && goname.Of(first.name) == goname.Of(o.name) {
			shown += ", where names keep letters and digits alone, each word with a capital"
		}
		c.problems.Add(o.pos, RuleClash, "%s and %s, in line %d, both give %s: %s", o.what, first.what,
			first.pos.Line, shown, cure(first, o))
	}
	return false
}

// cure returns the advice about two entries that give one name. Plans have no go_name.
func cure(a, b owner) string {
	switch {
	case a.plan && b.plan:
		return "rename one of them"
	case a.plan:
		return "set go_name on the " + b.what
	case b.plan:
		return "set go_name on the " + a.what
	}
	return "set go_name on one of them"
}

// reserved reports a Go name that generated code uses itself.
func (c *clashes) reserved(o owner, name, as string) {
	c.problems.Add(o.pos, RuleReserved, "%s would be %s in Go, which is %s: set its go_name", o.what, name, as)
}

// Check reports the clashes between names of s, and between them and generated code's own. s may have other
// problems.
func Check(s *schema.Schema) schema.Problems {
	c := &clashes{reported: make(map[[2]schema.Pos]bool)}
	pkg, files := make(scope), make(scope)
	for _, name := range slices.Concat(packageNames(), someNames(s)) {
		pkg[name] = owner{}
	}
	for _, p := range plans(s) {
		if p.GoName != "" {
			o := owner{"plan " + hint.Quote(p.Name), p.Name, p.Pos, true}
			c.declareAll(pkg, []string{schema.PlanPrefix + p.GoName}, o)
		}
	}
	for _, k := range s.Kinds {
		o := owner{"kind " + hint.Quote(k.Name), k.Name, k.Pos, false}
		switch {
		case k.GoName == "":
		case slices.Contains(kindMembers(), k.GoName):
			c.reserved(o, k.GoName, "a member of every kind")
		default:
			c.declareAll(pkg, kindNamesInGo(k), o)
		}
	}
	for _, res := range s.Resources {
		names := append(resourceNamesInGo(res, longest(s, res), variants(s, res)),
			allNames(s, res, goname.Unexported(res.GoName))...)
		usable := c.resource(s, pkg, files, res, names)
		c.limits(pkg, res, usable)
		c.usage(res)
	}
	return c.problems
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
func (c *clashes) resource(s *schema.Schema, pkg, files scope, res *schema.Resource, names []string) bool {
	if res.GoName == "" {
		return false
	}
	o := owner{"resource " + hint.Quote(res.Name), res.Name, res.Pos, false}
	private, file := goname.Unexported(res.GoName), strings.ToLower(res.GoName)
	if as := takenPrivately(private); as != "" {
		c.reserved(o, private, as)
		return false
	}
	if goname.WindowsDevice(file) {
		c.problems.Add(o.pos, RuleReserved, "%s would be written to %s.go, which cannot be checked out on "+
			"Windows: set its go_name", o.what, file)
		return false
	}
	if takenFile(s, file) {
		c.problems.Add(o.pos, RuleReserved, "%s would be written to %s.go, which is another file of generated "+
			"code: set its go_name", o.what, file)
		return false
	}
	if slices.Contains(limiterMembers(s), res.GoName) {
		c.reserved(o, res.GoName, "a member of Limiter")
		return false
	}
	return c.declareAll(pkg, names, o) &&
		c.declare(files, file, "file "+file+".go, in small letters", o)
}

// limits declares the names of res's limits, with their constants if the resource's own name is usable.
func (c *clashes) limits(pkg scope, res *schema.Resource, usable bool) {
	members := make(scope)
	for _, l := range res.Limits {
		o := owner{"limit " + hint.Quote(l.Name) + " of resource " + hint.Quote(res.Name), l.Name, l.Pos, false}
		switch {
		case l.GoName == "":
		case slices.Contains(bucketMembers(res), l.GoName):
			c.reserved(o, l.GoName, "a member of every bucket")
		case slices.Contains(costMembers(), l.GoName):
			c.reserved(o, l.GoName, "a member of every cost")
		case slices.Contains(typeSuffixes(), l.GoName), res.Usage != nil && l.GoName == UsageSuffix,
			res.OnPlans && l.GoName == ConfigSuffix,
			res.Template && slices.Contains(templateSuffixes(), l.GoName):
			c.reserved(o, l.GoName, "the end of a type's name in every resource")
		case c.declare(members, l.GoName, l.GoName+" in Go", o) && usable:
			c.declareAll(pkg, []string{limitNameInGo(res, l)}, o)
		}
	}
}

// usage declares the names of res's usages, which are members of a struct.
func (c *clashes) usage(res *schema.Resource) {
	members := make(scope)
	for _, u := range res.Usage {
		o := owner{"usage " + hint.Quote(u.Name) + " of resource " + hint.Quote(res.Name), u.Name, u.Pos, false}
		switch {
		case u.GoName == "":
		case slices.Contains(usageMembers(), u.GoName):
			c.reserved(o, u.GoName, "a member of every usage")
		default:
			c.declare(members, u.GoName, u.GoName+" in Go", o)
		}
	}
}
