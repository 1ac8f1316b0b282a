package schema

import (
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/sluice-go/sluice/gen/internal/document"
	"github.com/sluice-go/sluice/gen/internal/goname"
	"github.com/sluice-go/sluice/gen/internal/hint"
	"github.com/sluice-go/sluice/gen/internal/rules"
)

// Read parses and checks a limits.yaml, which positions call file. It returns all mistakes, sorted, except
// those that another one hides. The Schema is never nil, but complete only if there are no Problems.
func Read(file string, src []byte) (*Schema, Problems) {
	root, problems := document.Parse(file, src)
	r := &reader{file: file, problems: problems}
	s := &Schema{Stores: []string{StoreDynamoDB}}
	if root != nil {
		schemaReader{r}.schema(root, s)
	}
	r.problems.Sort()
	return s, r.problems
}

// The stores that a schema can name.
const (
	StoreDynamoDB = "dynamodb"
	StoreRedis    = "redis"
)

func stores() []string { return []string{StoreDynamoDB, StoreRedis} }

// reader collects the problems of one file. Its methods read values of YAML, and report the mistakes in them:
// callers do not report these again. Readers of parts of the file embed it.
type reader struct {
	hint.Hints

	file     string
	problems Problems

	redis         bool   // code is generated for Redis
	schemaPlans   *Plans // nil for none, and before they are read
	plansUnknown  bool   // references to plans cannot be checked
	globalUnknown bool   // the global of some resource is malformed, and may be meant to be true
}

// schemaReader reads the top level of the schema, and checks its sections against each other.
type schemaReader struct{ *reader }

// regionReader reads regions.
type regionReader struct{ *reader }

// exceptionReader reads breaking.
type exceptionReader struct{ *reader }

func (r *reader) add(pos Pos, rule, format string, args ...any) {
	r.problems.Add(pos, rule, format, args...)
}

func (r *reader) at(line, col int) Pos { return Pos{File: r.file, Line: line, Col: col} }

func topKeys() []string {
	return []string{
		"version", "owner", "revision", "go", "stores", "regions", "entities", "plans", "resources", "breaking",
	}
}

func goKeys() []string { return []string{"package", "out"} }

// schema reads the whole document into s.
func (r schemaReader) schema(root *yaml.Node, s *Schema) {
	f, ok := r.fields(root, "limits.yaml", "a mapping, such as version: 1", topKeys(), nil)
	if !ok {
		return
	}
	if e, ok := r.need(f, "version", "write version: 1"); ok {
		s.Version = r.version(e)
	}
	if e, ok := r.need(f, "owner", "write who owns the table, such as owner: acme"); ok {
		s.Owner = r.owner(e)
	}
	if e, ok := r.need(f, "revision", "write revision: 1, and raise it whenever a number changes"); ok {
		s.RevisionPos = r.pos(e.value)
		s.Revision = r.count(e, "revision", maxRevision).n
	}
	if e, ok := r.need(f, "go", "write go: {package: limits}"); ok {
		s.GoPos, s.StoresPos = r.pos(e.key), r.pos(e.key)
		r.goPackage(e, s)
	}
	if e, ok := f.get("stores"); ok {
		s.StoresPos = r.pos(e.key)
		s.Stores = r.stores(e)
		r.redis = slices.Contains(s.Stores, StoreRedis)
	}
	if e, ok := f.get("regions"); ok {
		s.Regions = regionReader(r).regions(e)
	}
	kindsKnown := false
	if e, ok := r.need(f, "entities", "write the kinds of entity, such as entities: {user: {}}"); ok {
		s.KindsPos = r.pos(e.key)
		s.Kinds, kindsKnown = r.kinds(e)
	}
	r.plansUnknown = f.merged || slices.Contains(f.meant, "plans")
	if e, ok := f.get("plans"); ok {
		s.Plans = r.plans(e, s.Kinds, kindsKnown)
		r.schemaPlans = s.Plans
	}
	if e, ok := r.need(f, "resources", "write what is limited, such as resources: {api: {limits: {rps: "+
		"{capacity: 10, every: 1s}}}}"); ok {
		s.ResourcesPos = r.pos(e.key)
		s.Resources = r.resources(e, s.Kinds, kindsKnown)
	}
	r.checkGlobal(f, s)
	r.checkChains(s)
	r.checkPrefixes(s)
	if e, ok := f.get("breaking"); ok {
		s.Exceptions = exceptionReader(r).breaking(e)
	}
}

