package gen

import (
	"go/ast"
	"go/parser"
	"go/token"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/sluice-go/sluice/gen/internal/declared"
	"github.com/sluice-go/sluice/gen/internal/lua"
	"github.com/sluice-go/sluice/gen/internal/model"
	"github.com/sluice-go/sluice/gen/internal/schema"
)

// TestDeclared compares the declarations and imports of generated packages with the list by which the
// schema's rules find clashes. A name that is not on the list could be a resource's. A name that nothing
// declares is reserved for nothing, unless it is for another store, or for a script with more keys than
// MaxKeys.
func TestDeclared(t *testing.T) {
	for name, dir := range cases(t, "golden") {
		t.Run(name, func(t *testing.T) {
			s, problems := schema.Read("limits.yaml", []byte(tree(t, dir)["limits.yaml"]))
			if problems != nil {
				t.Fatal(problems)
			}
			names := declared.Names(s)
			p := model.Of(s, "limits.yaml")
			var kept []string
			for _, r := range p.Resources {
				for _, script := range lua.Scripts(r) {
					if !p.Redis || script.Text == "" {
						kept = append(kept, script.Name)
					}
				}
			}
			unused := slices.DeleteFunc(declared.Names(s), func(name string) bool {
				return slices.Contains(kept, name) || !p.DynamoDB && dynamoDB.MatchString(name)
			})
			for file, src := range goFiles(t, copied(t, dir)) {
				f, err := parser.ParseFile(token.NewFileSet(), file, src, parser.SkipObjectResolution)
				if err != nil {
					t.Fatal(err)
				}
				for _, name := range topLevel(f) {
					if !slices.Contains(names, name) {
						t.Errorf("%s declares %s, which declared.Names does not have", file, name)
					}
					unused = slices.DeleteFunc(unused, func(n string) bool { return n == name })
				}
				for _, imp := range f.Imports {
					if imp.Name != nil && imp.Name.Name == "_" {
						continue // for its effect: it declares no name
					}
					path, _ := strconv.Unquote(imp.Path.Value)
					base := path[strings.LastIndexByte(path, '/')+1:]
					text := strings.Replace(reservedTry, "NAME", base, 1)
					s, problems := schema.Read("limits.yaml", []byte(text))
					if len(problems)+len(declared.Check(s)) == 0 {
						t.Errorf("%s imports %s, and a resource may have that name", file, base)
					}
				}
			}
			if len(unused) > 0 {
				t.Errorf("declared.Names has %v, which nothing declares", unused)
			}
		})
	}
}

// dynamoDB matches the names that only code for this store declares.
var dynamoDB = regexp.MustCompile(`^ExtractDeltas$|^Benchmark|(Bucket|Update|Condition)$`)

const reservedTry = `version: 1
owner: acme
revision: 1
go: {package: limits}
entities: {user: {}}
resources: {NAME: {limits: {rps: {capacity: 1, every: 1s}}}}
`

// topLevel returns the names that a file declares in its package.
func topLevel(f *ast.File) []string {
	var names []string
	for _, d := range f.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			if d.Recv == nil {
				names = append(names, d.Name.Name)
			}
		case *ast.GenDecl:
			for _, s := range d.Specs {
				switch s := s.(type) {
				case *ast.TypeSpec:
					names = append(names, s.Name.Name)
				case *ast.ValueSpec:
					for _, n := range s.Names {
						names = append(names, n.Name)
					}
				}
			}
		}
	}
	return slices.DeleteFunc(names, func(n string) bool { return n == "_" })
}

// TestDocumented: every exported symbol of generated code has a doc comment.
func TestDocumented(t *testing.T) {
	for name, dir := range cases(t, "golden") {
		for file, src := range goFiles(t, copied(t, dir)) {
			f, err := parser.ParseFile(token.NewFileSet(), file, src, parser.ParseComments|parser.SkipObjectResolution)
			if err != nil {
				t.Fatal(err)
			}
			for _, d := range f.Decls {
				switch d := d.(type) {
				case *ast.FuncDecl:
					if d.Name.IsExported() && !strings.HasPrefix(d.Doc.Text(), d.Name.Name+" ") {
						t.Errorf("%s: %s: func %s has no doc comment", name, file, d.Name.Name)
					}
				case *ast.GenDecl:
					for _, s := range d.Specs {
						if s, ok := s.(*ast.ValueSpec); ok && s.Names[0].IsExported() &&
							!strings.HasPrefix(d.Doc.Text(), s.Names[0].Name+" ") &&
							!strings.HasPrefix(s.Doc.Text(), s.Names[0].Name+" ") {
							t.Errorf("%s: %s: %s has no doc comment", name, file, s.Names[0].Name)
						}
						if s, ok := s.(*ast.TypeSpec); ok && s.Name.IsExported() &&
							!strings.HasPrefix(d.Doc.Text(), s.Name.Name+" ") &&
							!strings.HasPrefix(s.Doc.Text(), s.Name.Name+" ") {
							t.Errorf("%s: %s: type %s has no doc comment", name, file, s.Name.Name)
						}
					}
				}
			}
		}
	}
}
