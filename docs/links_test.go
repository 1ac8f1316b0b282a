package docs_test

import (
	"fmt"
	"io/fs"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"unicode"
)

// TestLinks holds citations in Go files, and relative links in documents, to files and headings that exist.
func TestLinks(t *testing.T) {
	found, wrong := checkLinks(t, os.DirFS("."))
	for _, w := range wrong {
		t.Error(w)
	}
	for kind, least := range map[string]int{"citation": 10, "link": 40} {
		if found[kind] < least {
			t.Errorf("%d of kind %s, want %d at least: is all of it read?", found[kind], kind, least)
		}
	}
}

// TestLinksControl breaks a link and a citation in each way.
func TestLinksControl(t *testing.T) {
	const design = "# Guards\n\n## The `op`, twice\n## Twice\n## Twice\n```sh\n# none [nor link](x.md)\n```\n"
	const byNumber = `x/x.go:2: cite a heading, as in docs/design.md, "Guards": `
	for _, c := range []struct{ file, text, wrong string }{
		{"README.md", "[a](docs/design.md) [b](docs/design.md#the-op-twice) [c](docs) [d](#top)", ""},
		{"README.md", "[e](https://x.y/z#w)", ""},
		{"README.md", "[a](docs/design.md#twice) [b](docs/design.md#twice-1)", ""},
		{"README.md", "[a](docs/design.md#twice-2)", "README.md:2: docs/design.md has no heading #twice-2"},
		{"README.md", "[a](docs/design.md#none)", "README.md:2: docs/design.md has no heading #none"},
		{"README.md", "[a](design.md)", "README.md:2: there is no design.md"},
		{"README.md", "![a](chart.svg)", "README.md:2: there is no chart.svg"},
		{"README.md", "[a](#nowhere)", "README.md:2: README.md has no heading #nowhere"},
		{"docs/a/b.md", "[a](../design.md#guards) [b](../../x)", "docs/a/b.md:2: there is no x"},
		{"x/x.go", `// See docs/design.md, "Guards".`, ""},
		{"x/x.go", "// See docs/design.md,\n// \"The op, twice\"", ""},
		{"x/x.go", `// See docs/design.md, "Gards".`, `x/x.go:2: docs/design.md has no heading "Gards"`},
		{"x/x.go", `// See docs/old.md, "Guards".`, "x/x.go:2: there is no docs/old.md"},
		{"x/x.go", "// See docs/old.md for more.", "x/x.go:2: there is no docs/old.md"},
		{"x/x.go", "// See design section 4.", byNumber + "design section 4"},
		{"x/x.go", "// See design.md,\n// section 4, or more.", byNumber + "design.md, section 4"},
		{"x/testdata/x.go", `// See docs/old.md, "Guards".`, ""},
	} {
		tree := fstest.MapFS{
			"docs/design.md":  {Data: []byte(design)},
			"README.md":       {Data: []byte("# Top\n")},
			"CONTRIBUTING.md": {},
		}
		tree[c.file] = &fstest.MapFile{Data: []byte("# Top\n" + c.text)}
		_, wrong := checkLinks(t, tree)
		if got := strings.Join(wrong, "; "); got != c.wrong {
			t.Errorf("%s:\n%s\n%q, want %q", c.file, c.text, got, c.wrong)
		}
	}
}

var (
	// citation is of a document, by a heading or as a whole.
	citation = regexp.MustCompile(`\bdocs/[a-z0-9/-]+\.md(?:,\s*(?://)?\s*"([^"]*)")?`)
	numbered = regexp.MustCompile(`(?i)\bdesign(\.md)?,?\s*(//)?\s*sections? [0-9]`)
	link     = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	heading  = regexp.MustCompile(`(?m)^#+ +(.*?) *$`)
	fenced   = regexp.MustCompile("(?ms)^ *```.*?^ *```$")
	code     = regexp.MustCompile("`[^`\n]*`")
	wrapped  = regexp.MustCompile(`\s*//\s*`)
)

