package envoy

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/sluice-go/sluice/gen"
)

// FileError is all mistakes of an envoy.yaml, for each a line file:line:col: message.
type FileError struct {
	File     string
	Mistakes []Mistake // in the order of the file
}

// Mistake is one, at a line and a column from 1.
type Mistake struct {
	Line, Column int
	Message      string // what is wrong and what to do
}

// Error returns the mistakes, one in a line.
func (e *FileError) Error() string {
	lines := make([]string, len(e.Mistakes))
	for i, m := range e.Mistakes {
		lines[i] = fmt.Sprintf("%s:%d:%d: %s", e.File, m.Line, m.Column, m.Message)
	}
	return strings.Join(lines, "\n")
}

// reader reads a YAML file strictly, and collects its mistakes.
type reader struct{ mistakes []Mistake }

// fail notes a mistake at n.
func (r *reader) fail(n *yaml.Node, format string, args ...any) {
	r.mistakes = append(r.mistakes, Mistake{n.Line, n.Column, fmt.Sprintf(format, args...)})
}

// lineOf finds the line of a syntax error in yaml's message.
var lineOf = regexp.MustCompile(`^yaml: (?:line (\d+): )?(?:unmarshal errors:\s*)?`)

// root returns the value of the file's only document, nil after a mistake.
func (r *reader) root(text []byte) *yaml.Node {
	decoder := yaml.NewDecoder(bytes.NewReader(text))
	var document, more yaml.Node
	err := decoder.Decode(&document)
	if err == nil {
		if second := decoder.Decode(&more); second == nil {
			r.fail(&more, "there is a second document: remove it")
			return nil
		} else if !errors.Is(second, io.EOF) {
			err = second
		}
	}
	switch {
	case errors.Is(err, io.EOF) || err == nil && len(document.Content) == 0:
		r.fail(&yaml.Node{Line: 1, Column: 1}, "the file is empty: write a domain and rules")
		return nil
	case err != nil:
		at := lineOf.FindStringSubmatch(err.Error())
		line := 1
		if len(at) > 1 && at[1] != "" {
			line, _ = strconv.Atoi(at[1])
		}
		r.fail(&yaml.Node{Line: line, Column: 1}, "this is no YAML: %s",
			strings.TrimSpace(lineOf.ReplaceAllString(err.Error(), "")))
		return nil
	}
	return document.Content[0]
}

// member is a key of a mapping, and its value.
type member struct{ key, value *yaml.Node }

// mapping returns the members of n; what names it, for mistakes.
func (r *reader) mapping(n *yaml.Node, what string) (all []member) {
	if n.Kind != yaml.MappingNode {
		r.fail(n, "%s is no mapping: write {key: value}", what)
		return nil
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key := n.Content[i]
		switch {
		case key.Kind != yaml.ScalarNode || key.Tag == "!!merge" || key.Value == "":
			r.fail(key, "a key of %s is no name: write a text", what)
		case slices.ContainsFunc(all, func(m member) bool { return m.key.Value == key.Value }):
			r.fail(key, "key %s is there twice: remove one", quote(key.Value))
		default:
			all = append(all, member{key, n.Content[i+1]})
		}
	}
	return all
}

// fixed returns the values of n's members, which have these names. Each that is needed has to be there.
func (r *reader) fixed(n *yaml.Node, what string, names []string, needed ...string) map[string]*yaml.Node {
	all, before := map[string]*yaml.Node{}, len(r.mistakes)
	for _, m := range r.mapping(n, what) {
		if !slices.Contains(names, m.key.Value) {
			r.fail(m.key, "key %s is unknown in %s: %s", quote(m.key.Value), what, gen.Cure(m.key.Value, names))
			continue
		}
		all[m.key.Value] = m.value
	}
	sound := len(r.mistakes) == before
	for _, name := range needed {
		if sound && all[name] == nil {
			r.fail(n, "%s has no %s: add it", what, name)
		}
	}
	return all
}

// sequence returns the elements of n; what names it, for mistakes.
func (r *reader) sequence(n *yaml.Node, what string) []*yaml.Node {
	if n.Kind != yaml.SequenceNode {
		r.fail(n, "%s is no list: write one element in each line, behind a dash", what)
		return nil
	}
	return n.Content
}

// text returns a scalar, "" after a mistake; what names it, for mistakes.
func (r *reader) text(n *yaml.Node, what string) string {
	if n.Kind != yaml.ScalarNode || n.Tag == "!!null" || n.Value == "" {
		r.fail(n, "%s is no text: write one", what)
		return ""
	}
	return n.Value
}
