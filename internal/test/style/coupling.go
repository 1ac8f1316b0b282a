package style

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
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
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// direction orders the packages of the store, by their path below it: a package may name what a later one
// declares.
var direction = []string{
	"migrating", "migrating/perlimit", "codec/codectest", ".", "operator", "internal/layout",
	"internal/scheduler", "internal/known", "internal/audit", "internal/members", "internal/override",
	"internal/pace", "internal/wire",
	"internal/plan", "codec",
}

// apart are packages below the store that are none of its own: a client, and the checks of generated code.
// Their files are coupled with each other alone. Those pairs do not count.
var apart = []string{"lean", "codec/codectest"}

// listed is what `go list -json` prints about a package.
type listed struct {
	ImportPath, Dir, Export string
	GoFiles                 []string
	DepOnly                 bool
}

// source is a file of the store: its package's path below the store, and its base name.
type source struct{ folder, name string }

// pair is a file and one that declares what the file names.
type pair struct{ from, to source }

// Couplings returns the findings of Coupling about the packages in a folder below root, and the number of
// pairs.
//
// It compiles what the packages import, unless the build cache has it.
func (b Bounds) Couplings(ctx context.Context, root, folder string) ([]Finding, int, error) {
	packages, err := goList(ctx, filepath.Join(root, folder))
	if err != nil {
		return nil, 0, err
	}
	exports, top := map[string]string{}, ""
	for _, p := range packages {
		exports[p.ImportPath] = p.Export
		if !p.DepOnly && (top == "" || len(p.ImportPath) < len(top)) {
			top = p.ImportPath
		}
	}
	checker := coupler{fset: token.NewFileSet(), top: top, pairs: map[pair]mention{}}
	checker.imports = importer.ForCompiler(checker.fset, "gc", func(path string) (io.ReadCloser, error) {
		return os.Open(exports[path])
	})
	for _, p := range packages {
		if p.DepOnly {
			continue
		}
		if err := checker.add(p); err != nil {
			return nil, 0, err
		}
	}
	maps.DeleteFunc(checker.pairs, func(p pair, _ mention) bool {
		return p.from.folder == p.to.folder && slices.Contains(apart, p.from.folder)
	})
	found := checker.against(folder)
	if n := len(checker.pairs); n > b.Pairs {
		found = append(found, Finding{Coupling, folder, 0, fmt.Sprintf("%d pairs of files, at most %d", n,
			b.Pairs)})
	}
	return found, len(checker.pairs), nil
}

// goList lists the packages of the module at a folder, below it, and all that they import, with the files of
// their export data.
func goList(ctx context.Context, folder string) ([]listed, error) {
	cmd := exec.CommandContext(ctx, "go", "list", "-export", "-deps",
		"-json=ImportPath,Dir,Export,GoFiles,DepOnly", "./...")
	cmd.Dir = folder
	cmd.Env = append(os.Environ(), "GOWORK=off")
	var problems bytes.Buffer
	cmd.Stderr = &problems
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("go list in %s: %w: %s", folder, err, problems.Bytes())
	}
	var all []listed
	for d := json.NewDecoder(bytes.NewReader(out)); ; {
		var p listed
		if err := d.Decode(&p); errors.Is(err, io.EOF) {
			return all, nil
		} else if err != nil {
			return nil, err
		}
		all = append(all, p)
	}
}

// coupler collects pairs of files.
type coupler struct {
	fset    *token.FileSet
	imports types.Importer
	top     string // the import path of the store
	pairs   map[pair]mention
}

// mention is the first place where a pair's file names something of the other.
type mention struct {
	line int
	name string
}

// add collects the pairs of the files of one package.
func (c *coupler) add(p listed) error {
	var files []*ast.File
	for _, name := range p.GoFiles {
		f, err := parser.ParseFile(c.fset, filepath.Join(p.Dir, name), nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		files = append(files, f)
	}
	info := types.Info{Uses: map[*ast.Ident]types.Object{}}
	checked := types.Config{Importer: c.imports}
	if _, err := checked.Check(p.ImportPath, c.fset, files, &info); err != nil {
		return err
	}
	for id, obj := range info.Uses {
		if obj.Pkg() == nil || !shared(obj) {
			continue
		}
		place := c.fset.Position(id.Pos())
		from, ok := c.source(p.ImportPath, place.Filename)
		to, ok2 := c.source(obj.Pkg().Path(), c.fset.Position(obj.Pos()).Filename)
		if !ok || !ok2 || from == to {
			continue
		}
		if first, seen := c.pairs[pair{from, to}]; !seen || place.Line < first.line {
			c.pairs[pair{from, to}] = mention{place.Line, id.Name}
		}
	}
	return nil
}

// source returns a file of the store. It reports false for files of other packages.
func (c *coupler) source(importPath, filename string) (source, bool) {
	below, ok := strings.CutPrefix(importPath+"/", c.top+"/")
	return source{path.Clean(below), filepath.Base(filename)}, ok
}

// shared reports whether an object can be named in another file than its own.
func shared(obj types.Object) bool {
	switch o := obj.(type) {
	case *types.PkgName:
		return false
	case *types.Var:
		return o.IsField() || o.Parent() == o.Pkg().Scope()
	case *types.Func:
		return true
	default:
		return o.Parent() == o.Pkg().Scope()
	}
}

// against finds the pairs whose packages are not in the order of direction.
func (c *coupler) against(folder string) []Finding {
	var found []Finding
	for p, m := range c.pairs {
		from, to := slices.Index(direction, p.from.folder), slices.Index(direction, p.to.folder)
		var text string
		switch {
		case from < 0:
			text = "package " + p.from.folder + " has no place in direction, in internal/test/style"
		case from > to:
			text = fmt.Sprintf("%s of %s: package %s is not to know package %s", m.name, p.to.name, p.from.folder,
				p.to.folder)
		default:
			continue
		}
		found = append(found, Finding{Coupling, path.Join(folder, p.from.folder, p.from.name), m.line, text})
	}
	return found
}
