// Package hint has the parts of messages that show names: what was probably meant, lists of what there is,
// and texts of the file.
package hint

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/agext/levenshtein"

	"github.com/sluice-go/sluice/gen/internal/goname"
)

const (
	// maxDistances bounds the work on the hints of one file, to about 0.1 s. Further mistakes get no hints.
	maxDistances = 50_000
	// MaxChoices is the most names that a message lists.
	MaxChoices = 12
)

// Hints gives hints on the mistakes of one file. The zero Hints is ready.
type Hints struct {
	distances int // number of distances computed; see maxDistances
}

// Nearest returns the known name that text probably misspells: at most a third of its letters are wrong.
func (h *Hints) Nearest(text string, known []string) (string, bool) {
	best, found := "", false
	least := max(1, len(text)/3) + 1
	if len(text) > maxEcho { // longer than any name: the distance would cost its square
		return "", false
	}
	for _, k := range known {
		if off := len(k) - len(text); off >= least || -off >= least {
			continue
		}
		if h.distances++; h.distances > maxDistances {
			break
		}
		if d := levenshtein.Distance(strings.ToLower(text), strings.ToLower(k), nil); d < least && d < len(k) {
			best, found, least = k, true, d
		}
	}
	return best, found
}

// Cure returns the end of a message about text that is none of known: the probable name, or else all of them.
func (h *Hints) Cure(text string, known []string) string {
	if k, ok := h.Nearest(text, known); ok {
		return fmt.Sprintf("did you mean %q?", k)
	}
	return "it can be " + OneOf(known)
}

// OneOf lists names as "a, b or c", the first of them if they are many. They are quoted where one of them has
// to be.
func OneOf(names []string) string {
	written := Bare
	if slices.ContainsFunc(names, func(name string) bool { return !goname.IsIdentifier(name) }) {
		written = Quote
	}
	last := len(names) - 1
	var b strings.Builder
	for i, name := range names {
		switch {
		case i == MaxChoices && i < last:
			return fmt.Sprintf("%s or one of %d more", b.String(), len(names)-i)
		case i > 0 && i == last:
			b.WriteString(" or ")
		case i > 0:
			b.WriteString(", ")
		}
		b.WriteString(written(name))
	}
	return b.String()
}

// Quote returns a text of the file for a message: quoted on one line, and cut if it is long.
func Quote(text string) string { return strconv.Quote(Short(text)) }

// Bare returns the name of a kind or limit for a list or example, without quotes if it needs none.
func Bare(name string) string {
	if goname.IsIdentifier(name) {
		return name
	}
	return Quote(name)
}

// Short returns text cut at maxEcho letters.
func Short(text string) string {
	n := 0
	for i := range text {
		if n++; n > maxEcho {
			return text[:i] + "..."
		}
	}
	return text
}

// maxEcho is the most letters of a text that messages show: those of the longest valid name.
const maxEcho = 64
