// Package docrow lets tests hold the figures that they print to those that a document shows.
package docrow

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sluice-go/sluice/internal/tool/gomod"
)

// Find returns the cells of the row of a document that begins with a test's name as code, as in |
// `TestName/subtest` | 1 |: those behind the name. It returns nil if the document, whose name is relative to
// the workspace's folder, has no such row.
func Find(t testing.TB, document, name string) []string {
	t.Helper()
	root, err := gomod.Workspace(".")
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(document)))
	if err != nil {
		t.Fatal(err)
	}
	return find(string(text), name)
}

func find(text, name string) []string {
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, "| `"+name+"`") {
			cells := strings.Split(strings.Trim(line, "|\n"), "|")[1:]
			for i := range cells {
				cells[i] = strings.TrimSpace(cells[i])
			}
			return cells
		}
	}
	return nil
}
