// Package doccheck holds Markdown to what it shows. Every fenced block of a document is one of these:
//
//   - quoted: `<!-- from FILE -->` above it names the file, which has its lines. A quoted Go file is one that
//     Go builds, so that what is quoted compiles and, in a test, runs.
//   - run: a `console` block, whose lines after `$ ` are commands and whose other lines are what they print,
//     or a `sh` block, which has commands alone. `<!-- given: STATE -->` above it says what is to be there
//     first.
//   - built: a `go` block that is a whole file. If it has tests, they run.
//   - read: a `yaml` block, a limits.yaml or the part of one that is to be written into the demonstration's.
//   - held by a test: `<!-- held by TestName -->` names a test that compares the block with what it shows.
//   - not run: `<!-- not run: REASON -->` says why. These are counted.
//
// A block that is none of these is a mistake, as is all else that does not hold. Tests that the text names as
// code, as in `TestName`, have to be there.
package doccheck

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// block is a fenced block of a document.
type block struct {
	file  string
	line  int    // of its fence
	lang  string // what stands behind the fence
	text  string // its lines, less the fence's indentation, each with its newline
	marks []mark
}

// stranger is the language of a block that is a mistake by its fence.
const stranger = "?"

// mark is a comment right above a block that says how it is held.
type mark struct {
	verb, text string // as in `<!-- verb: text -->`, or `<!-- from text -->`
	line       int
}

// The verbs of marks.
const (
	from   = "from"
	given  = "given:"
	heldBy = "held by"
	notRun = "not run:"
)

var (
	comment = regexp.MustCompile(`^\s*<!-- (.*?) *-->\s*$`)
	opens   = regexp.MustCompile("^( *)(```+)([a-z]*) *$")
	// a fence that Markdown knows, and nothing here does
	foreign = regexp.MustCompile("^((?:\\s|>)*(?:```+|~~~+))[^`]*$")
)

// parse returns the blocks of a document.
func parse(file, text string) (blocks []block, wrong []string) {
	var marks []mark
	var open *block
	var indent, ticks string
	add := func(line int, format string, args ...any) {
		wrong = append(wrong, fmt.Sprintf("%s:%d: ", file, line)+fmt.Sprintf(format, args...))
	}
	for i, line := range strings.Split(text, "\n") {
		if open != nil {
			if strings.TrimSpace(line) == ticks {
				if open.lang != stranger {
					blocks = append(blocks, *open)
				}
				open = nil
				continue
			}
			open.text += strings.TrimPrefix(line, indent) + "\n"
			continue
		}
		if m := opens.FindStringSubmatch(line); m != nil {
			indent, ticks = m[1], m[2]
			open = &block{file: file, line: i + 1, lang: m[3], marks: marks}
			marks = nil
			continue
		}
		if m := foreign.FindStringSubmatch(line); m != nil {
			add(i+1, "no language is read from this fence: write ``` and one in small letters, at the begin of a "+
				"line or in a list")
			indent, ticks = "", strings.TrimSpace(m[1])
			open, marks = &block{file: file, line: i + 1, lang: stranger}, nil
			continue
		}
		if m := comment.FindStringSubmatch(line); m != nil {
			if k, ok := markOf(m[1], i+1); ok {
				marks = append(marks, k)
				continue
			}
		}
		for _, k := range marks {
			add(k.line, "`%s %s` stands above no block: put it on the line before the fence", k.verb, k.text)
		}
		marks = nil
	}
	if open != nil {
		add(open.line, "this block has no end: close it with %s", ticks)
	}
	return blocks, wrong
}

// markOf returns the mark that a comment is, if it is one.
func markOf(text string, line int) (mark, bool) {
	for _, verb := range []string{from, given, heldBy, notRun} {
		if rest, ok := strings.CutPrefix(text, verb); ok && (rest == "" || rest[0] == ' ') {
			return mark{verb, strings.TrimSpace(rest), line}, true
		}
	}
	return mark{}, false
}

// marked returns what the mark of that verb says, if b has it.
func (b block) marked(verb string) (string, bool) {
	i := slices.IndexFunc(b.marks, func(m mark) bool { return m.verb == verb })
	if i < 0 {
		return "", false
	}
	return b.marks[i].text, true
}

// console says that b shows commands and what they print. One without a language does so if it begins with a
// prompt.
func (b block) console() bool {
	return b.lang == "console" || b.lang == "" && strings.HasPrefix(b.text, prompt)
}

// at is b's place, for messages.
func (b block) at() string { return fmt.Sprintf("%s:%d", b.file, b.line) }
