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
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// None fails t for each expression of the package in the working directory whose type has floats, and for
// each function that it names and that takes or returns one. Packages with fewer files than least are not
// found.
func None(t *testing.T, least int) {
	t.Helper()
	names, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	names = slices.DeleteFunc(names, func(name string) bool { return strings.HasSuffix(name, "_test.go") })
	if len(names) < least {
		t.Fatalf("only %q are found", names)
	}
	found := newFinder(t)
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
}

// finder finds what has to do with floats in files.
type finder struct {
	fset    *token.FileSet
	imports types.Importer
}

// newFinder returns one for files that import what the package in the working directory imports, and what the
// control does.
func newFinder(t *testing.T) *finder {
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
	fset := token.NewFileSet()
	return &finder{fset, importer.ForCompiler(fset, "gc", func(path string) (io.ReadCloser, error) {
		return os.Open(exports[path])
	})}
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
	note := func(e ast.Expr, of types.Type) {
		if of != nil && hasFloat(of, map[types.Type]bool{}) {
			found = append(found, fmt.Sprintf("%s: %s is a %s", f.fset.Position(e.Pos()), types.ExprString(e), of))
		}
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

// hasFloat reports whether a type is made of floats or of complex numbers. Methods of a named type count once
// they are called.
func hasFloat(of types.Type, seen map[types.Type]bool) bool {
	if seen[of] {
		return false
	}
	seen[of] = true
	variable := func(v *types.Var) bool { return hasFloat(v.Type(), seen) }
	switch of := of.(type) {
	case *types.Basic:
		return of.Info()&(types.IsFloat|types.IsComplex) != 0
	case *types.Named, *types.Alias:
		return hasFloat(of.Underlying(), seen)
	case *types.Map:
		return hasFloat(of.Key(), seen) || hasFloat(of.Elem(), seen)
	case interface{ Elem() types.Type }: // pointers, slices, arrays, channels
		return hasFloat(of.Elem(), seen)
	case *types.Struct:
		return slices.ContainsFunc(slices.Collect(of.Fields()), variable)
	case *types.Signature:
		return hasFloat(of.Params(), seen) || hasFloat(of.Results(), seen)
	case *types.Tuple:
		return slices.ContainsFunc(slices.Collect(of.Variables()), variable)
	}
	return false
}
