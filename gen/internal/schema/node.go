package schema

import (
	"slices"
	"strings"
	"unicode"

	"go.yaml.in/yaml/v3"

	"github.com/sluice-go/sluice/gen/internal/document"
	"github.com/sluice-go/sluice/gen/internal/hint"
	"github.com/sluice-go/sluice/gen/internal/rules"
)

// The tags that yaml.v3 gives nodes, as far as they matter here.
const (
	tagString    = "!!str"
	tagTimestamp = "!!timestamp" // text to YAML 1.2 and to us
	tagBool      = "!!bool"
)

// entry is a key of a mapping with its value, or an item of a list, which has no key.
type entry struct {
	name       string
	key, value *yaml.Node
}

// fields are the known keys of a mapping.
type fields struct {
	pos     Pos // of the mapping
	entries []entry
	meant   []string // keys that unknown ones probably misspell: they are not reported as missing
	merged  bool     // a merge key, which has been reported, may bring others: no key is missing
}

func (f fields) get(name string) (entry, bool) {
	i := slices.IndexFunc(f.entries, func(e entry) bool { return e.name == name })
	if i < 0 {
		return entry{}, false
	}
	return f.entries[i], true
}

func (r *reader) pos(n *yaml.Node) Pos { return r.at(n.Line, n.Column) }

// emptyMapping reports whether n is {}.
func emptyMapping(n *yaml.Node) bool { return n.Kind == yaml.MappingNode && len(n.Content) == 0 }

// wrong reports that n has the wrong type. what names n, and want is the advice.
func (r *reader) wrong(n *yaml.Node, what, want string) {
	if document.Refused(n) {
		return
	}
	is := "is text"
	switch {
	case n.Kind == yaml.MappingNode:
		is = "is a mapping"
	case n.Kind == yaml.SequenceNode:
		is = "is a list"
	case document.IsNull(n):
		is = "has no value"
	case n.Tag != tagString:
		is = "is " + strings.TrimPrefix(n.Tag, "!!") + " " + hint.Quote(n.Value)
	}
	r.add(r.pos(n), rules.WrongType, "%s %s: write %s", what, is, want)
}

// merges reports whether n has a merge key, so that missing keys may be meant to come from elsewhere.
func merges(n *yaml.Node) bool {
	for i := 0; n.Kind == yaml.MappingNode && i < len(n.Content); i += 2 {
		if document.Refused(n.Content[i]) {
			return true
		}
	}
	return false
}

// mapping returns the entries of n in the file's order. Of a key that stands twice, it returns only the
// first. want is the advice if n is no mapping.
func (r *reader) mapping(n *yaml.Node, what, want string) ([]entry, bool) {
	if n.Kind != yaml.MappingNode {
		r.wrong(n, what, want)
		return nil, false
	}
	entries := make([]entry, 0, len(n.Content)/2)
	first := make(map[string]Pos, len(n.Content)/2)
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		switch at, twice := first[key.Value]; {
		case document.Refused(key):
		case key.Kind != yaml.ScalarNode:
			r.wrong(key, "a key of "+what, "a name")
		case twice:
			r.add(r.pos(key), rules.DuplicateKey, "%s stands in %s twice: remove one, the first is in line %d",
				hint.Quote(key.Value), what, at.Line)
		default:
			first[key.Value] = r.pos(key)
			entries = append(entries, entry{key.Value, key, value})
		}
	}
	return entries, true
}

