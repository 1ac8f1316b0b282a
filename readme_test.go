package sluice_test

import (
	"context"
	"io"
	"os"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"

	limits "github.com/sluice-go/sluice/generated"
	"github.com/sluice-go/sluice/runtime/limittest"
)

// quotation is a block of README.md that stands under `<!-- from FILE -->`.
var quotation = regexp.MustCompile("(?s)<!-- from (\\S+) -->\n```\\w*\n(.*?)\n```")

// TestReadmeQuotes finds every quotation in the file that it names, so that README shows code that compiles and
// expressions that run. Indentation does not count.
func TestReadmeQuotes(t *testing.T) {
	quotes := quotation.FindAllStringSubmatch(read(t, "README.md"), -1)
	if len(quotes) == 0 {
		t.Fatal("README.md quotes nothing")
	}
	for _, q := range quotes {
		if part := misquoted(q[2], read(t, q[1])); part != "" {
			t.Errorf("README.md quotes from %s what is not there:\n%s", q[1], part)
		}
	}
}

// TestReadmeQuotesAllOfLimits: who copies the quotation has a file that generates.
func TestReadmeQuotesAllOfLimits(t *testing.T) {
	if !strings.Contains(read(t, "README.md"), "\n```yaml\n"+read(t, "limits.yaml")+"```\n") {
		t.Error("README.md does not quote all of limits.yaml")
	}
}

// TestReadmeRuns: what README shows of calls does what it says.
func TestReadmeRuns(t *testing.T) {
	user := limits.User{ID: "123", Project: limits.Project{ID: "1"}}
	for name, show := range map[string]func(context.Context, *limits.Limiter) error{
		"a call that is denied": func(ctx context.Context, lim *limits.Limiter) error { return denial(ctx, lim, user) },
		"Wait, Do, Peek":        func(ctx context.Context, lim *limits.Limiter) error { return others(ctx, io.Discard, lim, user) },
		"several resources":     func(ctx context.Context, lim *limits.Limiter) error { return both(ctx, lim, user) },
		"look-ups":              lookUp,
		"overrides":             override,
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				lim, err := limits.New(limittest.Store(t))
				if err == nil {
					err = show(t.Context(), lim)
				}
				if err != nil {
					t.Error(err)
				}
			})
		})
	}
}

// TestMisquoted is the control: a line that the file does not have, and parts in another order, are found.
func TestMisquoted(t *testing.T) {
	const text = "one\n\ttwo\nthree\nfour\n"
	for block, want := range map[string]string{
		"one\n  two":                "",
		"one\n# ...\nfour":          "",
		"one\nthree":                "one\nthree",
		"three\n# ...\none":         "one",
		"one\n# ...\ntwo\nthree\n5": "two\nthree\n5",
	} {
		if got := misquoted(block, text); got != want {
			t.Errorf("misquoted(%q) = %q, want %q", block, got, want)
		}
	}
}

// misquoted returns the first part of block that text does not have, or nothing. A line `# ...` or `// ...` stands for
// lines left out.
func misquoted(block, text string) string {
	rest := flush(text)
	for part := range strings.SplitSeq(strings.ReplaceAll(flush(block), "\n// ...\n", "\n# ...\n"), "\n# ...\n") {
		_, after, found := strings.Cut(rest, part)
		if !found {
			return part
		}
		rest = after
	}
	return ""
}

func read(t *testing.T, name string) string {
	t.Helper()
	data, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// flush takes the indentation from every line.
func flush(text string) string {
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		lines[i] = strings.TrimSpace(line)
	}
	return strings.Join(lines, "\n")
}
