// Package envoy is Envoy's rate limit service: it maps descriptors to calls on limits, by the rules of an
// envoy.yaml.
//
//	envoy.yaml, schema -> Read -> Rules -> Service.ShouldRateLimit
package envoy

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/sluice-go/sluice/gen"
	"github.com/sluice-go/sluice/internal/tool/textfile"
	"github.com/sluice-go/sluice/serve/internal/limits"
	"github.com/sluice-go/sluice/serve/internal/strictjson"
)

// quote returns a text of a file or a request for a message.
func quote(s string) string { return strictjson.Quote(s) }

// Rules are the content of an envoy.yaml, whose names are those of a schema. They do not change.
type Rules struct {
	domain string
	deny   bool // descriptors to which no rule applies
	rules  []*rule
}

// rule says what a descriptor does that has all keys of match: one of acquire and settle.
type rule struct {
	at      *yaml.Node
	match   []pair
	acquire *acquire
	settle  *settle
}

// pair is a key of a descriptor, and the value that it has to have.
type pair struct {
	key, value string
	any        bool // every value will do
}

// acquire takes tokens.
type acquire struct {
	at, resourceAt, nameAt, entityAt *yaml.Node

	resource string
	nameKey  string // of the descriptor, with a name of a template; "" for a fixed name, or none
	name     string
	entity   []entityID
	numbers  numbers
	held     bool // until a settle, or until the lease runs out
}

// settle ends leases.
type settle struct {
	at      *yaml.Node
	lease   string // the key with their names
	numbers numbers
}

// entityID is the kind of an entity or of an ancestor, and where its id is.
type entityID struct {
	at   *yaml.Node
	kind string
	key  string // of the descriptor; "" for a fixed id
	id   string
}

// numbers are a cost or a usage.
type numbers struct {
	at    *yaml.Node // nil if there are none
	usage bool
	all   []number
}

// number is one of them: a text, or the hits of a descriptor.
type number struct {
	at   *yaml.Node
	name string
	text string
	hits bool
}

// hits is the word for the hits of a descriptor.
const hits = "hits"

// Read reads the envoy.yaml at path, and binds it to a schema. The error is a *FileError if the file has
// mistakes.
func Read(path string, schema *limits.Schema) (*Rules, error) {
	text, err := textfile.Read(path)
	if err != nil {
		return nil, fmt.Errorf("read rules: %w; pass --envoy with the path of an envoy.yaml", err)
	}
	return parse(filepath.Base(path), text, schema)
}

// parse is Read of a text.
func parse(file string, text []byte, schema *limits.Schema) (*Rules, error) {
	r := &reader{}
	rules := &Rules{}
	if root := r.root(text); root != nil {
		rules = r.rules(root)
	}
	if len(r.mistakes) == 0 {
		r.bind(rules, schema)
	}
	if len(r.mistakes) > 0 {
		slices.SortStableFunc(r.mistakes, func(a, b Mistake) int {
			if a.Line != b.Line {
				return a.Line - b.Line
			}
			return a.Column - b.Column
		})
		return nil, &FileError{File: file, Mistakes: r.mistakes}
	}
	return rules, nil
}

func (r *reader) rules(root *yaml.Node) *Rules {
	all := &Rules{}
	of := r.fixed(root, "the file", []string{"domain", "rules", "unmatched"}, "domain", "rules", "unmatched")
	if n := of["domain"]; n != nil {
		all.domain = r.text(n, "domain")
	}
	if n := of["unmatched"]; n != nil {
		switch n.Value {
		case "allow":
		case "deny":
			all.deny = true
		default:
			r.fail(n, "unmatched is neither allow nor deny: write one of them")
		}
	}
	if n := of["rules"]; n != nil {
		for i, element := range r.sequence(n, "rules") {
			all.rules = append(all.rules, r.rule(element, fmt.Sprint("rule ", i+1)))
		}
	}
	return all
}

