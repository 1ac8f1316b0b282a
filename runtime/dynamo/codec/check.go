package codec

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// maxExpression is the longest expression that DynamoDB takes, in bytes.
const maxExpression = 4096

// Check holds the output of a builder against itself, for the tests of generated code. No expression may be
// longer than DynamoDB takes. Every placeholder needs a name or a value, and every name and value a
// placeholder. It returns the first mistake.
func (w *Write) Check() error {
	if n := max(len(w.Update), len(w.Cond)); n > maxExpression {
		return fmt.Errorf("an expression of %d bytes, more than DynamoDB's %d", n, maxExpression)
	}
	const letters = ":#_abcdefghijklmnopqrstuvwxyz0123456789"
	used := strings.FieldsFunc(w.Update+" "+w.Cond, func(c rune) bool {
		return !strings.ContainsRune(letters, c)
	})
	for _, word := range used {
		_, named := w.Names[word]
		_, valued := w.Values[word]
		if strings.ContainsAny(word, ":#") && !named && !valued {
			return fmt.Errorf("%s is used and not given", word)
		}
	}
	given := slices.Concat(slices.Collect(maps.Keys(w.Names)), slices.Collect(maps.Keys(w.Values)))
	slices.Sort(given)
	for _, word := range given {
		if !slices.Contains(used, word) {
			return fmt.Errorf("%s is given and not used", word)
		}
	}
	return nil
}