// fields returns the entries of n whose keys are known, and reports the others. special may report an entry
// by itself, and then returns true; the rest are reported as unknown.
func (r *reader) fields(n *yaml.Node, what, want string, known []string, special func(entry) bool) (fields,
	bool) {
	entries, ok := r.mapping(n, what, want)
	f := fields{pos: r.pos(n), merged: merges(n)}
	for _, e := range entries {
		switch {
		case slices.Contains(known, e.name):
			f.entries = append(f.entries, e)
		case special != nil && special(e):
		default:
			if k, _, ok := strings.Cut(e.name, ":"); ok && slices.Contains(known, k) {
				f.meant = append(f.meant, k)
				r.add(r.pos(e.key), rules.UnknownKey, "unknown key %s in %s: write a blank after ':', as in %s: ...",
					hint.Quote(e.name), what, k)
				continue
			}
			if k, ok := r.Nearest(e.name, known); ok {
				f.meant = append(f.meant, k)
			}
			r.add(r.pos(e.key), rules.UnknownKey, "unknown key %s in %s: "+
				"%s", hint.Quote(e.name), what, r.Cure(e.name, known))
		}
	}
	return f, ok
}

// need returns the entry of a required key. If it is missing, need reports that at the mapping; how is the
// advice.
func (r *reader) need(f fields, name, how string) (entry, bool) {
	return r.needAt(f, f.pos, name, how)
}

// needAt is need for a mapping whose problems belong at its own key, not at its first one.
func (r *reader) needAt(f fields, pos Pos, name, how string) (entry, bool) {
	e, ok := f.get(name)
	if !ok && !f.merged && !slices.Contains(f.meant, name) {
		r.add(pos, rules.MissingKey, "%s is missing: %s", name, how)
	}
	return e, ok
}

// scalar returns the text of n as in the file, without quotes, whatever type it has in YAML. want is the
// advice if n is no scalar.
func (r *reader) scalar(n *yaml.Node, what, want string) (string, bool) {
	if n.Kind != yaml.ScalarNode || document.IsNull(n) || document.Refused(n) {
		r.wrong(n, what, want)
		return "", false
	}
	return n.Value, true
}

// text returns the text of n, which must be text in YAML too: true and 12 have to be quoted. want is the
// advice if it is not.
func (r *reader) text(n *yaml.Node, what, want string) (string, bool) {
	if n.Kind != yaml.ScalarNode || n.Tag != tagString && n.Tag != tagTimestamp {
		if n.Kind == yaml.ScalarNode && !document.IsNull(n) {
			want += ", in quotes if it looks like something else"
		}
		r.wrong(n, what, want)
		return "", false
	}
	return n.Value, true
}

// names returns the items of a list of names, each once.
func (r *reader) names(n *yaml.Node, what, want string) []entry {
	if n.Kind != yaml.SequenceNode {
		r.wrong(n, what, want)
		return nil
	}
	var items []entry
	for _, c := range n.Content {
		name, ok := r.text(c, "an item of "+what, "a name")
		switch {
		case !ok:
		case slices.ContainsFunc(items, func(e entry) bool { return e.name == name }):
			r.add(r.pos(c), rules.Repeated, "%s stands in %s twice: remove one", hint.Quote(name), what)
		default:
			items = append(items, entry{name: name, value: c})
		}
	}
	return items
}

// doc returns the text of a doc entry, ready for a comment.
func (r *reader) doc(f fields) string {
	e, ok := f.get("doc")
	if !ok {
		return ""
	}
	text, ok := r.text(e.value, "doc", "text")
	if !ok {
		return ""
	}
	lines := strings.Split(strings.ReplaceAll(text, "\r\n", "\n"), "\n")
	for i, l := range lines {
		lines[i] = strings.TrimRightFunc(l, unicode.IsSpace)
	}
	text = strings.TrimSpace(strings.Join(lines, "\n"))
	if i := strings.IndexFunc(text, isControl); i >= 0 {
		r.add(r.pos(e.value), rules.DocText, "doc has control character %U, which has no place in a Go comment: "+
			"remove it", []rune(text[i:])[0])
		return ""
	}
	return text
}

// isControl reports whether c must not be in a comment. A byte order mark inside a file does not compile.
// Characters that change the direction of writing show a reader other code than the compiler sees.
func isControl(c rune) bool {
	return unicode.IsControl(c) && c != '\n' && c != '\t' || c == '\ufeff' ||
		'\u2028' <= c && c <= '\u202e' || '\u2066' <= c && c <= '\u2069'
}
