package docs_test

import (
	"io/fs"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
)

// TestMap holds the map of CONTRIBUTING to the folders that there are, both ways.
func TestMap(t *testing.T) {
	for _, wrong := range checkMap(t, os.DirFS("."), read(t, "CONTRIBUTING.md")) {
		t.Error(wrong)
	}
}

// TestMapControl has a folder too many, and maps without a folder or with one that is not there.
func TestMapControl(t *testing.T) {
	tree := fstest.MapFS{"a/a.go": {}, "b/c/c.go": {}, "b/c/testdata/x/x.go": {}, "d/readme.txt": {}}
	for text, want := range map[string]string{
		"| `a` | x |\n| `b/...`, `d` | x |": "",
		"| `a`, `b/c` | x |":                "",
		"| `a/...` | x |":                   "b/c has Go files, and is not in the map",
		"| `b` | x |\n| `a` | x |":          "b/c has Go files, and is not in the map",
		"| `a`, `b/...` | x |\n| `e` | x |": "the map has e, which is not there",
		"| `a`, `b/...` |\n`e`":             "",
	} {
		if got := strings.Join(checkMap(t, tree, text), "; "); got != want {
			t.Errorf("%s:\n%q, want %q", text, got, want)
		}
	}
}

var (
	mapRow = regexp.MustCompile("(?m)^\\| (`[^|]*`) \\|")
	mapped = regexp.MustCompile("`([^`]*)`")
)

// checkMap returns what is wrong with the map in a document: folders in its rows that are not in tree, and
// folders with Go files that are in no row. A row with a/... has all folders below a, too.
func checkMap(t *testing.T, tree fs.FS, text string) (wrong []string) {
	t.Helper()
	var folders []string
	for _, row := range mapRow.FindAllStringSubmatch(text, -1) {
		for _, m := range mapped.FindAllStringSubmatch(row[1], -1) {
			folders = append(folders, m[1])
			folder := strings.TrimSuffix(m[1], "/...")
			if info, err := fs.Stat(tree, folder); err != nil || !info.IsDir() {
				wrong = append(wrong, "the map has "+folder+", which is not there")
			}
		}
	}
	seen := map[string]bool{}
	err := fs.WalkDir(tree, ".", func(name string, entry fs.DirEntry, err error) error {
		base := path.Base(name)
		if err == nil && entry.IsDir() && (base == "testdata" || len(base) > 1 && base[0] == '.') {
			return fs.SkipDir
		}
		folder := path.Dir(name)
		if err != nil || path.Ext(name) != ".go" || folder == "." || seen[folder] {
			return err
		}
		seen[folder] = true
		covers := func(row string) bool {
			top, below := strings.CutSuffix(row, "/...")
			return row == folder || below && (folder == top || strings.HasPrefix(folder, top+"/"))
		}
		if !slices.ContainsFunc(folders, covers) {
			wrong = append(wrong, folder+" has Go files, and is not in the map")
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return wrong
}
