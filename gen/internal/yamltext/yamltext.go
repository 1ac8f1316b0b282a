// Package yamltext finds the place and the cause of a YAML syntax error, which yaml.v3 reports in terms of
// its scanner.
package yamltext

import (
	"bytes"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"
)

// Error is a syntax error.
type Error struct {
	Line, Column int
	Alias        string // the name of an alias that no anchor defines; "" for another error
	Why          string // in words, with a cure where the text shows one; "" for an alias
}

// Explain returns what err, which yaml.v3 returned for src, is about.
func Explain(src []byte, err error) Error {
	text := strings.TrimPrefix(err.Error(), "yaml: ")
	if m := regexp.MustCompile(`^unknown anchor '(.*)' referenced$`).FindStringSubmatch(text); m != nil {
		line, col := aliasPlace(src, m[1])
		return Error{Line: line, Column: col, Alias: m[1]}
	}
	line := 1
	if m := regexp.MustCompile(`^line ([0-9]+): `).FindStringSubmatch(text); m != nil {
		if n, err := strconv.Atoi(m[1]); err == nil {
			line, text = n, strings.TrimPrefix(text, m[0])
		}
		if fromParser(text) {
			line = min(line+1, 1+bytes.Count(bytes.TrimSpace(src), []byte("\n")))
		}
	}
	lines := strings.Split(string(src), "\n")
	line, col, why := explain(lines, line, strings.ReplaceAll(text, "\n", " "))
	return Error{Line: line, Column: col, Why: why}
}

// fromParser reports whether an error is of yaml.v3's parser, which counts lines from 0. Its scanner counts
// from 1.
func fromParser(text string) bool {
	switch strings.TrimPrefix(text, "did not find expected ") {
	case "node content", "key", "'-' indicator", "',' or ']'", "',' or '}'", "<document start>":
		return true
	}
	return false
}

// explain returns the position of a syntax error and its cure, as far as the lines show them. text is the
// message of yaml.v3, in terms of its scanner; explain returns it if it finds nothing better.
func explain(lines []string, line int, text string) (int, int, string) {
	conflict := regexp.MustCompile(`^(<<<<<<<|=======|>>>>>>>)( |\r?$)`)
	for i, l := range lines {
		if conflict.MatchString(l) {
			return i + 1, 1, "a merge conflict: resolve it first"
		}
	}
	at := func(n int, form string) (col int, found bool) {
		if n < 1 || n > len(lines) {
			return 0, false
		}
		m := regexp.MustCompile(form).FindStringSubmatchIndex(lines[n-1])
		if m == nil {
			return 0, false
		}
		return 1 + utf8.RuneCountInString(lines[n-1][:m[2]]), true
	}
	const tabbed, unspaced = `^ *(\t)`, `(?:^|[{,])\s*[A-Za-z0-9][A-Za-z0-9._-]*(:)[^\s/]`
	if col, found := at(line, tabbed); found {
		return line, col, "a tab: indent with spaces"
	}
	if strings.Contains(text, "tab character") {
		if col, found := at(line+1, tabbed); found {
			return line + 1, col, "a tab: indent with spaces"
		}
	}
	if col, found := at(line, `^(%)`); found {
		return line, col, "a directive: remove the % line"
	}
	if strings.Contains(text, "cannot start any token") {
		if col, found := at(line, "(?:^|[-:,\\[{])\\s*([@`%])"); found {
			return line, col, "a value cannot start with " + string([]rune(lines[line-1])[col-1]) + ": quote it"
		}
	}
	for _, n := range []int{line, line - 1} { // yaml.v3 takes the key for text, and fails in the next line
		if col, found := at(n, unspaced); found {
			return n, col, "there is no blank after ':': write one, as in capacity: 10"
		}
	}
	return line, 1, text + syntaxCure(text)
}

// syntaxCure returns the cure for the common messages of yaml.v3, by their ends.
func syntaxCure(text string) string {
	for _, c := range []struct{ end, cure string }{
		{
			"mapping values are not allowed in this context",
			"quote text that has ': ' in it, and indent keys like their neighbours",
		},
		{"could not find expected ':'", "write ': ' after a key, and quote text of several lines"},
		{"did not find expected ',' or '}'", "close the {, or put a ',' before this"},
		{"did not find expected ',' or ']'", "close the [, or put a ',' before this"},
		{"did not find expected key", "indent keys like their neighbours"},
		{"did not find expected node content", "write a value here, or remove the bracket or comma"},
		{"did not find expected '-' indicator", "indent the items of a list alike"},
		{"did not find expected alphabetic or numeric character", "quote text that starts with * or &"},
		{"block sequence entries are not allowed in this context", "start the list on a line of its own"},
		{"found unexpected end of stream", "close the quotes"},
		{"found unknown escape character", `write \\ for a backslash, or use single quotes`},
		{"did not find expected comment or line break", "start the text on the next line"},
	} {
		if strings.HasSuffix(text, c.end) {
			return ": " + c.cure
		}
	}
	return ""
}

// aliasPlace returns the position of the first alias that no anchor defines, as yaml.v3 has none. With the
// anchor put on top, the file nearly always parses, and so shows which of the similar texts is the alias.
func aliasPlace(src []byte, name string) (line, col int) {
	var doc yaml.Node
	if err := yaml.Unmarshal(append([]byte("anchored: &"+name+" 0\n"), src...), &doc); err == nil {
		if n := findAlias(&doc, name); n != nil {
			return n.Line - 1, n.Column
		}
	}
	quoted := `'[^']*'|"(?:[^"\\]|\\.)*"`
	before := `(?:` + quoted + `|[^'"#*]|\S[#*])*?(?:^|[\s\[{,])`
	alias := regexp.MustCompile(before + `(\*` + regexp.QuoteMeta(name) + `)(?:[\s,\]}:]|$)`)
	for i, l := range strings.Split(string(src), "\n") {
		if m := alias.FindStringSubmatchIndex(l); m != nil && !strings.Contains(l[:m[2]], "#") {
			return i + 1, 1 + utf8.RuneCountInString(l[:m[2]])
		}
	}
	return 1, 1
}

// findAlias returns the first alias of a name in n and below, nil if there is none.
func findAlias(n *yaml.Node, name string) *yaml.Node {
	if n.Kind == yaml.AliasNode && n.Value == name {
		return n
	}
	for _, c := range n.Content {
		if found := findAlias(c, name); found != nil {
			return found
		}
	}
	return nil
}
