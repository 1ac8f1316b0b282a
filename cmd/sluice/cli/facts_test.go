package cli_test

import (
	"slices"
	"strings"
	"testing"
)

// facts returns the words of an error that are no prose: names, numbers, flags, commands and places. Tests
// compare these, so that one place only asserts the wording of an error. For errors of the command line it is
// TestBadArguments and the scripts of cmd/sluice; for others it is the tests of the package that returns
// them.
func facts(text string) []string {
	var all []string
	for word := range strings.FieldsSeq(text) {
		quoted := strings.ContainsAny(word, "`\"'")
		word = strings.Trim(word, "`\"'.,;:()?\\")
		if word != "" && (quoted || strings.ContainsAny(word, "0123456789-_/#=<>{}$*@") ||
			len(word) > 1 && strings.ToUpper(word) == word) {
			all = append(all, word)
		}
	}
	slices.Sort(all)
	return all
}

// sameFacts reports whether two errors have the same facts.
func sameFacts(got, want string) bool {
	return (got == "") == (want == "") && slices.Equal(facts(got), facts(want))
}

// hasFacts reports whether an error has all facts of want, or contains want if that has none.
func hasFacts(got, want string) bool {
	has, wanted := facts(got), facts(want)
	if len(wanted) == 0 {
		return strings.Contains(got, strings.TrimSpace(want))
	}
	return !slices.ContainsFunc(wanted, func(fact string) bool {
		return !slices.ContainsFunc(has, func(word string) bool { return strings.Contains(word, fact) })
	})
}

// TestFacts shows that facts do not depend on wording or punctuation, but on each name and number.
func TestFacts(t *testing.T) {
	const text = "sluice: --hot \"0=80%\" is not K=PERCENT: write it like 10=80%, with K up to 1000 (--entities)"
	for other, want := range map[string]bool{
		strings.ReplaceAll(text, ",", ""):                  true,
		strings.Replace(text, "write it like", "pass", 1):  true,
		strings.Replace(text, "1000", "1001", 1):           false,
		strings.Replace(text, "--entities", "--entity", 1): false,
		strings.Replace(text, "0=80%", "1=80%", 1):         false,
		"": false,
	} {
		if got := sameFacts(text, other); got != want {
			t.Errorf("same facts as %q: %v", other, got)
		}
	}
	if hasFacts(text, "is no") != strings.Contains(text, "is no") || hasFacts(text, "is none") ||
		!hasFacts(text, "1000 (--entities)") || hasFacts(text, "1002") {
		t.Error("hasFacts")
	}
}
