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
	if part := misquoted(b.text, string(text)); part != "" {
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
		slices.Contains(slices.Concat(pkg.GoFiles, pkg.CgoFiles, pkg.TestGoFiles, pkg.XTestGoFiles), filepath.Base(file))
}

// misquoted returns the first part of block that text does not have, or nothing. A line `# ...` or `// ...` stands for
// lines left out. Indentation does not count.
func misquoted(block, text string) string {
	rest := flush(text)
	for part := range strings.SplitSeq(strings.ReplaceAll(flush(block), "\n// ...\n", "\n# ...\n"), "\n# ...\n") {
		part = strings.Trim(part, "\n")
		_, after, found := strings.Cut(rest, part)
		if !found {
			return part
		}
		rest = after
	}
	return ""
}

// flush takes the indentation from every line.
func flush(text string) string {
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		lines[i] = strings.TrimSpace(line)
	}
	return strings.Join(lines, "\n")
}
