package gen

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestInit writes the starter files and generates from them.
func TestInit(t *testing.T) {
	for _, tc := range []struct{ name, dir, file, want, owner string }{
		{"package of the folder", "svc", "package gateway\n", "gateway", "svc"},
		{"folder's name", "My-Svc2", "", "mysvc2", "my-svc2"},
		{"no name in it", "123", "", "limits", "123"},
		{"of a command", "main", "", "limits", "main"},
		{"a keyword", "type", "", "limits", "type"},
		{"ignored by go", "documentation", "", "limits", "documentation"},
		{"excluded by a build constraint", "svc", "//go:build ignore\n\npackage gateway\n", "svc", "svc"},
		{"no letter in it", "..§", "", "limits", "limits"},
		{"a long name", strings.Repeat("a", 100), "", strings.Repeat("a", 100), strings.Repeat("a", 64)},
	} {
		t.Run(tc.name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), tc.dir)
			if err := os.Mkdir(dir, 0o755); err != nil {
				t.Fatal(err)
			}
			if tc.file != "" {
				if err := os.WriteFile(filepath.Join(dir, "main.go"), []byte(tc.file), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			paths, err := Init(dir, "sluice generate")
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff([]string{filepath.Join(dir, "limits.yaml"), filepath.Join(dir, "sluice.go")},
				paths); diff != "" {
				t.Error(diff)
			}
			src, err := os.ReadFile(filepath.Join(dir, "sluice.go"))
			if want := "package " + tc.want + "\n\n//go:generate sluice generate\n"; err != nil ||
				string(src) != want {
				t.Errorf("sluice.go is %q, want %q: %v", src, want, err)
			}
			schema, err := os.ReadFile(filepath.Join(dir, "limits.yaml"))
			if want := fmt.Sprintf("\n%-32s # who owns", `owner: "`+tc.owner+`"`); err != nil ||
				!strings.Contains(string(schema), want) {
				t.Errorf("want owner %s: %v\n%s", tc.owner, err, schema)
			}
			generate(t, dir)
		})
	}
}

// TestInitOwner: the schemas of one module have owners of their own.
func TestInitOwner(t *testing.T) {
	root := filepath.Join(t.TempDir(), "Shop")
	dir := filepath.Join(root, "services", "cart_api")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(root, "go.mod"), []byte("module shop.test\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	for in, want := range map[string]string{root: "shop", dir: "shop/services/cart_api"} {
		if got, err := ownerOf(in); got != want || err != nil {
			t.Errorf("%s: %q, %v; want %q", in, got, err, want)
		}
	}
}

// TestInitRestores: beside a limits.yaml, the file with the go:generate line is written alone.
func TestInitRestores(t *testing.T) {
	dir := t.TempDir()
	want, err := Init(dir, "sluice generate")
	if err != nil {
		t.Fatal(err)
	}
	before := tree(t, dir)
	schema := []byte("# mine\n")
	if err := os.WriteFile(want[0], schema, 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(want[1]); err != nil {
		t.Fatal(err)
	}
	paths, err := Init(dir, "sluice generate")
	if err != nil || len(paths) != 1 || paths[0] != want[1] {
		t.Errorf("wrote %q, %v; want %s", paths, err, want[1])
	}
	after := tree(t, dir)
	got, err := os.ReadFile(want[0])
	if err != nil || string(got) != string(schema) || len(after) != len(before) {
		t.Errorf("limits.yaml is %q, %v; %d files, want %d", got, err, len(after), len(before))
	}
}

// TestInitOverwritesNothing: with a sluice.go there, alone or beside a limits.yaml, nothing is written.
func TestInitOverwritesNothing(t *testing.T) {
	for _, file := range []string{"limits.yaml", "sluice.go"} {
		dir := t.TempDir()
		path := filepath.Join(dir, file)
		if err := os.WriteFile(path, []byte("package mine\n"), 0o644); err != nil {
			t.Fatal(err)
		}
		before := tree(t, dir)
		if file == "limits.yaml" { // with both, neither
			other := filepath.Join(dir, "sluice.go")
			if err := os.WriteFile(other, []byte("package mine\n"), 0o644); err != nil {
				t.Fatal(err)
			}
			before = tree(t, dir)
		}
		_, err := Init(dir, "sluice generate")
		if err == nil || !strings.HasPrefix(err.Error(), path+" is there already") {
			t.Errorf("Init returned %v", err)
		}
		if diff := cmp.Diff(before, tree(t, dir)); diff != "" {
			t.Errorf("something was written:\n%s", diff)
		}
	}
}
