package docs_test

import (
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"
)

// The bounds of prose.
const (
	mostWords   = 30
	mostColumns = 110
)

// notYetPlain are pages that were written before the lint. Take a page out once it has no findings.
var notYetPlain = []string{
	"docs/adr/0001-one-item-per-bucket.md",
	"docs/adr/0002-one-clock-for-mixed-periods.md",
	"docs/adr/0003-five-write-paths.md",
	"docs/adr/0004-an-id-for-each-write.md",
	"docs/adr/0005-batching-in-the-process.md",
	"docs/adr/0006-time-source-per-store.md",
	"docs/adr/0007-escrow-between-regions.md",
	"docs/adr/0008-own-encoder-and-decoder.md",
	"docs/adr/0009-an-engine-in-the-process.md",
	"docs/adr/0011-a-client-for-five-calls.md",
	"docs/adr/README.md",
	"docs/architecture.md",
	"docs/changing.md",
	"docs/design.md",
	"docs/dynamodb.md",
	"docs/expressions.md",
	"docs/grpc.md",
	"docs/load.md",
	"docs/migration.md",
	"docs/observability.md",
	"docs/protocol.md",
	"docs/redis.md",
	"docs/regions.md",
	"docs/runbook.md",
	"docs/schema.md",
	"docs/shadow.md",
	"docs/usage.md",
}

// TestWords holds the prose of README, CONTRIBUTING and docs to what can be counted of plain English.
func TestWords(t *testing.T) {
	pages := []string{"README.md", "CONTRIBUTING.md"}
	for _, pattern := range []string{"docs/*.md", "docs/*/*.md"} {
		found, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		pages = append(pages, found...)
	}
	for _, page := range pages {
		wrong := checkWords(page, read(t, page))
		if !slices.Contains(notYetPlain, page) {
			for _, w := range wrong {
				t.Error(w)
			}
			continue
		}
		t.Logf("%s: %d findings", page, len(wrong))
		if len(wrong) == 0 {
			t.Errorf("%s has no findings: take it out of notYetPlain", page)
		}
	}
}

// TestWordsControl breaks each rule, and keeps each exception.
func TestWordsControl(t *testing.T) {
	long := strings.Repeat("word ", 31) + "end."
	two := strings.Repeat("word ", 20) + "end."
	for _, c := range []struct{ text, want string }{
		{"One sentence. Another one.", ""},
		{"Where is it? What is it?", ""},
		{"Here. Where it is not, all ends.", `x.md:1: opens with "Where": Where it is not, all ends.`},
		{"Who calls waits.", `x.md:1: opens with "Who": Who calls waits.`},
		{"- **What** is here.", `x.md:1: opens with "What": What is here.`},
		{"1. Of which\n   one is here.", `x.md:1: opens with "Of which": Of which one is here.`},
		{"Whoever comes.", `x.md:1: opens with "Whoever": Whoever comes.`},
		{"> What comes, in another's words.", ""},
		{wrap(long), "x.md:1: 32 words, at most 30: " + long},
		{"- " + wrap(two+"\n- "+two), ""},
		{wrap(strings.Repeat("word ", 25)) + " `a b c d e f` [x](y.md) i.e. ends here.", ""},
		{"| Where | " + long + " |", ""},
		{"# Where it is", ""},
		{"```\nWhere " + long + "\n```", ""},
		{"<!-- not run: Where " + long + " -->", ""},
		{strings.Repeat("x", 111), "x.md:1: 111 columns, at most 110"},
		{strings.Repeat("é", 110), ""},
		{"| " + strings.Repeat("x", 111) + " |", ""},
		{"a\n\n" + strings.Repeat("x", 111), "x.md:3: 111 columns, at most 110"},
	} {
		if got := strings.Join(checkWords("x.md", c.text), "; "); got != c.want {
			t.Errorf("%s\n%q, want %q", c.text, got, c.want)
		}
	}
}

// wrap breaks a text into lines of less than 110 columns.
func wrap(text string) string {
	return regexp.MustCompile(`(.{80,100}) `).ReplaceAllString(text, "$1\n")
}

var (
	opensWith = regexp.MustCompile(`^(Whoever|Who|Whose|What|Where|Of which)\b`)
	itemMark  = regexp.MustCompile(`^\s*(?:[-*+]|[0-9]+\.) +`)
	quoteMark = regexp.MustCompile(`^\s*(?:> ?)+`)
	linkText  = regexp.MustCompile(`!?\[([^\]]*)\]\([^)]*\)`)
	codeSpan  = regexp.MustCompile("`[^`]*`")
	ends      = regexp.MustCompile("[.!?][)\"'”*_]*$")
	noEnd     = regexp.MustCompile(`^\(?(e\.g\.|i\.e\.|cf\.|vs\.|etc\.|\.+)$`)
)

// checkWords returns the findings in a document's prose: its paragraphs and items of lists. Blocks, tables,
// headings and comments have none.
func checkWords(name, text string) (wrong []string) {
	blank := func(block string) string { return strings.Repeat("\n", strings.Count(block, "\n")) }
	text = fenced.ReplaceAllStringFunc(text, blank)
	var paragraph []string
	begin := 0
	flush := func() {
		for _, s := range sentences(strings.Join(paragraph, " ")) {
			at := fmt.Sprintf("%s:%d: ", name, begin)
			if n := countWords(s); n > mostWords {
				wrong = append(wrong, fmt.Sprintf("%s%d words, at most %d: %s", at, n, mostWords, s))
			}
			if m := opensWith.FindString(s); m != "" && !strings.HasSuffix(s, "?") {
				wrong = append(wrong, fmt.Sprintf("%sopens with %q: %s", at, m, s))
			}
		}
		paragraph = nil
	}
	for i, line := range strings.Split(text, "\n") {
		trimmed := strings.TrimSpace(line)
		if trimmed == "" || strings.HasPrefix(trimmed, "|") || strings.HasPrefix(trimmed, "#") ||
			strings.HasPrefix(trimmed, "<!--") {
			flush()
			continue
		}
		if n := utf8.RuneCountInString(line); n > mostColumns {
			wrong = append(wrong, fmt.Sprintf("%s:%d: %d columns, at most %d", name, i+1, n, mostColumns))
		}
		if quoteMark.MatchString(line) { // somebody else's words
			flush()
			continue
		}
		if itemMark.MatchString(line) {
			flush()
			trimmed = strings.TrimSpace(itemMark.ReplaceAllString(line, ""))
		}
		if len(paragraph) == 0 {
			begin = i + 1
		}
		paragraph = append(paragraph, trimmed)
	}
	flush()
	return wrong
}

// sentences splits a paragraph. A code span and a link's address count as one word or none.
func sentences(paragraph string) (all []string) {
	paragraph = codeSpan.ReplaceAllString(paragraph, "`code`")
	paragraph = linkText.ReplaceAllString(paragraph, "$1")
	paragraph = strings.NewReplacer("**", "", "*", "").Replace(paragraph)
	var words []string
	for word := range strings.FieldsSeq(paragraph) {
		words = append(words, word)
		if ends.MatchString(word) && !noEnd.MatchString(word) {
			all, words = append(all, strings.Join(words, " ")), nil
		}
	}
	if len(words) > 0 {
		all = append(all, strings.Join(words, " "))
	}
	return all
}

// countWords counts what has a letter or a digit.
func countWords(sentence string) (n int) {
	for word := range strings.FieldsSeq(sentence) {
		if strings.ContainsFunc(word, func(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) }) {
			n++
		}
	}
	return n
}
