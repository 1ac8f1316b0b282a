package schema

import (
	"github.com/sluice-go/sluice/gen/internal/goname"
	"github.com/sluice-go/sluice/gen/internal/hint"
	"github.com/sluice-go/sluice/gen/internal/rules"
)

const (
	maxResourceName = 64
	resourceMarks   = "._:/-" // the other characters of resources' names
)

// identifier checks the name of a kind or limit: [a-z][a-z0-9_]*, at most 32 letters. what names it in
// messages. Limits stand in expressions as they are (docs/design.md, "Table"), and kinds end at the first '-'
// of a stored id.
func (r *reader) identifier(pos Pos, what, name string) bool {
	switch {
	case !goname.Made(name, goname.Lowers, goname.Lowers+goname.Digits+"_"):
		r.add(pos, rules.BadName, "%s has a bad name: it must start with a-z and go on with a-z, 0-9 or _", what)
	case len(name) > goname.MaxIdentifier:
		r.add(pos, rules.BadName, "%s has a name of %d letters: it can have at most %d", what, len(name),
			goname.MaxIdentifier)
	default:
		return true
	}
	return false
}

// resourceName checks the name of a resource, which may be a model's: [A-Za-z0-9][A-Za-z0-9._:/-]{0,63}. '#'
// separates the parts of a sort key.
func (r *reader) resourceName(pos Pos, what, name string) bool {
	switch {
	case !goname.Made(name, goname.Alphanumerics, goname.Alphanumerics+resourceMarks):
		r.add(pos, rules.BadName, "%s has a bad name: it must start with a letter or digit, of ASCII, and go on "+
			"with these or . _ : / -", what)
	case len(name) > maxResourceName:
		r.add(pos, rules.BadName, "%s has a name of %d letters: it can have at most %d", what, len(name),
			maxResourceName)
	default:
		return true
	}
	return false
}

// goName returns the Go name of an entry: its go_name if it has one, else the one made of its name. It
// returns "" after it has reported a name that is not usable. what names the entry in messages.
func (r *reader) goName(f fields, pos Pos, what, name string, nameOK bool) string {
	e, ok := f.get("go_name")
	if !ok {
		if !nameOK {
			return ""
		}
		g := goname.Of(name)
		if goname.Made(g, goname.Digits, goname.Alphanumerics) {
			r.add(pos, rules.GoName, "%s would be %s in Go, where names cannot start with a digit: set its go_name",
				what, g)
			return ""
		}
		return g
	}
	g, ok := r.text(e.value, "go_name", "a name, such as GPT4")
	switch {
	case !ok:
	case !goname.Made(g, goname.Uppers, goname.Alphanumerics):
		r.add(r.pos(e.value), rules.GoName, "go_name %s of %s is not usable: it must start with A-Z and go on "+
			"with "+
			"letters and digits", hint.Quote(g), what)
	case len(g) > maxResourceName:
		r.add(r.pos(e.value), rules.GoName, "go_name of %s has %d letters: it can have at most %d", what, len(g),
			maxResourceName)
	default:
		return g
	}
	return ""
}
