package docs_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
)

// TestErrorsAreDocumented wants a row of docs/errors.md for each exported error of runtime, and the other way
// round.
func TestErrorsAreDocumented(t *testing.T) {
	declared := errorsOf(t, os.DirFS("runtime"))
	if len(declared) < 15 {
		t.Fatalf("only %q are found", declared)
	}
	for _, wrong := range checkErrors(declared, read(t, "docs/errors.md")) {
		t.Error(wrong)
	}
}

// TestErrorsControl has an error too many on either side, and rows that leave a cell empty.
func TestErrorsControl(t *testing.T) {
	tree := fstest.MapFS{
		"errors.go": {Data: []byte("package x\n\ntype AError struct{}\n\nvar ErrB, errOwn = New(), New()\n")},
		"alias.go":  {Data: []byte("package x\n\ntype (\n\tCError = y.CError\n\tOther = y.Other\n)\n")},
		// no user can name these
		"internal/d.go": {Data: []byte("package internal\n\ntype DError struct{}\n")},
		"x_test.go":     {Data: []byte("package x\n\ntype EError struct{}\n")},
	}
	declared := errorsOf(t, tree)
	if want := []string{"AError", "CError", "ErrB"}; !slices.Equal(declared, want) {
		t.Fatalf("%q are found, want %q", declared, want)
	}
	const rows = "| `AError` | a | no | b |\n| `ErrB` in another | a | no | b |\n"
	for page, want := range map[string]string{
		rows + "| `CError` | a | no | b |\n": "",
		rows:                                 "CError has no row",
		rows + "| `CError` | a | | b |\n":    "CError: a cell is empty",
		rows + "| `CError` | a | no | b |\n| `GoneError` | a | no | b |\n": "GoneError does not exist",
	} {
		if got := strings.Join(checkErrors(declared, page), "; "); got != want {
			t.Errorf("%s\n%q, want %q", page, got, want)
		}
	}
}

// errorRow is a row of a table of errors: names as code, then cause, charge and cure.
var errorRow = regexp.MustCompile("(?m)^\\| (`[^|]*) \\|([^|]*)\\|([^|]*)\\|([^|]*)\\|$")

// named is an error's name in the first cell of a row.
var named = regexp.MustCompile("`([A-Za-z]*Error|Err[A-Z][A-Za-z]*)`")

// checkErrors returns what is wrong with a page on the declared errors.
func checkErrors(declared []string, page string) (wrong []string) {
	rows := map[string]bool{}
	for _, m := range errorRow.FindAllStringSubmatch(page, -1) {
		first, _, _ := strings.Cut(m[1], ",") // an error inside another one names both
		for _, n := range named.FindAllStringSubmatch(first, 1) {
			rows[n[1]] = true
			if !slices.Contains(declared, n[1]) {
				wrong = append(wrong, n[1]+" does not exist")
			}
			if slices.ContainsFunc(m[2:], func(cell string) bool { return strings.TrimSpace(cell) == "" }) {
				wrong = append(wrong, n[1]+": a cell is empty")
			}
		}
	}
	for _, name := range declared {
		if !rows[name] {
			wrong = append(wrong, name+" has no row")
		}
	}
	return wrong
}

// errorsOf returns the exported error types and values of the packages in tree that users may import, sorted.
func errorsOf(t *testing.T, tree fs.FS) []string {
	t.Helper()
	var names []string
	err := fs.WalkDir(tree, ".", func(name string, entry fs.DirEntry, err error) error {
		base := path.Base(name)
		switch {
		case err != nil:
			return err
		case entry.IsDir() && (base == "testdata" || base == "internal" || base == "memdynamo"):
			return fs.SkipDir
		case entry.IsDir(), path.Ext(name) != ".go", strings.HasSuffix(name, "_test.go"):
			return nil
		}
		text, err := fs.ReadFile(tree, name)
		if err != nil {
			return err
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, text, 0)
		if err != nil {
			return err
		}
		for id := range declaredNames(file) {
			if ast.IsExported(id) && named.MatchString("`"+id+"`") {
				names = append(names, id)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// declaredNames returns the types and variables that a file declares at its top level.
func declaredNames(file *ast.File) map[string]bool {
	names := map[string]bool{}
	for _, decl := range file.Decls {
		gen, ok := decl.(*ast.GenDecl)
		if !ok {
			continue
		}
		for _, spec := range gen.Specs {
			switch spec := spec.(type) {
			case *ast.TypeSpec:
				names[spec.Name.Name] = true
			case *ast.ValueSpec:
				for _, id := range spec.Names {
					names[id.Name] = true
				}
			}
		}
	}
	return names
}
