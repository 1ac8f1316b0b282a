package gen

import (
	"bytes"
	"errors"
	"flag"
	"go/format"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "rewrite the golden files in testdata")

// cases returns the folders in testdata/kind, by name.
func cases(t *testing.T, kind string) map[string]string {
	t.Helper()
	schemas, err := filepath.Glob(filepath.Join("testdata", kind, "*", "limits.yaml"))
	if err != nil || len(schemas) == 0 {
		t.Fatalf("no cases in testdata/%s: %v", kind, err)
	}
	dirs := make(map[string]string, len(schemas))
	for _, s := range schemas {
		dir, err := filepath.Abs(filepath.Dir(s))
		if err != nil {
			t.Fatal(err)
		}
		dirs[filepath.Base(dir)] = dir
	}
	return dirs
}

// tree returns the files below dir, by path. A folder that is not there has none.
func tree(t *testing.T, dir string) map[string]string {
	t.Helper()
	files := make(map[string]string)
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) && path == dir {
			return nil
		}
		if err != nil || e.IsDir() {
			return err
		}
		data, err := os.ReadFile(path)
		rel, _ := filepath.Rel(dir, path)
		files[filepath.ToSlash(rel)] = string(data)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// goFiles returns the Go files below dir, by path.
func goFiles(t *testing.T, dir string) map[string]string {
	t.Helper()
	files := tree(t, dir)
	maps.DeleteFunc(files, func(path, _ string) bool { return filepath.Ext(path) != ".go" })
	return files
}

// generate runs the generator on dir's limits.yaml and writes.
func generate(t *testing.T, dir string) {
	t.Helper()
	r, err := Run(Config{Schema: filepath.Join(dir, "limits.yaml")})
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Write(); err != nil {
		t.Fatal(err)
	}
}

// TestGolden holds what each testdata/golden/<case>/limits.yaml gives against its out, byte for byte, as far
// as the tree keeps it.
func TestGolden(t *testing.T) {
	patterns := keeps(t)
	for name, dir := range cases(t, "golden") {
		t.Run(name, func(t *testing.T) {
			out, work := filepath.Join(dir, "out"), copied(t, dir)
			got := tree(t, filepath.Join(work, "out"))
			if *update {
				keep(t, out, got, patterns[name])
			}
			if diff := differs(tree(t, out), got, patterns[name]); diff != "" {
				t.Errorf("output differs (-want +got), run go test ./gen -update if that is right:\n%s", diff)
			}
			for file, src := range got {
				if filepath.Ext(file) == ".go" {
					formatted(t, file, src)
				}
			}
			again, err := Run(Config{Schema: filepath.Join(work, "limits.yaml")})
			if err != nil {
				t.Fatal(err)
			}
			if diff := again.Diff(); diff != "" {
				t.Errorf("a second run gives something else:\n%s", diff)
			}
		})
	}
}

// keep writes the files that match patterns to out, and removes what lies there.
func keep(t *testing.T, out string, files map[string]string, patterns []string) {
	t.Helper()
	kept, _, err := split(files, patterns)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll(out); err != nil {
		t.Fatal(err)
	}
	for name, text := range kept {
		write(t, filepath.Join(out, name), text)
	}
}

// formatted fails the test if a Go file is not as gofmt has it, has block comments or long lines.
func formatted(t *testing.T, file, src string) {
	t.Helper()
	formatted, err := format.Source([]byte(src))
	if err != nil || !bytes.Equal(formatted, []byte(src)) {
		t.Errorf("%s is not as gofmt has it: %v", file, err)
	}
	if strings.Contains(src, "/*") {
		t.Errorf("%s has a block comment", file)
	}
	for line := range strings.Lines(src) {
		if len(line) > 121 {
			t.Errorf("%s has a line of %d columns: %s", file, len(line)-1, line)
		}
	}
}

// TestBad holds what is reported for each testdata/bad/<case>/limits.yaml against its stderr.txt, and that
// nothing is written then. A case may have an out folder, as an earlier run left it.
func TestBad(t *testing.T) {
	for name, dir := range cases(t, "bad") {
		t.Run(name, func(t *testing.T) {
			work := t.TempDir()
			if err := os.CopyFS(work, os.DirFS(dir)); err != nil {
				t.Fatal(err)
			}
			before := tree(t, work)
			t.Chdir(work)
			_, err := Run(Config{Schema: "limits.yaml"})
			if _, ok := errors.AsType[Problems](err); !ok {
				t.Fatalf("Run returned %v, want Problems", err)
			}
			got := err.Error() + "\n"
			golden := filepath.Join(dir, "stderr.txt")
			if *update {
				if err := os.WriteFile(golden, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), got); diff != "" {
				t.Errorf("problems differ (-want +got), run go test ./gen -update if that is right:\n%s", diff)
			}
			if diff := cmp.Diff(before, tree(t, work)); diff != "" {
				t.Errorf("something was written:\n%s", diff)
			}
		})
	}
}

// TestMistakes runs the whole command on each schema of package schema's tests, most of which have mistakes.
// The checks after package schema take a schema that is not complete.
func TestMistakes(t *testing.T) {
	wrong := 0
	for name, dir := range cases(t, filepath.Join("..", "internal", "schema", "testdata")) {
		_, problems, err := read(filepath.Join(dir, "limits.yaml"))
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if len(problems) > 0 {
			wrong++
		}
	}
	if wrong < 100 {
		t.Errorf("%d schemas have mistakes, want at least 100", wrong)
	}
}
