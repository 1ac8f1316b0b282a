// Package floats finds floats on the way of money, where amounts and prices are whole numbers.
package floats

import (
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// None fails t for each expression of the package in the working directory whose type has floats, and for
// each function that it names and that takes or returns one. Packages with fewer files than least are not
// found. In except are names of types, and of functions of the package, that may have floats: no money is in
// those. They are to have some.
func None(t *testing.T, least int, except ...string) {
	t.Helper()
	names, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	names = slices.DeleteFunc(names, func(name string) bool { return strings.HasSuffix(name, "_test.go") })
	if len(names) < least {
		t.Fatalf("only %q are found", names)
	}
	found := newFinder(t, except...)
	var files []*ast.File
	for _, name := range names {
		file, err := parser.ParseFile(found.fset, name, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, file)
	}
	for _, wrong := range found.find(t, files) {
		t.Error(wrong)
	}
	for _, name := range except {
		if found.except[name] == 0 {
			t.Errorf("%s has no floats, or is not there: it is no exception", name)
		}
	}
}

// finder finds what has to do with floats in files.
type finder struct {
	fset    *token.FileSet
	imports types.Importer
	except  map[string]int // the floats in what may have some, by its name
}

// newFinder returns one for files that import what the package in the working directory imports, and what the
// control does.
func newFinder(t *testing.T, except ...string) *finder {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", "list", "-export", "-deps",
		"-f", "{{.ImportPath}} {{.Export}}", ".", "math/bits", "sort", "time")
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	exports := map[string]string{}
	for line := range strings.Lines(string(out)) {
		name, file, _ := strings.Cut(strings.TrimSpace(line), " ")
		exports[name] = file
	}
	fset, allowed := token.NewFileSet(), map[string]int{}
	for _, name := range except {
		allowed[name] = 0
	}
	imports := importer.ForCompiler(fset, "gc", func(path string) (io.ReadCloser, error) {
		return os.Open(exports[path])
	})
	return &finder{fset, imports, allowed}
}

// find returns each expression and name in the files of a package that has to do with floats.
func (f *finder) find(t *testing.T, files []*ast.File) (found []string) {
	t.Helper()
	info := &types.Info{Types: map[ast.Expr]types.TypeAndValue{}, Uses: map[*ast.Ident]types.Object{},
		Defs: map[*ast.Ident]types.Object{}}
	config := types.Config{Importer: f.imports}
	if _, err := config.Check("x", f.fset, files, info); err != nil {
		t.Fatal(err)
	}
	within := f.excepted(files)
	note := func(e ast.Expr, of types.Type) {
		if of == nil || !f.hasFloat(of, map[types.Type]bool{}) {
			return
		}
		if name := within(e); name != "" {
			f.except[name]++
			return
		}
		found = append(found, fmt.Sprintf("%s: %s is a %s", f.fset.Position(e.Pos()), types.ExprString(e), of))
	}
	for e, of := range info.Types {
		note(e, of.Type)
		if literal, ok := e.(*ast.BasicLit); ok && (literal.Kind == token.FLOAT || literal.Kind == token.IMAG) {
			note(e, types.Typ[types.UntypedFloat]) // its own type is that of the variable
		}
	}
	for _, names := range []map[*ast.Ident]types.Object{info.Uses, info.Defs} {
		for id, object := range names {
			if object != nil {
				note(id, object.Type())
			}
		}
	}
	slices.Sort(found)
	return found
}

// excepted returns a function that names the exception that an expression is in, "" for none.
func (f *finder) excepted(files []*ast.File) func(ast.Expr) string {
	places := map[ast.Node]string{}
	note := func(name string, at ast.Node) {
		if _, ok := f.except[name]; ok {
			places[at] = name
		}
	}
	for _, file := range files {
		for _, d := range file.Decls {
			switch d := d.(type) {
			case *ast.FuncDecl:
				note(d.Name.Name, d)
			case *ast.GenDecl:
				for _, spec := range d.Specs {
					if spec, ok := spec.(*ast.TypeSpec); ok {
						note(spec.Name.Name, spec)
					}
				}
			}
		}
	}
	return func(e ast.Expr) string {
		for at, name := range places {
			if at.Pos() <= e.Pos() && e.End() <= at.End() {
				return name
			}
		}
		return ""
	}
}

// hasFloat reports whether a type is made of floats or of complex numbers. Methods of a named type count once
// they are called.
func (f *finder) hasFloat(of types.Type, seen map[types.Type]bool) bool {
	if seen[of] {
		return false
	}
	seen[of] = true
	variable := func(v *types.Var) bool { return f.hasFloat(v.Type(), seen) }
	switch of := of.(type) {
	case *types.Basic:
		return of.Info()&(types.IsFloat|types.IsComplex) != 0
	case *types.Named:
		if _, ok := f.except[of.Obj().Name()]; ok {
			if f.hasFloat(of.Underlying(), maps.Clone(seen)) {
				f.except[of.Obj().Name()]++
			}
			return false
		}
		return f.hasFloat(of.Underlying(), seen)
	case *types.Alias:
		return f.hasFloat(of.Underlying(), seen)
	case *types.Map:
		return f.hasFloat(of.Key(), seen) || f.hasFloat(of.Elem(), seen)
	case interface{ Elem() types.Type }: // pointers, slices, arrays, channels
		return f.hasFloat(of.Elem(), seen)
	case *types.Struct:
		return slices.ContainsFunc(slices.Collect(of.Fields()), variable)
	case *types.Signature:
		return f.hasFloat(of.Params(), seen) || f.hasFloat(of.Results(), seen)
	case *types.Tuple:
		return slices.ContainsFunc(slices.Collect(of.Variables()), variable)
	}
	return false
}