// version reads the file format's version. The only one is 1.
func (r schemaReader) version(e entry) int {
	switch text, ok := r.scalar(e.value, "version", "1"); {
	case !ok:
	case text == "1":
		return 1
	default:
		r.add(r.pos(e.value), rules.Version, "version %s is not one that this sluice reads: write version: 1, or "+
			"run a newer sluice", hint.Quote(text))
	}
	return 0
}

// goPackage reads the name and folder of the generated package.
func (r schemaReader) goPackage(e entry, s *Schema) {
	f, ok := r.fields(e.value, "go", "a mapping, such as {package: limits}", goKeys(), nil)
	if !ok {
		return
	}
	if e, ok := r.needAt(f, r.pos(e.key), "package",
		"write the name of the package to generate, such as go: {package: limits}"); ok {
		if text, ok := r.text(e.value, "package", "a name, such as limits"); ok {
			s.Package = text
			if why := goname.BadPackage(text); why != "" {
				r.add(r.pos(e.value), rules.PackageName, "package %s %s", hint.Quote(text), why)
			}
		}
	}
	s.Out, s.OutPos = "./"+s.Package, s.GoPos
	if e, ok := f.get("out"); ok {
		if text, ok := r.text(e.value, "out", "a folder, such as ./limits"); ok {
			s.Out, s.OutPos = text, r.pos(e.value)
			if why := badPath(text); why != "" {
				r.add(r.pos(e.value), rules.OutPath, "out %s %s: write a folder relative to this file's, such as "+
					"./limits",
					hint.Quote(text), why)
			}
		}
	}
}

// badPath returns the reason why out is not, on every system, a relative folder whose package Go imports, ""
// if it is.
func badPath(out string) string {
	switch {
	case strings.TrimSpace(out) == "":
		return "is empty"
	case strings.HasPrefix(out, "/"):
		return "is absolute"
	case strings.Contains(out, `\`):
		return "has a backslash"
	}
	up := true // only "." and ".." so far
	for elem := range strings.SplitSeq(strings.TrimSuffix(out, "/"), "/") {
		if up = up && (elem == "." || elem == ".."); up {
			continue
		}
		base, _, _ := strings.Cut(elem, ".")
		switch {
		case elem == "":
			return "has two slashes in a row"
		case strings.Trim(elem, goname.Lowers+goname.Uppers+goname.Digits+"._~-") != "":
			return "has folder " + hint.Quote(elem) + ", which Go cannot import (letters, digits and . _ ~ - are " +
				"possible)"
		case strings.ContainsAny(elem[:1], "._~"), strings.HasSuffix(elem, "."):
			return "has folder " + hint.Quote(elem) + ", which must start with a letter, a digit or - and not end " +
				"with a " +
				"dot"
		case slices.Contains(goname.Folders(), elem):
			return "has folder " + hint.Quote(elem) + ", which the go command keeps for itself"
		case goname.WindowsDevice(strings.ToLower(base)):
			return "has folder " + hint.Quote(elem) + ", which cannot be checked out on Windows"
		}
	}
	return ""
}

// stores reads the stores that code is generated for.
func (r schemaReader) stores(e entry) []string {
	var known []string
	for _, it := range r.names(e.value, "stores", "a list, such as [dynamodb, redis]") {
		if !slices.Contains(stores(), it.name) {
			r.add(r.pos(it.value), rules.UnknownValue, "there is no store %s: %s", hint.Quote(it.name),
				r.Cure(it.name, stores()))
			continue
		}
		known = append(known, it.name)
	}
	if n := e.value; n.Kind == yaml.SequenceNode && len(n.Content) == 0 {
		r.add(r.pos(n), rules.Empty, "stores is empty: name one, or leave it out (it is [dynamodb] then)")
	}
	return known
}
