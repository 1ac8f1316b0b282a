package gen

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/aymanbagabas/go-udiff"
)

// The most lines that a change of the demo's limits.yaml may add to its generated package, and golden output
// in all.
const (
	mostForLimit    = 160
	mostForResource = 450
	mostGolden      = 18_000
)

// growth is what a change of a schema changes in the generated package, tests and EXPRESSIONS.md included.
type growth struct{ files, added, removed int }

// grown generates the demo, changes its limits.yaml, and returns the growth.
func grown(t *testing.T, replace ...string) growth {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "limits.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	schemaAt(t, dir, string(text))
	generate(t, dir)
	changed := strings.NewReplacer(append(replace, "revision: 1 ", "revision: 2 ")...).Replace(string(text))
	for i := 0; i < len(replace); i += 2 {
		if strings.Count(string(text), replace[i]) != 1 {
			t.Fatalf("limits.yaml does not have once %q", replace[i])
		}
	}
	r, err := Run(schemaAt(t, dir, changed))
	if err != nil {
		t.Fatal(err)
	}
	var g growth
	for _, f := range r.Changed() {
		g.files++
		for line := range strings.Lines(udiff.Unified("", "", string(f.Present), string(f.Data))) {
			switch {
			case strings.HasPrefix(line, "--- "), strings.HasPrefix(line, "+++ "):
			case line[0] == '+':
				g.added++
			case line[0] == '-':
				g.removed++
			}
		}
	}
	return g
}

// TestGrowth bounds the lines that reviewers of a small change read.
func TestGrowth(t *testing.T) {
	const daily = "      tpd: {doc: tokens per day, capacity: 1_000_000, every: 1d}\n"
	limit := grown(t, "burst: 15_000, every: 1m}\n", "burst: 15_000, every: 1m}\n"+daily)
	between := grown(t, "      tpm: {doc:", daily+"      tpm: {doc:") // the index of tpm changes too
	resource := grown(t, "  embeddings:\n", `  images:
    doc: Images, charged to projects only.
    limits:
      ipm: {doc: images per minute, capacity: 20, every: 1m, per_call: 1}
    entities: {project: {}}
    cascade: none
  embeddings:
`)
	number := grown(t, "capacity: 100, every: 1m", "capacity: 200, every: 1m")
	t.Logf("a limit: %+v; a limit before others: %+v; a resource: %+v; a number: %+v", limit, between, resource,
		number)
	if limit.added > mostForLimit {
		t.Errorf("a limit adds %d lines, more than %d", limit.added, mostForLimit)
	}
	if resource.added > mostForResource {
		t.Errorf("a resource adds %d lines, more than %d", resource.added, mostForResource)
	}
	if want := (growth{files: 3, added: 7, removed: 7}); number != want {
		t.Errorf("another number changes %+v, want %+v", number, want)
	}
}

// TestGoldenSize bounds golden output, and holds its README against the trees: each has one row, with the
// files that it keeps and its reason.
func TestGoldenSize(t *testing.T) {
	trees, patterns, lines := cases(t, "golden"), keeps(t), 0
	folders, err := filepath.Glob(filepath.Join("testdata", "golden", "*", "out"))
	if err != nil || len(folders) != len(trees) {
		t.Errorf("%d folders have an out, and %d a limits.yaml: %v", len(folders), len(trees), err)
	}
	for name := range patterns {
		if trees[name] == "" {
			t.Errorf("the README has a row of %s, which is no tree", name)
		}
	}
	for name, dir := range trees {
		if patterns[name] == nil {
			t.Errorf("the README has no row of %s", name)
		}
		of := 0
		for _, text := range tree(t, filepath.Join(dir, "out")) {
			of += strings.Count(text, "\n")
		}
		t.Logf("%s: %d lines", name, of)
		lines += of
	}
	t.Logf("%d lines in %d trees", lines, len(trees))
	if lines > mostGolden {
		t.Errorf("golden output has %d lines, more than %d", lines, mostGolden)
	}
}