// checkLinks returns how many citations and links tree has, and what is wrong with them. Fenced blocks have
// no links, and testdata is left out.
func checkLinks(t *testing.T, tree fs.FS) (found map[string]int, wrong []string) {
	t.Helper()
	found = map[string]int{}
	err := fs.WalkDir(tree, ".", func(name string, entry fs.DirEntry, err error) error {
		switch base := path.Base(name); {
		case err != nil:
			return err
		case entry.IsDir() && (base == "testdata" || len(base) > 1 && base[0] == '.'):
			return fs.SkipDir
		case entry.IsDir(), path.Ext(name) != ".go" && path.Ext(name) != ".md":
			return nil
		}
		text, err := fs.ReadFile(tree, name)
		if err != nil {
			return err
		}
		switch {
		case path.Ext(name) == ".go" && name != "docs/links_test.go":
			n, bad := checkCitations(tree, name, string(text))
			found["citation"], wrong = found["citation"]+n, append(wrong, bad...)
		case name == "README.md", name == "CONTRIBUTING.md", path.Ext(name) == ".md" && path.Dir(name) != ".":
			n, bad := checkDocument(tree, name, string(text))
			found["link"], wrong = found["link"]+n, append(wrong, bad...)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return found, wrong
}

// checkCitations checks those of a Go file. It returns how many name a heading.
func checkCitations(tree fs.FS, name, text string) (n int, wrong []string) {
	at := func(i int) string { return fmt.Sprintf("%s:%d: ", name, 1+strings.Count(text[:i], "\n")) }
	for _, m := range numbered.FindAllStringIndex(text, -1) { // sections have no numbers
		cited := wrapped.ReplaceAllString(text[m[0]:m[1]], " ")
		wrong = append(wrong, at(m[0])+`cite a heading, as in docs/design.md, "Guards": `+cited)
	}
	for _, m := range citation.FindAllStringSubmatchIndex(text, -1) {
		whole := text[m[0]:m[1]]
		file, _, _ := strings.Cut(whole, ",")
		headings, ok := headingsOf(tree, file)
		switch {
		case !ok:
			wrong = append(wrong, at(m[0])+"there is no "+file)
		case m[2] >= 0:
			n++
			if cited := wrapped.ReplaceAllString(text[m[2]:m[3]], " "); !slices.Contains(headings, cited) {
				wrong = append(wrong, fmt.Sprintf("%s%s has no heading %q", at(m[0]), file, cited))
			}
		}
	}
	return n, wrong
}

// checkDocument checks the relative links of a document, and returns how many there are.
func checkDocument(tree fs.FS, name, text string) (n int, wrong []string) {
	blank := func(block string) string { return strings.Repeat("\n", strings.Count(block, "\n")) }
	text = code.ReplaceAllString(fenced.ReplaceAllStringFunc(text, blank), "``")
	for _, m := range link.FindAllStringSubmatchIndex(text, -1) {
		target, anchor, anchored := strings.Cut(text[m[2]:m[3]], "#")
		if strings.Contains(target, ":") { // another site's
			continue
		}
		n++
		at := fmt.Sprintf("%s:%d: ", name, 1+strings.Count(text[:m[0]], "\n"))
		file := name
		if target != "" {
			file = path.Join(path.Dir(name), target)
		}
		if _, err := fs.Stat(tree, file); err != nil {
			wrong = append(wrong, at+"there is no "+file)
			continue
		}
		if !anchored {
			continue
		}
		if headings, _ := headingsOf(tree, file); !slices.Contains(anchors(headings), anchor) {
			wrong = append(wrong, fmt.Sprintf("%s%s has no heading #%s", at, file, anchor))
		}
	}
	return n, wrong
}

// headingsOf returns the headings of a document without the marks of code. ok is false if there is no file.
func headingsOf(tree fs.FS, file string) (headings []string, ok bool) {
	text, err := fs.ReadFile(tree, file)
	if err != nil {
		return nil, false
	}
	for _, m := range heading.FindAllStringSubmatch(fenced.ReplaceAllString(string(text), ""), -1) {
		headings = append(headings, strings.ReplaceAll(m[1], "`", ""))
	}
	return headings, true
}

// anchors returns the names under which forges show headings: in small letters, with a dash for each space.
// Only letters, digits, dashes and underscores are left. A heading that occurs again has a number.
func anchors(headings []string) []string {
	var all []string
	times := map[string]int{}
	for _, h := range headings {
		anchor := strings.Map(func(c rune) rune {
			switch {
			case c == ' ':
				return '-'
			case c == '-', c == '_', unicode.IsLetter(c), unicode.IsDigit(c):
				return unicode.ToLower(c)
			}
			return -1
		}, h)
		if n := times[anchor]; n > 0 {
			all = append(all, fmt.Sprintf("%s-%d", anchor, n))
		} else {
			all = append(all, anchor)
		}
		times[anchor]++
	}
	return all
}
