package schema

import (
	"fmt"
	"strings"

	"github.com/agext/levenshtein"
)

// nearest returns the one of known that text is probably a misspelling of: at most a third of its letters are off.
func nearest(text string, known []string) (string, bool) {
	best, found := "", false
	least := max(1, len(text)/3) + 1
	if len(text) > 64 { // longer than any name: the distance would cost its square
		return "", false
	}
	for _, k := range known {
		if d := levenshtein.Distance(strings.ToLower(text), k, nil); d < least && d < len(k) {
			best, found, least = k, true, d
		}
	}
	return best, found
}

// cure returns the end of a message about text that is none of known: what was probably meant, or else all there is.
func cure(text string, known []string) string {
	if k, ok := nearest(text, known); ok {
		return fmt.Sprintf("did you mean %q?", k)
	}
	return "it can be " + oneOf(known)
}

// oneOf lists names as "a, b or c".
func oneOf(names []string) string {
	if n := len(names); n > 1 {
		return strings.Join(names[:n-1], ", ") + " or " + names[n-1]
	}
	return strings.Join(names, "")
}
