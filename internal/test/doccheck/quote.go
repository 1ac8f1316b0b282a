package doccheck

import (
	"go/build"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// quote finds b's lines in the file that it names.
func (d *document) quote(b block) {
	name, _ := b.marked(from)
	file := filepath.Join(d.Root, filepath.FromSlash(name))
	text, err := os.ReadFile(file)
	if err != nil {
		d.add(b, "it is quoted from %s, which cannot be read: %v", name, err)
		return
	}
	if part, ok := misquoted(b.text, string(text)); !ok {
		d.add(b, "%s does not have this, or not here:\n%s", name, part)
	}
	if strings.HasSuffix(name, ".go") && !builds(file) {
		d.add(b, "Go does not build %s: quote from a file that it does", name)
	}
}

// builds says that Go builds a file, as a program's or as a test's.
func builds(file string) bool {
	pkg, err := build.Default.ImportDir(filepath.Dir(file), 0)
	return err == nil && !strings.Contains(filepath.ToSlash(file), "/testdata/") &&
		slices.Contains(slices.Concat(pkg.GoFiles, pkg.CgoFiles, pkg.TestGoFiles, pkg.XTestGoFiles),
			filepath.Base(file))
}

// misquoted returns the first part of block that text does not have. ok says that it has all of some. A line
// `# ...` or `// ...` stands for lines left out. Indentation does not count, and lines do as a whole.
func misquoted(block, text string) (missing string, ok bool) {
	rest := "\n" + flush(text) + "\n"
	for part := range strings.SplitSeq(strings.ReplaceAll(flush(block), "\n// ...\n", "\n# ...\n"),
		"\n# ...\n") {
		part = strings.Trim(part, "\n")
		if part == "" {
			continue
		}
		_, after, found := strings.Cut(rest, "\n"+part+"\n")
		if !found {
			return part, false
		}
		rest, ok = "\n"+after, true
	}
	return "", ok
}

// flush takes the indentation from every line.
func flush(text string) string {
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		lines[i] = strings.TrimSpace(line)
	}
	return strings.Join(lines, "\n")
}
