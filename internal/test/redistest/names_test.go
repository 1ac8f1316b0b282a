package redistest_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// allRun are the folders whose tests all run on a server. `make test-redis` has the same expression, and
// runs those of other packages that have Redis in their name.
var allRun = regexp.MustCompile(`redis|/lua$`)

// unnamed returns the functions of a file of tests that ask for a Redis, and whose names do not say so.
func unnamed(name string, text any) (found []string, err error) {
	file, err := parser.ParseFile(token.NewFileSet(), name, text, parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	for _, d := range file.Decls {
		f, ok := d.(*ast.FuncDecl)
		if !ok || strings.Contains(f.Name.Name, "Redis") {
			continue
		}
		asks := false
		ast.Inspect(f, func(n ast.Node) bool {
			if s, ok := n.(*ast.SelectorExpr); ok && s.Sel.Name != "Main" {
				of, ok := s.X.(*ast.Ident)
				asks = asks || ok && of.Name == "redistest"
			}
			return true
		})
		if asks {
			found = append(found, f.Name.Name)
		}
	}
	return found, nil
}

// TestNamesSayRedis: `make test-redis` leaves out no test that asks for a Redis.
func TestNamesSayRedis(t *testing.T) {
	makefile, err := os.ReadFile("../../../Makefile")
	if err != nil || !strings.Contains(string(makefile), "-E '"+allRun.String()+"$'") {
		t.Errorf("the Makefile does not have the expression %s, %v", allRun, err)
	}
	files := 0
	err = filepath.WalkDir("../../..", func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && d.Name() == ".build":
			return fs.SkipDir
		}
		if !strings.HasSuffix(path, "_test.go") || allRun.MatchString(filepath.ToSlash(filepath.Dir(path))) {
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil || !strings.Contains(string(text), "/redistest\"") {
			return err
		}
		files++
		found, err := unnamed(path, text)
		for _, name := range found {
			t.Errorf("%s: %s asks for a Redis: put Redis in its name, or `make test-redis` leaves it out", path, name)
		}
		return err
	})
	if err != nil || files < 5 {
		t.Errorf("%d files ask for a Redis outside its own packages, %v: want 5 or more", files, err)
	}
}

// TestUnnamed: the check finds a test that does not say so, and a helper, and nothing else.
func TestUnnamed(t *testing.T) {
	found, err := unnamed("a_test.go", `package a
func TestMain(m *testing.M) { redistest.Main(m) }
func TestOnRedis(t *testing.T) { redistest.New(t) }
func TestPlain(t *testing.T) { other.New(t) }
func TestHidden(t *testing.T) { t.Run("x", func(t *testing.T) { redistest.StartServer(t) }) }
func helper(t *testing.T) *redistest.Redis { return nil }
`)
	if err != nil || !slices.Equal(found, []string{"TestHidden", "helper"}) {
		t.Errorf("%q, %v: want TestHidden and helper", found, err)
	}
}
