// Package packagedoc checks how packages present themselves to their users: a sentence, some lines of code
// that an Example runs, and the Example. A package that is not for users says so in its first paragraph.
package packagedoc

import (
	"bytes"
	"errors"
	"go/ast"
	"go/doc"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Phrase is in the first paragraph of packages that are not for users. The rest of its sentence says who
// imports them.
const Phrase = "Not for import: "

// Rules, by the name that findings have for them.
const (
	Undocumented = "undocumented" // a package has a doc
	Misplaced    = "misplaced"    // Phrase is in the first paragraph, and nowhere else
	Sentence     = "sentence"     // a doc for users begins with one sentence
	Code         = "code"         // behind it are 4 to 15 lines of code
	Syntax       = "syntax"       // they are statements or declarations of Go
	Quote        = "quote"        // they are lines of an Example's file
	Example      = "example"      // a package for users has an Example with output, in a test package beside it
	Length       = "length"       // an Example has at most 40 lines
)

// Rules lists all rules.
var Rules = []string{Undocumented, Misplaced, Sentence, Code, Syntax, Quote, Example, Length}

const (
	leastCode, mostCode = 4, 15
	mostExample         = 40
)

// Finding is one violation of a rule.
type Finding struct {
	Rule   string
	Folder string // relative to the root, with slashes
	Text   string
}

// String returns the finding in a line.
func (f Finding) String() string { return f.Folder + ": " + f.Rule + ": " + f.Text }

// Check returns the findings about the packages below a folder, in all modules, and the folders of those for
// users. It leaves out folders that nobody else can import, commands, and packages that are generated.
func Check(root string) (found []Finding, users []string, err error) {
	packages, err := load(root)
	if err != nil {
		return nil, nil, err
	}
	for _, p := range packages {
		switch {
		case p.files == 0 || p.main || p.generated:
			continue
		case p.forUsers():
			users = append(users, p.folder)
		}
		found = append(found, p.check()...)
	}
	return found, users, nil
}

// pkg is a package's folder.
type pkg struct {
	folder          string
	fset            *token.FileSet
	files           int // without tests
	examples        []*doc.Example
	functions       []*ast.FuncDecl // of the examples
	texts           [][]string      // the lines of each file that has an Example, without blanks around them
	doc             string
	main, generated bool
}

// load parses the packages below a folder, in the order of their folders.
func load(root string) ([]*pkg, error) {
	var packages []*pkg
	err := filepath.WalkDir(root, func(p string, d fs.DirEntry, err error) error {
		if err != nil || !d.IsDir() {
			return err
		}
		if p != root && (d.Name() == "testdata" || d.Name() == "internal" || strings.HasPrefix(d.Name(), ".")) {
			return filepath.SkipDir
		}
		rel, err := filepath.Rel(root, p)
		if err != nil {
			return err
		}
		one := &pkg{folder: filepath.ToSlash(rel), fset: token.NewFileSet(), generated: true}
		packages = append(packages, one)
		return one.read(p)
	})
	return packages, err
}

// read parses the files of a folder.
func (p *pkg) read(dir string) error {
	names, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		return err
	}
	slices.Sort(names)
	var failed []error
	for _, name := range names {
		failed = append(failed, p.add(name))
	}
	return errors.Join(failed...)
}

// add reads one file: of tests the Examples, else what comes before the package's name.
func (p *pkg) add(name string) error {
	text, err := os.ReadFile(name)
	if err != nil {
		return err
	}
	if strings.HasSuffix(name, "_test.go") {
		return p.addTest(name, text)
	}
	f, err := parser.ParseFile(p.fset, name, text, parser.ParseComments|parser.PackageClauseOnly)
	if err != nil {
		return err
	}
	p.files++
	p.doc += f.Doc.Text()
	p.main = p.main || f.Name.Name == "main"
	p.generated = p.generated && ast.IsGenerated(f)
	return nil
}

// addTest keeps the Examples of a file of tests. Those in a package of their own see what users see; others
// do not count.
func (p *pkg) addTest(name string, text []byte) error {
	if !bytes.Contains(text, []byte("\nfunc Example")) {
		return nil
	}
	f, err := parser.ParseFile(p.fset, name, text, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil || !strings.HasSuffix(f.Name.Name, "_test") {
		return err
	}
	examples := doc.Examples(f)
	p.examples = append(p.examples, examples...)
	for _, decl := range f.Decls {
		if fn, ok := decl.(*ast.FuncDecl); ok && strings.HasPrefix(fn.Name.Name, "Example") {
			p.functions = append(p.functions, fn)
		}
	}
	p.texts = append(p.texts, trimmed(string(text)))
	return nil
}

// forUsers reports whether nothing says that a package is not for import.
func (p *pkg) forUsers() bool { return !strings.Contains(p.paragraph(), Phrase) }

// paragraph returns the first paragraph of the doc, in a line.
func (p *pkg) paragraph() string {
	first, _, _ := strings.Cut(p.doc, "\n\n")
	return strings.Join(strings.Fields(first), " ")
}
