package gen

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// row matches a row of testdata/golden/README.md: a tree, patterns of the files that it keeps, and what it
// proves.
var row = regexp.MustCompile("(?m)^\\| `(\\w+)` \\| (`[^|]+`) \\| [^|]+ \\|$")

// keeps returns the patterns of each tree.
func keeps(t *testing.T) map[string][]string {
	t.Helper()
	readme, err := os.ReadFile(filepath.Join("testdata", "golden", "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	patterns := map[string][]string{}
	for _, r := range row.FindAllStringSubmatch(string(readme), -1) {
		if patterns[r[1]] != nil {
			t.Errorf("the README has two rows of %s", r[1])
		}
		patterns[r[1]] = strings.Fields(strings.ReplaceAll(r[2], "`", ""))
	}
	return patterns
}

// split parts the files that match patterns from the others. The last pattern that matches a name decides:
// with a "!" it leaves the file out. A pattern that matches no name is an error.
func split(files map[string]string, patterns []string) (kept, others map[string]string, err error) {
	kept, others = map[string]string{}, maps.Clone(files)
	for _, p := range patterns {
		glob, out := strings.CutPrefix(p, "!")
		matched := false
		for name, text := range files {
			ok, err := path.Match(glob, name)
			switch {
			case err != nil:
				return nil, nil, fmt.Errorf("%q: %w", p, err)
			case !ok:
				continue
			case out:
				delete(kept, name)
				others[name] = text
			default:
				kept[name] = text
				delete(others, name)
			}
			matched = true
		}
		if !matched {
			return nil, nil, fmt.Errorf("%q matches no generated file", p)
		}
	}
	if len(kept) == 0 {
		return nil, nil, fmt.Errorf("%q keeps nothing", patterns)
	}
	return kept, others, nil
}

// copied returns a temporary folder with dir's limits.yaml, for which it has generated.
func copied(t *testing.T, dir string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(dir, "limits.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	work := t.TempDir()
	schemaAt(t, work, string(text))
	generate(t, work)
	return work
}

// output returns the files that dir's limits.yaml gives.
func output(t *testing.T, dir string) map[string]string {
	t.Helper()
	return tree(t, filepath.Join(copied(t, dir), "out"))
}

// differs returns how the files that a tree has differ from those of the generated ones that it keeps.
func differs(has, generated map[string]string, patterns []string) string {
	kept, _, err := split(generated, patterns)
	if err != nil {
		return err.Error()
	}
	return cmp.Diff(has, kept)
}

// vetAndTest vets packages and runs their tests. They have the files of their folders, and more, by folder
// and name.
func vetAndTest(t *testing.T, more map[string]map[string]string) (string, error) {
	t.Helper()
	work, replace, args := t.TempDir(), map[string]string{}, []string{"test", "-vet=all"}
	for _, dir := range slices.Sorted(maps.Keys(more)) {
		for name, text := range more[dir] {
			file := filepath.Join(work, fmt.Sprintf("%d-%s", len(args), name))
			if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
			replace[filepath.Join(dir, name)] = file
		}
		args = append(args, dir)
	}
	overlay, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(work, "overlay.json")
	if err := os.WriteFile(file, overlay, 0o644); err != nil {
		t.Fatal(err)
	}
	args = slices.Insert(args, 2, "-overlay="+file)
	out, err := exec.CommandContext(t.Context(), "go", args...).CombinedOutput()
	return string(out), err
}

// others returns the generated files that a tree does not keep.
func others(t *testing.T, name, dir string) map[string]string {
	t.Helper()
	_, rest, err := split(output(t, dir), keeps(t)[name])
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return rest
}

// TestOthers holds the names of the files that no tree keeps against others.txt.
func TestOthers(t *testing.T) {
	var names []string
	for name, dir := range cases(t, "golden") {
		for file := range others(t, name, dir) {
			names = append(names, path.Join(name, file))
		}
	}
	slices.Sort(names)
	got, file := strings.Join(names, "\n")+"\n", filepath.Join("testdata", "golden", "others.txt")
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("other files differ (-want +got), run go test ./gen -update if that is right:\n%s", diff)
	}
}

// TestGoldenCompiles vets all golden packages and runs the tests that were generated in them, with the files
// that no tree keeps.
func TestGoldenCompiles(t *testing.T) {
	if testing.Short() {
		t.Skip("runs the go command: not with -short")
	}
	more := map[string]map[string]string{}
	for name, dir := range cases(t, "golden") {
		more[filepath.Join(dir, "out")] = others(t, name, dir)
	}
	if out, err := vetAndTest(t, more); err != nil {
		t.Errorf("go test: %v\n%s", err, out)
	}
}

// TestSpoiltOthers: what is wrong with a file that no tree keeps is found.
func TestSpoiltOthers(t *testing.T) {
	if testing.Short() {
		t.Skip("runs the go command: not with -short")
	}
	more := map[string]map[string]string{}
	for name, spoilt := range map[string]struct{ file, with string }{
		"redis":        {"api.go", "func spoilt() int {}\n"},
		"regions":      {"localjobs.go", "func spoilt(n int) { n = n }\n"},
		"regions_many": {"api_test.go", "func TestSpoilt(t *testing.T) { t.Error() }\n"},
	} {
		dir := cases(t, "golden")[name]
		files := others(t, name, dir)
		if files[spoilt.file] == "" {
			t.Fatalf("%s keeps %s, or does not have it", name, spoilt.file)
		}
		files[spoilt.file] += spoilt.with
		more[filepath.Join(dir, "out")] = files
	}
	out, err := vetAndTest(t, more)
	if err == nil {
		t.Fatalf("nothing is wrong:\n%s", out)
	}
	for _, want := range []string{
		"api.go:", "missing return", "localjobs.go:", "self-assignment of n", "api_test.go:",
		"--- FAIL: TestSpoilt",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("go test does not say %q:\n%s", want, out)
		}
	}
}

// TestLongChains: a chain with more keys than are written out has no script, and Script says so.
func TestLongChains(t *testing.T) {
	src := output(t, cases(t, "golden")["both"])["many_redis.go"]
	const want = `
// chains have more than the 24 keys that are written out, and the store loops over them.
func (many) Script(chain int) string {
	if chain == 1 {
		return manyScript1
	}
	return ""
}
`
	if !strings.HasSuffix(src, want) || strings.Count(src, "\nconst ") != 1 {
		t.Errorf("of chains of 13 and 26 keys, not the first alone has a script, or Script does not end%s", want)
	}
}

// TestSpoiltTree: the files that a tree has are to be those that it keeps, as they are generated.
func TestSpoiltTree(t *testing.T) {
	generated := map[string]string{"a.go": "a, b\n", "a_test.go": "c\n", "README.md": "d\n"}
	patterns := []string{"a*", "!*_test.go"}
	for name, tc := range map[string]struct {
		has      map[string]string
		patterns []string
		want     string // of the difference; "" for none
	}{
		"as generated":      {map[string]string{"a.go": "a, b\n"}, patterns, ""},
		"a comma":           {map[string]string{"a.go": "a b\n"}, patterns, "a, b"},
		"missing":           {map[string]string{}, patterns, "a.go"},
		"not listed":        {map[string]string{"a.go": "a, b\n", "README.md": "d\n"}, patterns, "README.md"},
		"left out":          {map[string]string{"a.go": "a, b\n", "a_test.go": "c\n"}, patterns, "a_test.go"},
		"not generated":     {map[string]string{"a.go": "a, b\n", "b.go": "e\n"}, patterns, "b.go"},
		"matches nothing":   {map[string]string{"a.go": "a, b\n"}, []string{"a.go", "b.go"}, `"b.go" matches no`},
		"leaves nothing":    {map[string]string{}, []string{"a.go", "!*.go"}, "keeps nothing"},
		"no pattern at all": {map[string]string{}, nil, "keeps nothing"},
	} {
		diff := differs(tc.has, generated, tc.patterns)
		if (diff == "") != (tc.want == "") || !strings.Contains(diff, tc.want) {
			t.Errorf("%s: the difference is %q, want one with %q", name, diff, tc.want)
		}
	}
}
