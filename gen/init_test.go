package gen

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestInit writes the starter files and generates from them.
func TestInit(t *testing.T) {
	for _, tc := range []struct{ name, dir, file, want string }{
		{"package of the folder", "svc", "package gateway\n", "gateway"},
		{"folder's name", "My-Svc2", "", "mysvc2"},
		{"no name in it", "123", "", "limits"},
		{"of a command", "main", "", "limits"},
		{"a keyword", "type", "", "limits"},
		{"ignored by go", "documentation", "", "limits"},
		{"excluded by a build constraint", "svc", "//go:build ignore\n\npackage gateway\n", "svc"},
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
			paths, err := Init(dir)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff([]string{filepath.Join(dir, "limits.yaml"), filepath.Join(dir, "sluice.go")},
				paths); diff != "" {
				t.Error(diff)
			}
			src, err := os.ReadFile(filepath.Join(dir, "sluice.go"))
			if want := "package " + tc.want + "\n\n//go:generate go tool sluice generate\n"; err != nil ||
				string(src) != want {
				t.Errorf("sluice.go is %q, want %q: %v", src, want, err)
			}
			generate(t, dir)
		})
	}
}

// TestInitOverwritesNothing: with one of the files there, neither is written.
func TestInitOverwritesNothing(t *testing.T) {
	for _, file := range []string{"limits.yaml", "sluice.go"} {
		dir := t.TempDir()
		path := filepath.Join(dir, file)
		if err := os.WriteFile(path, []byte("package mine\n"), 0o644); err != nil {
			t.Fatal(err)
		}
		before := tree(t, dir)
		if _, err := Init(dir); err == nil || !strings.HasPrefix(err.Error(), path+" is there already") {
			t.Errorf("Init returned %v", err)
		}
		if diff := cmp.Diff(before, tree(t, dir)); diff != "" {
			t.Errorf("something was written:\n%s", diff)
		}
	}
}
