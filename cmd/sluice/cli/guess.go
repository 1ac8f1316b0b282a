package cli

import (
	"regexp"
	"strings"

	"github.com/agext/levenshtein"
)

// guesses matches what kong appends to its error about a word: names that are at most two letters off. For
// short words these are any names.
var guesses = regexp.MustCompile(
	`^((?:unexpected argument|unknown flag) (\S+)), did you mean (?:one of )?(.+)\?$`)

// withNearGuesses returns an error of kong with the near ones of its guesses. These begin with the word, or
// have at most a third of the word's letters wrong, rounded up.
func withNearGuesses(text string) string {
	parts := guesses.FindStringSubmatch(text)
	if parts == nil {
		return text
	}
	word := parts[2]
	var near []string
	for guess := range strings.SplitSeq(parts[3], ", ") {
		name := strings.Trim(guess, `"`)
		letters := strings.TrimLeft(word, "-")
		if strings.HasPrefix(name, word) || levenshtein.Distance(word, name, nil) <= (len(letters)+2)/3 {
			near = append(near, guess)
		}
	}
	if len(near) == 0 {
		return parts[1]
	}
	return parts[1] + ", did you mean " + strings.Join(near, " or ") + "?"
}
