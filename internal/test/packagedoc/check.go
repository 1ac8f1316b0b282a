package packagedoc

import (
	"fmt"
	"go/ast"
	"go/doc"
	"go/doc/comment"
	"go/parser"
	"go/token"
	"slices"
	"strings"
)

// check returns the findings about a package.
func (p *pkg) check() []Finding {
	var found []Finding
	fail := func(rule, format string, args ...any) {
		found = append(found, Finding{rule, p.folder, fmt.Sprintf(format, args...)})
	}
	for _, fn := range p.functions {
		if n := p.lines(fn); n > mostExample {
			fail(Length, "%s has %d lines, at most %d", fn.Name.Name, n, mostExample)
		}
	}
	if p.doc == "" {
		fail(Undocumented, "a package has a doc")
		return found
	}
	within := strings.Count(p.paragraph(), Phrase)
	if all := strings.Count(strings.Join(strings.Fields(p.doc), " "), strings.TrimSpace(Phrase)); all != within {
		fail(Misplaced, "%q is not in the first paragraph", Phrase)
	}
	if !p.forUsers() {
		return found
	}
	first := new(doc.Package).Synopsis(p.doc)
	if rest := strings.TrimPrefix(p.paragraph(), first); rest != "" {
		fail(Sentence, "the first paragraph is one sentence, but goes on: %s", strings.TrimSpace(rest))
	}
	if !slices.ContainsFunc(p.examples, func(e *doc.Example) bool { return e.Output != "" }) {
		fail(Example, "no Example with output in package ..._test; if it is not for users, its doc's first "+
			"paragraph says %q and who imports it", Phrase)
	}
	found = append(found, p.checkCode()...)
	return found
}

// checkCode returns the findings about the code behind the first paragraph.
func (p *pkg) checkCode() []Finding {
	var parser comment.Parser
	var code *comment.Code
	if blocks := parser.Parse(p.doc).Content; len(blocks) > 1 {
		code, _ = blocks[1].(*comment.Code)
	}
	if code == nil {
		return []Finding{{Code, p.folder, "no code follows the first paragraph"}}
	}
	if n := len(trimmed(code.Text)); n < leastCode || n > mostCode {
		text := fmt.Sprintf("%d lines of code, want %d to %d", n, leastCode, mostCode)
		return []Finding{{Code, p.folder, text}}
	}
	if err := parses(code.Text); err != nil {
		return []Finding{{Syntax, p.folder, err.Error()}}
	}
	missing := ""
	for _, text := range p.texts {
		if missing = unquoted(code.Text, text); missing == "" {
			return nil
		}
	}
	if missing == "" { // the rule Example says that there is none
		return nil
	}
	return []Finding{{Quote, p.folder, "not in an Example's file, or not at this place: " + missing}}
}

// lines returns the number of lines that a node takes.
func (p *pkg) lines(n ast.Node) int {
	return p.fset.Position(n.End()).Line - p.fset.Position(n.Pos()).Line + 1
}

// parses returns why code is neither declarations nor statements.
func parses(code string) error {
	if _, err := parser.ParseFile(token.NewFileSet(), "doc", "package p\n"+code, 0); err == nil {
		return nil
	}
	_, err := parser.ParseFile(token.NewFileSet(), "doc", "package p; func _() {\n"+code+"\n}", 0)
	return err
}

// unquoted returns the first paragraph of code that a file does not have behind those before it, "" if it has
// all. A blank line of the code stands for any lines of the file.
func unquoted(code string, file []string) string {
	for paragraph := range strings.SplitSeq(code, "\n\n") {
		quoted := trimmed(paragraph)
		at := index(file, quoted)
		if at < 0 {
			return strings.Join(quoted, " / ")
		}
		file = file[at+len(quoted):]
	}
	return ""
}

// index returns where lines has all of part, one after the other, or -1.
func index(lines, part []string) int {
	for i := 0; i+len(part) <= len(lines); i++ {
		if slices.Equal(lines[i:i+len(part)], part) {
			return i
		}
	}
	return -1
}

// trimmed returns the lines of a text that are not blank, without blanks around them.
func trimmed(text string) []string {
	var lines []string
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line != "" {
			lines = append(lines, line)
		}
	}
	return lines
}
