package money_test

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

// TestNoFloats: no expression of the package has a type with floats, and no function that it names takes or
// returns one.
func TestNoFloats(t *testing.T) {
	names, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	names = slices.DeleteFunc(names, func(name string) bool { return strings.HasSuffix(name, "_test.go") })
	if len(names) < 3 {
		t.Fatalf("only %q are found", names)
	}
	finder := newFloatFinder(t)
	var files []*ast.File
	for _, name := range names {
		file, err := parser.ParseFile(finder.fset, name, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, file)
	}
	for _, found := range finder.find(t, files) {
		t.Error(found)
	}
}

// TestNoFloatsControl: each way to a float is found.
func TestNoFloatsControl(t *testing.T) {
	finder := newFloatFinder(t)
	for body, want := range map[string]string{
		`x, _ := strconv.ParseInt("5", 10, 64); _ = x`:          "",
		`_ = bits.Len64(math.MaxInt64)`:                         "",
		`_, _ = strconv.ParseFloat("0.1", 64)`:                  "strconv.ParseFloat is",
		`_ = math.Float64bits`:                                  "math.Float64bits is",
		`_ = strconv.FormatInt(int64(math.Round(5)), 10)`:       "math.Round is",
		`var x int64 = 5e9; _ = x`:                              "5e9 is",
		`const x = 0.5 * 2; var y int = x; _ = y`:               "0.5 is",
		`const x = 3i * 3i; var y int = x; _ = y`:               "3i is",
		`var x float32; _ = x`:                                  "float32 is",
		`x := int64(5); _ = complex128(complex(1, 2)); _ = x`:   "complex128 is",
		`type money float64; _ = []money{}`:                     "money is",
		`_ = map[string][]struct{ price *float64 }{}`:           "float64 is",
		`_ = func(price float64) {}`:                            "float64 is",
		`_ = sort.Float64Slice(nil)`:                            "sort.Float64Slice is",
		`_ = time.Duration(5).Seconds() > 0; _ = math.MaxInt64`: ".Seconds is",
	} {
		const head = "package x\nimport (\"math\"; \"math/bits\"; \"sort\"; \"strconv\"; \"time\")\n" +
			"var _, _, _, _, _ = math.MaxInt8, bits.UintSize, sort.Ints, strconv.Itoa, time.Nanosecond\n"
		file, err := parser.ParseFile(finder.fset, "x.go", head+"func f() {"+body+"}", 0)
		if err != nil {
			t.Fatal(err)
		}
		found := strings.Join(finder.find(t, []*ast.File{file}), "; ")
		if (found == "") != (want == "") || !strings.Contains(found, want) {
			t.Errorf("%s: %q, want %q", body, found, want)
		}
	}
}

// floatFinder finds what has to do with floats in files.
type floatFinder struct {
	fset    *token.FileSet
	imports types.Importer
}

// newFloatFinder returns one for files that import what this package imports, and what its control does.
func newFloatFinder(t *testing.T) *floatFinder {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", "list", "-export", "-deps",
		"-f", "{{.ImportPath}} {{.Export}}", ".", "sort", "time")
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
	return &floatFinder{fset, importer.ForCompiler(fset, "gc", func(path string) (io.ReadCloser, error) {
		return os.Open(exports[path])
	})}
}

// find returns each expression and name in the files of a package that has to do with floats.
func (f *floatFinder) find(t *testing.T, files []*ast.File) (found []string) {
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
