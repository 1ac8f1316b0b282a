package schema

import (
	"github.com/sluice-go/sluice/gen/internal/goname"
	"github.com/sluice-go/sluice/gen/internal/hint"
	"github.com/sluice-go/sluice/gen/internal/rules"
)

// maxOwner is the longest owner: errors print it in a sentence.
const maxOwner = 64

// owner reads the owner of the tables: [a-z0-9][a-z0-9._/-]{0,63}. It returns "" after it has reported one
// that is not usable. Tables record it, and errors and commands print it as it is.
func (r schemaReader) owner(e entry) string {
	text, ok := r.text(e.value, "owner", "a name, such as acme")
	switch {
	case !ok:
	case !goname.Made(text, goname.Lowers+goname.Digits, goname.Lowers+goname.Digits+"._/-"):
		r.add(r.pos(e.value), rules.BadName, "owner %s has a bad name: it must start with a-z or 0-9 and go on "+
			"with "+
			"these or . _ / -", hint.Quote(text))
	case len(text) > maxOwner:
		r.add(r.pos(e.value), rules.BadName, "owner has a name of %d letters: it can have at most %d", len(text),
			maxOwner)
	default:
		return text
	}
	return ""
}