func (r *reader) rule(n *yaml.Node, what string) *rule {
	one := &rule{at: n}
	of := r.fixed(n, what, []string{"match", "acquire", "settle"}, "match")
	if m := of["match"]; m != nil {
		for _, p := range r.mapping(m, "match") {
			value := r.text(p.value, "the value of "+quote(p.key.Value))
			one.match = append(one.match, pair{p.key.Value, value, value == "*"})
		}
		if m.Kind == yaml.MappingNode && len(m.Content) == 0 {
			r.fail(m, "match has no key: write at least one")
		}
	}
	switch a, s := of["acquire"], of["settle"]; {
	case (a == nil) == (s == nil):
		r.fail(n, "%s has to have one of acquire and settle", what)
	case a != nil:
		one.acquire = r.acquire(a, one.match)
	default:
		one.settle = r.settle(s, one.match)
	}
	return one
}

func (r *reader) acquire(n *yaml.Node, match []pair) *acquire {
	a := &acquire{at: n}
	of := r.fixed(n, "acquire", []string{"resource", "name", "entity", "cost", "usage"}, "resource", "entity")
	if at := of["resource"]; at != nil {
		a.resource, a.resourceAt = r.text(at, "resource"), at
	}
	if at := of["name"]; at != nil {
		a.nameAt = at
		a.nameKey, a.name = r.template(at, "name", match)
	}
	if at := of["entity"]; at != nil {
		a.entityAt = at
		for _, m := range r.mapping(at, "entity") {
			p := entityID{at: m.value, kind: m.key.Value}
			p.key, p.id = r.template(m.value, "the id of "+quote(p.kind), match)
			a.entity = append(a.entity, p)
		}
	}
	a.numbers = r.numbers(of)
	return a
}

func (r *reader) settle(n *yaml.Node, match []pair) *settle {
	s := &settle{at: n}
	of := r.fixed(n, "settle", []string{"lease", "cost", "usage"}, "lease")
	if at := of["lease"]; at != nil {
		if s.lease, _ = r.template(at, "lease", match); s.lease == "" && len(r.mistakes) == 0 {
			r.fail(at, "lease is no key of the descriptor: write it in braces, such as \"{lease}\"")
		}
	}
	s.numbers = r.numbers(of)
	return s
}

// template reads a text: a key of match in braces, whose value it stands for, or a fixed text. Nothing is put
// together from several values: different ones could then give the same text.
func (r *reader) template(n *yaml.Node, what string, match []pair) (key, fixed string) {
	text := r.text(n, what)
	if !strings.ContainsAny(text, "{}") {
		return "", text
	}
	key, ok := strings.CutPrefix(text, "{")
	if ok {
		key, ok = strings.CutSuffix(key, "}")
	}
	if !ok || strings.ContainsAny(key, "{}") {
		r.fail(n, "%s is no key in braces: write one key, such as \"{key}\", or a text without braces", what)
		return "", ""
	}
	names := make([]string, len(match))
	for i, p := range match {
		names[i] = p.key
	}
	if !slices.Contains(names, key) {
		r.fail(n, "%s names %s, which is no key of match: %s", what, quote(key), gen.Cure(key, names))
		return "", ""
	}
	return key, ""
}

// numbers reads the cost or the usage of a rule.
func (r *reader) numbers(of map[string]*yaml.Node) (all numbers) {
	at, what := of["cost"], "cost"
	if u := of["usage"]; u != nil {
		if at != nil {
			r.fail(u, "there is a cost and a usage: write one of them")
			return all
		}
		at, what, all.usage = u, "usage", true
	}
	if at == nil {
		return all
	}
	all.at = at
	for _, m := range r.mapping(at, what) {
		text := r.text(m.value, quote(m.key.Value))
		all.all = append(all.all, number{m.value, m.key.Value, text, text == hits})
	}
	if at.Kind == yaml.MappingNode && len(at.Content) == 0 {
		r.fail(at, "%s is empty: leave it out", what)
	}
	return all
}
