package doccheck

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"
)

// World is what a document is held against.
type World struct {
	Root   string // the folder of the module, to which names of files are relative
	Schema string // the limits.yaml that a part of one is written into, relative to Root

	// Sluice runs a command line of sluice and returns its exit code. Variables that the shell exported are in
	// the environment.
	Sluice func(ctx context.Context, args []string, stdout, stderr io.Writer) int
	// Given brings about the states that a document names.
	Given map[string]func()
	// Real has pairs of a text in the document, such as a URL, and what it is here: commands run with the
	// second, and the first is shown.
	Real    []string
	Timeout time.Duration // for a command: 0 is a minute
	// Masked are parts of what is printed that are another every time: they are not compared.
	Masked []*regexp.Regexp
}

// Report is what was found in a document.
type Report struct {
	Wrong  []string       // what does not hold: file:line: what and how to fix it
	Kinds  map[string]int // how many blocks were held in which way
	NotRun []string       // file:line: the reason, for each block that is not held
	Fixed  string         // the document with what commands print now where it shows something else
}

// The ways in which blocks are held, as Report counts them.
const (
	quoted = "quoted"
	ran    = "run"
	built  = "built"
	valid  = "read"
	tested = "held by a test"
	unrun  = "not run"
)

// document is one that is being held against a world.
type document struct {
	World
	Report
	shell *shell
	given map[string]bool    // states that were brought about
	tests map[string]sources // of the module; nil until it is asked for

	printed map[int]*strings.Builder // by a block's line, what it would show
}

// Check holds the text of a document, which is in file, against w.
func Check(ctx context.Context, w World, file, text string) Report {
	d := &document{World: w, given: map[string]bool{}, printed: map[int]*strings.Builder{}}
	d.Kinds = map[string]int{}
	blocks, wrong := parse(file, text)
	d.Wrong = wrong
	var programs []block
	for _, b := range blocks {
		kind := d.kind(b)
		d.Kinds[kind]++
		switch reason, _ := b.marked(notRun); kind {
		case quoted:
			d.quote(b)
		case ran:
			d.run(ctx, b)
		case built:
			programs = append(programs, b)
		case valid:
			d.readYAML(b)
		case tested:
			name, _ := b.marked(heldBy)
			d.findTest(b, name)
			if found := d.tests[name]; found != nil && !found.about(file) {
				d.add(b, "%s is in no file that names this document: it cannot hold what it does not read", name)
			}
		case unrun:
			d.NotRun = append(d.NotRun, b.at()+": "+reason)
		default:
			d.add(b, "this block is held by nothing: mark it `<!-- from FILE -->`, `<!-- held by TestName -->` or "+
				"`<!-- not run: REASON -->`, or make it console, sh, go or yaml")
		}
	}
	d.build(ctx, programs)
	for i, line := range strings.Split(text, "\n") {
		for _, m := range namedTest.FindAllStringSubmatch(line, -1) {
			d.findTest(block{file: file, line: i + 1}, m[1])
		}
	}
	for state := range w.Given {
		if !d.given[state] {
			d.Wrong = append(d.Wrong, fmt.Sprintf("%s: no block is given %q: delete what brings it about", file,
				state))
		}
	}
	slices.Sort(d.Wrong)
	d.Fixed = d.fix(text)
	return d.Report
}

// fix writes the present output of commands into text. Blocks in lists are left as they are.
func (d *document) fix(text string) string {
	var fixed strings.Builder
	skip := false
	for i, line := range strings.SplitAfter(text, "\n") {
		if skip && strings.HasPrefix(line, "```") {
			skip = false
		}
		if !skip {
			fixed.WriteString(line)
		}
		if now := d.printed[i+1]; now != nil && strings.HasPrefix(line, "```") {
			fixed.WriteString(now.String())
			skip = true
		}
	}
	return fixed.String()
}

// kind says how b is held; "" if by nothing.
func (d *document) kind(b block) string {
	if reason, ok := b.marked(notRun); ok && reason != "" {
		return unrun
	}
	for verb, kind := range map[string]string{from: quoted, heldBy: tested} {
		if _, ok := b.marked(verb); ok {
			return kind
		}
	}
	switch {
	case b.console(), b.lang == "sh":
		return ran
	case b.lang == "go":
		return built
	case b.lang == "yaml":
		return valid
	}
	return ""
}

// add notes what is wrong with a block.
func (d *document) add(b block, format string, args ...any) {
	d.Wrong = append(d.Wrong, b.at()+": "+fmt.Sprintf(format, args...))
}

// sources are the files that have a test of some name.
type sources []string

// about says that one of them names a document.
func (s sources) about(document string) bool {
	return slices.ContainsFunc(s, func(text string) bool { return strings.Contains(text, document) })
}

// findTest looks for a test that b names.
func (d *document) findTest(b block, name string) {
	if d.tests == nil {
		d.tests = map[string]sources{}
		if err := filepath.WalkDir(d.Root, d.listTests); err != nil {
			d.add(b, "the tests cannot be listed: %v", err)
		}
	}
	if d.tests[name] == nil {
		d.add(b, "there is no test %s: name the one that holds this", name)
	}
}

// namedTest is a test in a document's text.
var namedTest = regexp.MustCompile("`(Test[A-Z]\\w*)")

var testFunc = regexp.MustCompile(`(?m)^func ((?:Test|Example)\w*)\(`)

// listTests notes the tests of a file. It is called for each file of the module.
func (d *document) listTests(path string, entry os.DirEntry, err error) error {
	name := entry.Name()
	switch {
	case err != nil:
		return err
	case entry.IsDir() && (name == "testdata" || strings.HasPrefix(name, ".") && path != d.Root):
		return filepath.SkipDir
	case entry.IsDir() || !strings.HasSuffix(name, "_test.go"):
		return nil
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	for _, m := range testFunc.FindAllSubmatch(text, -1) {
		d.tests[string(m[1])] = append(d.tests[string(m[1])], string(text))
	}
	return nil
}
