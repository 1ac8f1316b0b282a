package style

import (
	"fmt"
	"go/ast"
	"regexp"
	"strings"
)

// comments finds sentences of comments that are too long, open with a pronoun, or contain a private word.
func (b Bounds) comments(f *file) []Finding {
	var found []Finding
	for _, group := range f.ast.Comments {
		for _, s := range sentences(f, group) {
			if n := words(s.text); n > b.Words {
				text := fmt.Sprintf("%d words, at most %d: %s", n, b.Words, s.text)
				found = append(found, Finding{Sentence, f.path, s.line, text})
			}
			if opening.MatchString(s.text) && !strings.HasSuffix(s.text, "?") {
				found = append(found, Finding{Opening, f.path, s.line, s.text})
			}
			if w := privateProse.FindString(s.text); w != "" {
				found = append(found, Finding{Prose, f.path, s.line, fmt.Sprintf("%q in: %s", w, s.text)})
			}
		}
	}
	return found
}

var opening = regexp.MustCompile(`^(Who|What|Where|Whoever|Of which)\b`)

// sentence is a sentence of a comment, and the line that it begins in.
type sentence struct {
	text string
	line int
}

// end matches where a sentence ends. The rest of the match is what its last word ends with.
var end = regexp.MustCompile("[.!?][)\"'`”]*$")

// abbreviation matches words that end with a dot inside a sentence.
var abbreviation = regexp.MustCompile(`^\(?(e\.g\.|i\.e\.|cf\.|vs\.|etc\.|approx\.|\.+)$`)

// sentences splits a comment into its sentences. Lists, code blocks, tables and directives have none.
func sentences(f *file, group *ast.CommentGroup) []sentence {
	var all []sentence
	var pending sentence
	flush := func() {
		if pending.text != "" {
			all = append(all, pending)
		}
		pending = sentence{}
	}
	for _, comment := range group.List {
		line := f.line(comment.Pos())
		for i, text := range strings.Split(strip(comment.Text), "\n") {
			if exempt(text) {
				flush()
				continue
			}
			for word := range strings.FieldsSeq(text) {
				if pending.text == "" {
					pending = sentence{text: word, line: line + i}
				} else {
					pending.text += " " + word
				}
				if end.MatchString(word) && !abbreviation.MatchString(word) {
					flush()
				}
			}
		}
	}
	flush()
	return all
}

// strip returns a comment without its marks. One blank after // is part of the mark.
func strip(comment string) string {
	if text, ok := strings.CutPrefix(comment, "//"); ok {
		return strings.TrimPrefix(text, " ")
	}
	return strings.TrimSuffix(strings.TrimPrefix(comment, "/*"), "*/")
}

var (
	directive = regexp.MustCompile(`^(go:|nolint|export |line )`)
	list      = regexp.MustCompile(`^([-*•] |[0-9]+[.)] |#|\|)`)
)

// exempt reports whether a line of a comment is no prose: it is empty, indented, or an item of a list, or it
// directs a tool.
func exempt(text string) bool {
	trimmed := strings.TrimSpace(text)
	return trimmed == "" || strings.HasPrefix(text, "\t") || strings.HasPrefix(text, " ") ||
		directive.MatchString(text) || list.MatchString(trimmed)
}

// words counts the words of a sentence: what has a letter or a digit.
func words(s string) int {
	n := 0
	for w := range strings.FieldsSeq(s) {
		if strings.ContainsFunc(w, func(r rune) bool {
			return r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r > 127
		}) {
			n++
		}
	}
	return n
}
