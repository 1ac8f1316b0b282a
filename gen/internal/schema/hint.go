package schema

import (
	"fmt"
	"slices"
	"strings"

	"github.com/agext/levenshtein"
)

const (
	// maxDistances bounds the work on the hints of one file, to about 0.1 s. Further mistakes get no hints.
	maxDistances = 50_000
	// maxChoices is the most names that a message lists.
	maxChoices = 12
)

// nearest returns the known name that text probably misspells: at most a third of its letters are wrong.
func (r *reader) nearest(text string, known []string) (string, bool) {
	best, found := "", false
	least := max(1, len(text)/3) + 1
	if len(text) > maxEcho { // longer than any name: the distance would cost its square
		return "", false
	}
	for _, k := range known {
		if off := len(k) - len(text); off >= least || -off >= least {
			continue
		}
		if r.distances++; r.distances > maxDistances {
			break
		}
		if d := levenshtein.Distance(strings.ToLower(text), strings.ToLower(k), nil); d < least && d < len(k) {
			best, found, least = k, true, d
		}
	}
	return best, found
}

// cure returns the end of a message about text that is none of known: the probable name, or else all of them.
func (r *reader) cure(text string, known []string) string {
	if k, ok := r.nearest(text, known); ok {
		return fmt.Sprintf("did you mean %q?", k)
	}
	return "it can be " + oneOf(known)
}

// oneOf lists names as "a, b or c", the first of them if they are many. They are quoted where one of them has
// to be.
func oneOf(names []string) string {
	written := bare
	if slices.ContainsFunc(names, func(name string) bool { return !isIdentifier(name) }) {
		written = quote
	}
	last := len(names) - 1
	var b strings.Builder
	for i, name := range names {
		switch {
		case i == maxChoices && i < last:
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
