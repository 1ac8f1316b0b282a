// Package style measures what linters cannot: sizes of types, files and packages, columns, sentences of
// comments, private words, exported names, names of options, and couplings of the DynamoDB store's files. Its
// test fails with each finding.
package style

import (
	"cmp"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// Rules, by the name that findings have for them.
const (
	Columns  = "columns"  // a line has at most 110 columns, a tab being one
	Sentence = "sentence" // a sentence of a comment has at most 30 words
	// a statement does not begin with Who, What, Where and the like
	Opening  = "opening"
	Name     = "name"     // no identifier contains a private word
	Prose    = "prose"    // no comment contains a private word
	Methods  = "methods"  // a type has at most 20 methods
	Package  = "package"  // a package has at most 3,000 lines
	File     = "file"     // a file has at most 400 lines
	Function = "function" // a function has at most 60 lines
	Exported = "exported" // runtime exports at most Names names, runtime/dynamo what users call
	Options  = "options"  // runtime's exported functions that return Option are With.., and no others
	Coupling = "coupling" // at most Pairs of files of runtime/dynamo; none against the direction of packages
)

// Rules lists all rules.
var Rules = []string{Columns, Sentence, Opening, Name, Prose, Methods, Package, File, Function, Exported,
	Options, Coupling}

// Bounds are the numbers that the rules hold code to.
type Bounds struct {
	Columns, Words, Methods, Package, File, Function int
	// exported names of runtime; pairs of files of runtime/dynamo
	Names, Pairs int
}

// Repository has the bounds of this repository. Names rises with what a package of users needs, Pairs with
// what the store keeps: plans took 40.
var Repository = Bounds{
	Columns: 110, Words: 30, Methods: 20, Package: 3000, File: 400, Function: 60, Names: 79, Pairs: 286,
}

// Finding is one violation of a rule. Path is relative to the root, with slashes; Line is 0 if it is of a
// whole folder.
type Finding struct {
	Rule, Path string
	Line       int
	Text       string
}

// String returns the finding as compilers print theirs.
func (f Finding) String() string {
	return fmt.Sprintf("%s:%d: %s: %s", f.Path, f.Line, f.Rule, f.Text)
}

// file is one Go file that is neither generated nor below a folder named testdata.
type file struct {
	path  string // relative to the root, with slashes
	test  bool
	lines []string
	fset  *token.FileSet
	ast   *ast.File
}

func (f *file) folder() string { return path.Dir(f.path) }

func (f *file) line(pos token.Pos) int { return f.fset.Position(pos).Line }

// sized reports whether the bounds of size hold for a file: production code of the runtime, the generator and
// the command.
func (f *file) sized() bool {
	if f.test || strings.HasPrefix(f.path, "runtime/memdynamo/") {
		return false
	}
	for _, folder := range []string{"runtime/", "gen/", "cmd/", "internal/tool/"} {
		if strings.HasPrefix(f.path, folder) {
			return true
		}
	}
	return false
}

// Check returns all findings below a folder except those of Coupling, sorted by path and line.
func (b Bounds) Check(root string) ([]Finding, error) {
	files, err := load(root)
	if err != nil {
		return nil, err
	}
	var all []Finding
	for _, f := range files {
		all = append(all, b.columns(f)...)
		all = append(all, b.comments(f)...)
		all = append(all, names(f)...)
		all = append(all, options(f)...)
		if f.sized() {
			all = append(all, b.sizes(f)...)
		}
	}
	all = append(all, b.packages(files)...)
	all = append(all, b.exported(files)...)
	Sort(all)
	return all, nil
}

// Sort orders findings by path and line.
func Sort(all []Finding) {
	slices.SortStableFunc(all, func(a, b Finding) int {
		return cmp.Or(cmp.Compare(a.Path, b.Path), cmp.Compare(a.Line, b.Line), cmp.Compare(a.Rule, b.Rule))
	})
}

// load parses the Go files below a folder: all modules, but nothing in testdata and hidden folders, and
// nothing generated.
func load(root string) ([]*file, error) {
	var files []*file
	err := filepath.WalkDir(root, func(p string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir():
			if p != root && (d.Name() == "testdata" || strings.HasPrefix(d.Name(), ".")) {
				return filepath.SkipDir
			}
			return nil
		case !strings.HasSuffix(p, ".go"):
			return nil
		}
		text, err := os.ReadFile(p)
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(root, p)
		if err != nil {
			return err
		}
		fset := token.NewFileSet()
		parsed, err := parser.ParseFile(fset, p, text, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		if ast.IsGenerated(parsed) {
			return nil
		}
		files = append(files, &file{
			path:  filepath.ToSlash(rel),
			test:  strings.HasSuffix(p, "_test.go"),
			lines: strings.Split(strings.TrimSuffix(string(text), "\n"), "\n"),
			fset:  fset,
			ast:   parsed,
		})
		return nil
	})
	return files, err
}

// columns finds lines that are too long. Paths of imports cannot be broken.
func (b Bounds) columns(f *file) []Finding {
	imports := map[int]bool{}
	for _, spec := range f.ast.Imports {
		imports[f.line(spec.Pos())] = true
	}
	var found []Finding
	for i, line := range f.lines {
		if n := len([]rune(line)); n > b.Columns && !imports[i+1] {
			found = append(found, Finding{Columns, f.path, i + 1, fmt.Sprintf("%d columns, at most %d", n, b.Columns)})
		}
	}
	return found
}

// sizes finds what is too long in one file.
func (b Bounds) sizes(f *file) []Finding {
	var found []Finding
	if n := len(f.lines); n > b.File {
		found = append(found, Finding{File, f.path, n, fmt.Sprintf("%d lines, at most %d", n, b.File)})
	}
	for _, decl := range f.ast.Decls {
		fn, ok := decl.(*ast.FuncDecl)
		if !ok {
			continue
		}
		if n := f.line(fn.End()) - f.line(fn.Pos()) + 1; n > b.Function {
			text := fmt.Sprintf("%s has %d lines, at most %d", fn.Name.Name, n, b.Function)
			found = append(found, Finding{Function, f.path, f.line(fn.Pos()), text})
		}
	}
	return found
}

// packages finds packages with too many lines and types with too many methods.
func (b Bounds) packages(files []*file) []Finding {
	lines, methods := map[string]int{}, map[[2]string]int{}
	for _, f := range files {
		if !f.sized() {
			continue
		}
		lines[f.folder()] += len(f.lines)
		for _, decl := range f.ast.Decls {
			if fn, ok := decl.(*ast.FuncDecl); ok && fn.Recv != nil {
				methods[[2]string{f.folder(), receiver(fn)}]++
			}
		}
	}
	var found []Finding
	for folder, n := range lines {
		if n > b.Package {
			found = append(found, Finding{Package, folder, 0, fmt.Sprintf("%d lines, at most %d", n, b.Package)})
		}
	}
	for of, n := range methods {
		if n > b.Methods {
			text := fmt.Sprintf("%s has %d methods, at most %d", of[1], n, b.Methods)
			found = append(found, Finding{Methods, of[0], 0, text})
		}
	}
	return found
}

// receiver returns the name of the type that a method is of.
func receiver(fn *ast.FuncDecl) string {
	t := fn.Recv.List[0].Type
	for {
		switch x := t.(type) {
		case *ast.StarExpr:
			t = x.X
		case *ast.IndexExpr:
			t = x.X
		case *ast.IndexListExpr:
			t = x.X
		case *ast.Ident:
			return x.Name
		default:
			return fmt.Sprintf("%T", t)
		}
	}
}

// exported finds exported names of the packages that users call: too many of runtime, and any of
// runtime/dynamo that is not on the list of what users need.
func (b Bounds) exported(files []*file) []Finding {
	var found []Finding
	count := 0
	for _, f := range files {
		if f.test {
			continue
		}
		switch f.folder() {
		case "runtime":
			for _, id := range topLevel(f.ast) {
				if count++; count > b.Names {
					text := fmt.Sprintf("%s is exported name %d of runtime, at most %d", id.Name, count, b.Names)
					found = append(found, Finding{Exported, f.path, f.line(id.Pos()), text})
				}
			}
		case "runtime/dynamo":
			for _, id := range topLevel(f.ast) {
				if !slices.Contains(dynamoNames, id.Name) {
					text := id.Name + " is not for users: see dynamoNames in internal/test/style"
					found = append(found, Finding{Exported, f.path, f.line(id.Pos()), text})
				}
			}
		}
	}
	return found
}

// topLevel returns the exported types, functions, constants and variables of a file.
func topLevel(f *ast.File) []*ast.Ident {
	var ids []*ast.Ident
	for _, decl := range f.Decls {
		switch d := decl.(type) {
		case *ast.FuncDecl:
			if d.Recv == nil {
				ids = append(ids, d.Name)
			}
		case *ast.GenDecl:
			for _, spec := range d.Specs {
				switch s := spec.(type) {
				case *ast.TypeSpec:
					ids = append(ids, s.Name)
				case *ast.ValueSpec:
					ids = append(ids, s.Names...)
				}
			}
		}
	}
	return slices.DeleteFunc(ids, func(id *ast.Ident) bool { return !id.IsExported() })
}
