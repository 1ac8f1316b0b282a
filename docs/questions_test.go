package docs_test

import (
	"fmt"
	"io/fs"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
)

// question is one that people ask, and the heading that answers it.
type question struct {
	words  string // words that people look for, all of them in one line of the contents
	answer string // page#heading, below docs; without a heading the whole page
}

var questions = []question{
	{"limit per IP", "how-to/per-ip.md"},
	{"different limits customer", "how-to/per-customer.md"},
	{"daily limit", "how-to/daily-limits.md"},
	{"calendar day month billing", "how-to/calendar-windows.md"},
	{"midnight zone window", "windows.md"},
	{"limit concurrent requests", "how-to/in-flight.md"},
	{"slot back", "in-flight.md"},
	{"skip requests 401", "how-to/skip-or-401.md"},
	{"cost unknown before call", "how-to/unknown-cost.md"},
	{"change many limits at once", "how-to/bulk-changes.md"},
	{"delete user data GDPR", "how-to/erase-a-user.md"},
	{"several services tables", "how-to/several-services.md"},
	{"test my code", "how-to/testing.md"},
	{"use CI", "how-to/ci.md"},
	{"alarms", "how-to/alarms.md"},
	{"several regions", "how-to/regions.md"},
	{"move from redis_rate", "how-to/from-redis-rate.md"},
	{"migrate table one item per limit", "how-to/from-per-limit-items.md"},
	{"change live schema", "how-to/change-a-live-schema.md"},
	{"what cost dollars", "how-to/cost-estimate.md"},
	{"sluice cannot do", "limits.md"},
}

// TestQuestions looks up common questions as a reader does: in the contents, README.md and docs/README.md.
func TestQuestions(t *testing.T) {
	for _, q := range questions {
		if wrong := look(os.DirFS("."), q); wrong != "" {
			t.Error(wrong)
		}
	}
}

// TestQuestionsControl asks what no page answers, and breaks the ways to an answer.
func TestQuestionsControl(t *testing.T) {
	tree := func(contents, page string) fs.FS {
		return fstest.MapFS{
			"README.md":      {Data: []byte("# x\n\n[Water](docs/a_.md#water): how wet is it?\n")},
			"docs/README.md": {Data: []byte(contents)},
			"docs/a_.md":     {Data: []byte(page)},
		}
	}
	const (
		contents = "- [Steam](a_.md#steam): how hot is\n  the boiler?\n- [All](a_.md)\n"
		page     = "# A\n\nIce.\n\n## Water\n\nIt is wet.\n\n## Steam\n\nIt is hot.\n"
	)
	for _, c := range []struct {
		tree fs.FS
		ask  question
		want string
	}{
		{tree(contents, page), question{"hot BOILER", "a_.md#steam"}, ""},
		{tree(contents, page), question{"how wet", "a_.md#water"}, ""},
		{tree(contents, page), question{"all", "a_.md"}, ""},
		{
			tree(contents, page), question{"speed of light", "a_.md#steam"},
			`"speed of light": no line of README.md and docs/README.md has these words`,
		},
		{
			tree(contents, page), question{"wet boiler", "a_.md#steam"},
			`"wet boiler": no line of README.md and docs/README.md has these words`,
		},
		{
			tree(contents, page), question{"ho boiler", "a_.md#steam"},
			`"ho boiler": no line of README.md and docs/README.md has these words`,
		},
		{
			tree(contents, page), question{"boiler", "a_.md#water"},
			`"boiler" leads to [a_.md#steam], want a_.md#water`,
		},
		{
			tree(contents, "# A\n\n## Water\n\nIt is wet.\n"), question{"boiler", "a_.md#steam"},
			`"boiler": docs/a_.md has no heading #steam`,
		},
		{
			tree(contents, "# A\n\n## Steam\n\n## Water\n\nWet.\n"), question{"boiler", "a_.md#steam"},
			`"boiler": nothing stands below a_.md#steam`,
		},
		{tree("[Steam](b_.md)\n", page), question{"steam", "b_.md"}, `"steam": there is no docs/b_.md`},
	} {
		if got := look(c.tree, c.ask); got != c.want {
			t.Errorf("%+v: %q, want %q", c.ask, got, c.want)
		}
	}
}

// look says why a question is not answered, or "".
func look(tree fs.FS, q question) string {
	var found []string
	for _, contents := range []string{"README.md", "docs/README.md"} {
		text, err := fs.ReadFile(tree, contents)
		if err != nil {
			return err.Error()
		}
		for _, entry := range entries(string(text)) {
			if !hasWords(linkText.ReplaceAllString(entry, "$1"), q.words) {
				continue
			}
			for _, m := range link.FindAllStringSubmatch(entry, -1) {
				target := path.Join(path.Dir(contents), m[1])
				found = append(found, strings.TrimPrefix(target, "docs/"))
			}
		}
	}
	switch {
	case len(found) == 0:
		return fmt.Sprintf("%q: no line of README.md and docs/README.md has these words", q.words)
	case !slices.Contains(found, q.answer):
		return fmt.Sprintf("%q leads to %v, want %s", q.words, found, q.answer)
	}
	page, anchor, anchored := strings.Cut(q.answer, "#")
	text, err := fs.ReadFile(tree, "docs/"+page)
	if err != nil {
		return fmt.Sprintf("%q: there is no docs/%s", q.words, page)
	}
	if !anchored {
		return ""
	}
	headings, _ := headingsOf(tree, "docs/"+page)
	i := slices.Index(anchors(headings), anchor)
	if i < 0 {
		return fmt.Sprintf("%q: docs/%s has no heading #%s", q.words, page, anchor)
	}
	if len(sections(string(text))[i]) == 0 {
		return fmt.Sprintf("%q: nothing stands below %s", q.words, q.answer)
	}
	return ""
}

// entries returns the lines of a contents page, with those that continue an item of a list.
func entries(text string) (all []string) {
	for line := range strings.SplitSeq(text, "\n") {
		if strings.HasPrefix(line, "  ") && len(all) > 0 {
			all[len(all)-1] += " " + strings.TrimSpace(line)
			continue
		}
		all = append(all, line)
	}
	return all
}

// word is one of those that hasWords compares.
var word = regexp.MustCompile(`[\pL\pN_]+`)

// hasWords reports whether a line has all words, in any order.
func hasWords(line, words string) bool {
	has := word.FindAllString(strings.ToLower(line), -1)
	for _, w := range word.FindAllString(strings.ToLower(words), -1) {
		if !slices.Contains(has, w) {
			return false
		}
	}
	return true
}

// sections returns the text below each heading of a document, up to the next heading.
func sections(text string) (all []string) {
	blank := func(block string) string { return strings.ReplaceAll(block, "\n#", "\n ") }
	text = fenced.ReplaceAllStringFunc(text, blank)
	at := heading.FindAllStringIndex(text, -1)
	for i, m := range at {
		end := len(text)
		if i+1 < len(at) {
			end = at[i+1][0]
		}
		all = append(all, strings.TrimSpace(text[m[1]:end]))
	}
	return all
}
