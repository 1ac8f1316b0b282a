// Package document reads a limits.yaml as text and as YAML. It accepts one document, without the features of
// YAML that put a value elsewhere than where it applies.
package document

import (
	"bytes"
	"errors"
	"io"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"

	"github.com/sluice-go/sluice/gen/internal/hint"
	"github.com/sluice-go/sluice/gen/internal/problem"
	"github.com/sluice-go/sluice/gen/internal/rules"
	"github.com/sluice-go/sluice/gen/internal/yamltext"
)

// Parse returns the top node of the only document of src, which positions call file; nil if src is malformed.
// It returns all mistakes in the use of YAML, in the file's order. Nodes that Refused reports have mistakes.
func Parse(file string, src []byte) (*yaml.Node, problem.Problems) {
	r := &reader{file: file}
	root := r.parse(src)
	return root, r.problems
}

// reader reads one file, and collects its problems.
type reader struct {
	file     string
	problems problem.Problems
}

func (r *reader) add(pos problem.Pos, rule, format string, args ...any) {
	r.problems.Add(pos, rule, format, args...)
}

func (r *reader) at(line, col int) problem.Pos {
	return problem.Pos{File: r.file, Line: line, Col: col}
}

func (r *reader) pos(n *yaml.Node) problem.Pos { return r.at(n.Line, n.Column) }

// parse is Parse.
func (r *reader) parse(src []byte) *yaml.Node {
	if !r.checkText(src) {
		return nil
	}
	dec := yaml.NewDecoder(bytes.NewReader(src))
	var doc yaml.Node
	switch err := dec.Decode(&doc); {
	case errors.Is(err, io.EOF):
		r.add(r.at(1, 1), rules.OneDocument, "the file is empty: it must hold version, owner, revision, go, "+
			"entities and resources")
		return nil
	case err != nil:
		r.syntax(src, err)
		return nil
	}
	var second yaml.Node
	switch err := dec.Decode(&second); {
	case err == nil:
		r.add(r.at(second.Line, second.Column), rules.OneDocument,
			"a second document starts here: a file holds one, remove the --- line or split the file")
	case !errors.Is(err, io.EOF):
		r.syntax(src, err)
	}
	root := doc.Content[0]
	if IsNull(root) {
		r.add(r.pos(root), rules.OneDocument, "the document is empty: it must hold version, owner, revision, go, "+
			"entities and resources")
		return nil
	}
	r.checkFeatures(root)
	return root
}

// checkText reports the first byte of src that YAML excludes, as yaml.v3 gives no position of it.
func (r *reader) checkText(src []byte) bool {
	line, col := 1, 1
	for rest := src; len(rest) > 0; {
		c, size := utf8.DecodeRune(rest)
		switch {
		case c == utf8.RuneError && size == 1:
			r.add(r.at(line, col), rules.NotText, "byte 0x%02x is not UTF-8: save the file as UTF-8", rest[0])
			return false
		case c < ' ' && c != '\t' && c != '\n' && c != '\r', c >= 0x7f && c < 0xa0 &&
			c != 0x85, c == 0xfffe, c == 0xffff:
			r.add(r.at(line, col), rules.NotText, "control character %U cannot stand in YAML: remove it", c)
			return false
		case c == '\n':
			line, col = line+1, 0
		}
		rest, col = rest[size:], col+1
	}
	return true
}

// checkFeatures reports the features of YAML that put a value elsewhere than where it applies, in n and
// below.
func (r *reader) checkFeatures(n *yaml.Node) {
	switch {
	case n.Kind == yaml.AliasNode:
		r.add(r.pos(n), rules.YAMLFeature, noAlias, "alias *"+hint.Short(n.Value))
	case n.Anchor != "":
		r.add(r.pos(n), rules.YAMLFeature, noAlias, "anchor &"+hint.Short(n.Anchor))
	case n.Tag == merge:
		r.add(r.pos(n), rules.YAMLFeature, "merge key <<: merging is not supported, write the values where they "+
			"apply")
	case n.Style&yaml.TaggedStyle != 0:
		r.add(r.pos(n), rules.YAMLFeature, "tag %s: tags are not supported, remove it (and quote the value if it "+
			"is meant as text)", hint.Quote(n.Tag))
	}
	for _, c := range n.Content {
		r.checkFeatures(c)
	}
}

// syntax reports an error of yaml.v3.
func (r *reader) syntax(src []byte, err error) {
	e := yamltext.Explain(src, err)
	if e.Alias != "" {
		r.add(r.at(e.Line, e.Column), rules.YAMLFeature, noAlias, "alias *"+hint.Short(e.Alias))
		return
	}
	r.add(r.at(e.Line, e.Column), rules.YAMLSyntax, "not YAML: %s", e.Why)
}

const noAlias = "%s: anchors and aliases are not supported, write the value where it applies"

// The tags that yaml.v3 gives nodes, as far as they matter here.
const (
	null  = "!!null"
	merge = "!!merge"
)

// IsNull reports whether n has no value.
func IsNull(n *yaml.Node) bool { return n.Kind == yaml.ScalarNode && n.Tag == null }

// Refused reports whether Parse has reported n as a feature of YAML that has no place here.
func Refused(n *yaml.Node) bool { return n.Kind == yaml.AliasNode || n.Tag == merge }
