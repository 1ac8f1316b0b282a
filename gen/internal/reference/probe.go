package reference

import (
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/sluice-go/sluice/gen/internal/declared"
	"github.com/sluice-go/sluice/gen/internal/schema"
)

// mistake is a wrong value of a key, and the problem that it gives.
type mistake struct {
	rule    string
	written string // as YAML, on one line, or a text in words
	message string
}

// Mistakes that are not values in YAML, in words.
const (
	leftOut = "left out"
	twice   = "each item twice"
	nothing = "nothing after the colon"
)

// wrongValues are tried as the value of every key, plainest first. The reader of limits.yaml decides which
// are mistakes.
func wrongValues() []string {
	many := make([]string, 101)
	for i := range many {
		many[i] = fmt.Sprintf("a%d", i+1)
	}
	return []string{
		"2", "0", "1", "-5", "1.5", "10k", "0100", "60", "1_000_000_000_000", "9_000_000_000_000", "100_000",
		"1w", "1h1d", "500ms", "1500ms", "400d", "1ms", "366d",
		"text", "Text", "text 1", "true", "'true'", "''", `"a\u0007b"`, "func", "main", "Entity", "id",
		"/limits", "Ünï", strings.Repeat("x", 80),
		".5", "1e3", "0.1234567", "2.5/M", "0.0000001/1M", "2000000", "USD", "usd",
		"60000500us", "months", "first_use", "Europe/Berln",
		"[]", "[text]", "[text, text]", "[one, Two]", "[one_a, one__a]", "[1, two]", "[redis]", "{}", "{text: 1}",
		"{text: {}}",
		"[" + strings.Join(many, ", ") + "]",
	}
}

// wrongNames are tried as a name.
func wrongNames() []string {
	return []string{"Text 1", "1a", strings.Repeat("x", 80), "ünï", "entity", "id", "limits", "check",
		"project_", "user_", "requests", "cost", "tokens", "model/x"}
}

// prober tries values in a limits.yaml that has no mistake.
type prober struct {
	sample *yaml.Node
	names  []string // of kinds, resources and limits in the sample, which are wrong in some places
}

// newProber returns a prober of that file.
func newProber(sample []byte) (*prober, error) {
	s, problems := schema.Read("limits.yaml", sample)
	if len(problems) > 0 {
		return nil, problems
	}
	p := &prober{sample: &yaml.Node{}}
	if err := yaml.Unmarshal(sample, p.sample); err != nil {
		return nil, err
	}
	for _, k := range s.Kinds {
		p.names = append(p.names, k.Name)
	}
	for _, r := range s.Resources {
		p.names = append(p.names, r.Name)
		for _, l := range r.Limits {
			p.names = append(p.names, l.Name)
		}
	}
	return p, nil
}

// value returns the mistakes in the value of a key, one for each rule.
func (p *prober) value(k key) []mistake {
	values := wrongValues()
	switch text(k.def, "type") {
	case "string":
		values = append(values, p.names...)
	case "array":
		for _, name := range p.names {
			values = append(values, "["+name+"]")
		}
	}
	at := p.at(k.path)
	found := at.try(leftOut, (*place).remove)
	found = append(found, at.try(twice, (*place).repeat)...)
	for _, v := range values {
		found = append(found, at.try(v, func(pl *place) bool { return pl.write(v) })...)
	}
	found = append(found, at.try(nothing, func(pl *place) bool { return pl.write("") })...)
	return firsts(found)
}

// name returns the mistakes in the name of the entry at path, and in an entry that is no mapping, one for
// each rule.
func (p *prober) name(path []string) []mistake {
	at := p.at(path)
	at.strict = true
	var found []mistake
	for _, v := range []string{"2", "{}"} {
		found = append(found, at.try(v, func(pl *place) bool { return pl.write(v) })...)
	}
	for _, v := range append(wrongNames(), p.names...) {
		found = append(found, at.try(v, func(pl *place) bool { return pl.rename(v) })...)
	}
	return firsts(found)
}

// firsts returns the first mistake of each rule.
func firsts(all []mistake) (kept []mistake) {
	for _, m := range all {
		if !slices.ContainsFunc(kept, func(k mistake) bool { return k.rule == m.rule }) {
			kept = append(kept, m)
		}
	}
	return kept
}

// probe is a place of the sample where values are tried.
type probe struct {
	sample *yaml.Node
	path   []string
	strict bool // ignore problems elsewhere
}

func (p *prober) at(path []string) *probe { return &probe{sample: p.sample, path: path} }

// try changes the sample at the place, and returns the problems, first those of the place itself. If the
// change writes a mapping, problems of its keys, and of others that refer to them, do not count.
func (p *probe) try(written string, change func(*place) bool) []mistake {
	doc := clone(p.sample)
	at := find(doc.Content[0], p.path)
	if at == nil || !change(at) {
		return nil
	}
	src, err := yaml.Marshal(doc)
	if err != nil {
		return nil
	}
	problems := check(src)
	var again yaml.Node
	if len(problems) == 0 || yaml.Unmarshal(src, &again) != nil {
		return nil
	}
	var here, elsewhere []mistake
	for _, problem := range problems {
		m := mistake{problem.Rule, written, problem.Message}
		switch {
		case at.concerns(again.Content[0], problem):
			here = append(here, m)
		case !p.strict && !strings.HasPrefix(written, "{"):
			elsewhere = append(elsewhere, m)
		}
	}
	return append(here, elsewhere...)
}

// check returns the problems of a limits.yaml.
func check(src []byte) schema.Problems {
	s, problems := schema.Read("limits.yaml", src)
	problems = slices.Concat(problems, declared.Check(s))
	problems.Sort()
	return problems
}

// clone returns a deep copy of n.
func clone(n *yaml.Node) *yaml.Node {
	c := *n
	c.Content = nil
	for _, in := range n.Content {
		c.Content = append(c.Content, clone(in))
	}
	return &c
}
