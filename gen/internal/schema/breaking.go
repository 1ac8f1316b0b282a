package schema

import (
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/sluice-go/sluice/gen/internal/goname"
	"github.com/sluice-go/sluice/gen/internal/hint"
	"github.com/sluice-go/sluice/gen/internal/rules"
)

func breakingKeys() []string { return []string{"except", "ignore_only"} }
func exceptKeys() []string   { return []string{"rule", "reason"} }
func ignoreKeys() []string   { return []string{"rule", "at", "reason"} }

// Exception accepts the findings of a rule of sluice breaking, at a place or everywhere. Package breaking
// knows the rules and places.
type Exception struct {
	Rule    string
	At      string // the place; "" for all of them
	Reason  string // not empty
	RulePos Pos    // where Rule is written
	AtPos   Pos    // where At is written; RulePos where it is not
}

// Excepted returns the reason for which findings of rule at a place are accepted, "" if they are not.
func (s *Schema) Excepted(rule, place string) (reason string) {
	for _, e := range s.Exceptions {
		if e.Rule == rule && (e.At == "" || e.At == place) {
			return e.Reason
		}
	}
	return ""
}

// breaking reads the findings that sluice breaking accepts.
func (r exceptionReader) breaking(e entry) []Exception {
	const example = "except: [{rule: SETTLE_CHANGED, reason: ...}]"
	f, ok := r.fields(e.value, "breaking", "a mapping, such as {"+example+"}", breakingKeys(), nil)
	if ok && emptyMapping(e.value) {
		r.add(r.pos(e.key), rules.Empty, "breaking is empty: leave it out, or write %s", example)
	}
	return append(
		r.exceptions(f, "except", exceptKeys(), "{rule: SETTLE_CHANGED, reason: nobody waits for it}"),
		r.exceptions(f, "ignore_only", ignoreKeys(),
			"{rule: LIMIT_REMOVED, at: api/rps, reason: no bucket had it}")...)
}

// exceptions reads one of the lists, whose items have keys.
func (r exceptionReader) exceptions(f fields, list string, keys []string, example string) []Exception {
	e, ok := f.get(list)
	if !ok {
		return nil
	}
	if e.value.Kind != yaml.SequenceNode {
		r.wrong(e.value, list, "a list, such as ["+example+"]")
		return nil
	}
	if len(e.value.Content) == 0 {
		r.add(r.pos(e.key), rules.Empty, "%s is empty: leave it out, or write %s", list, example)
	}
	var exceptions []Exception
	for _, item := range e.value.Content {
		f, ok := r.fields(item, "an item of "+list, "a mapping, such as "+example, keys, nil)
		if !ok {
			continue
		}
		x := r.exception(f, slices.Contains(keys, "at"))
		i := slices.IndexFunc(exceptions, func(first Exception) bool {
			return first.Rule == x.Rule &&
				first.At == x.At
		})
		if i >= 0 && x.Rule != "" && (x.At != "") == slices.Contains(keys, "at") {
			r.add(x.RulePos, rules.Repeated, "%s has rule %s twice%s: remove one, the first is in line %d",
				list, hint.Quote(x.Rule), ifAny(" at ", x.At), exceptions[i].RulePos.Line)
		}
		exceptions = append(exceptions, x)
	}
	return exceptions
}

// exception reads one item: with a place, or without.
func (r exceptionReader) exception(f fields, placed bool) Exception {
	x := Exception{RulePos: f.pos}
	if e, ok := r.need(f, "rule", "write which, such as rule: LIMIT_REMOVED"); ok {
		x.Rule, x.RulePos = r.said(e, "one of those that `sluice breaking --rules` lists"), r.pos(e.value)
	}
	x.AtPos = x.RulePos
	if placed {
		if e, ok := r.need(f, "at", "write where, such as at: api/rps, or move the rule to except"); ok {
			x.At, x.AtPos = r.place(e), r.pos(e.value)
		}
	}
	if e, ok := r.need(f, "reason", "write why that is right, for later readers"); ok {
		x.Reason = r.said(e, "why that is right, for later readers")
	}
	return x
}

// said returns the text of e, which must not be blank. want is the advice if it is.
func (r exceptionReader) said(e entry, want string) string {
	text, ok := r.text(e.value, e.name, want)
	text = strings.TrimSpace(text)
	if ok && text == "" {
		r.add(r.pos(e.value), rules.Empty, "%s is empty: write %s", e.name, want)
	}
	return text
}

// place returns the place that e names: a name, or two with a slash between them.
func (r exceptionReader) place(e entry) string {
	text, ok := r.text(e.value, "at", "a place, such as api/rps")
	if ok && !goname.Made(text, goname.Alphanumerics, goname.Alphanumerics+resourceMarks) {
		r.add(r.pos(e.value), rules.BadName, "at %s is no place: write a kind, a resource, or a limit or kind of "+
			"a "+
			"resource, such as api/rps", hint.Quote(text))
		return ""
	}
	return text
}

// ifAny returns text with before in front, "" if text is empty.
func ifAny(before, text string) string {
	if text == "" {
		return ""
	}
	return before + hint.Quote(text)
}

// Place names a limit, or a kind, of a resource as Exception.At does.
func Place(resource, of string) string { return resource + "/" + of }
