package sluice_test

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	limits "github.com/sluice-go/sluice/generated"
	"github.com/sluice-go/sluice/internal/cli"
	"github.com/sluice-go/sluice/runtime/limittest"
)

//go:embed docs/changing.md
var changing string

// quotation is a block of README.md, or of docs, that stands under `<!-- from FILE -->`.
var quotation = regexp.MustCompile("(?s)<!-- from (\\S+) -->\n```\\w*\n(.*?)\n```")

// TestQuotes finds every quotation in the file that it names, so that README and docs show code that compiles and expressions
// that run. Indentation does not count.
func TestQuotes(t *testing.T) {
	docs, err := filepath.Glob("docs/*.md")
	if err != nil || len(docs) == 0 {
		t.Fatal("no docs: ", err)
	}
	for _, name := range append(docs, "README.md") {
		quotes := quotation.FindAllStringSubmatch(read(t, name), -1)
		if len(quotes) == 0 && name == "README.md" {
			t.Fatal("README.md quotes nothing")
		}
		for _, q := range quotes {
			if part := misquoted(q[2], read(t, q[1])); part != "" {
				t.Errorf("%s quotes from %s what is not there:\n%s", name, q[1], part)
			}
		}
	}
}

// TestDocsBreak: what docs/changing.md shows of sluice breaking is what it says of the demo's limits, changed so.
func TestDocsBreak(t *testing.T) {
	before := read(t, "limits.yaml")
	after := before
	for _, change := range [][2]string{
		{"revision: 1 ", "revision: 2 "},
		{"      rpm: {doc: requests per minute, capacity: 100, every: 1m, per_call: 1}\n", ""},
		{"        rpm: {capacity: 1_000}\n", ""},
		{"on_unavailable: local", "on_unavailable: allow"},
	} {
		if !strings.Contains(after, change[0]) {
			t.Fatalf("limits.yaml has no %q", change[0])
		}
		after = strings.Replace(after, change[0], change[1], 1)
	}
	old := filepath.Join(t.TempDir(), "old.yaml")
	t.Chdir(t.TempDir())
	if err := errors.Join(os.WriteFile(old, []byte(before), 0o600), os.WriteFile("limits.yaml", []byte(after), 0o600)); err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	code := cli.Program{Stdout: &out, Stderr: io.Discard, Now: time.Now}.Run(t.Context(), []string{"breaking", "--against", old})
	if code != 1 || !strings.Contains(changing, "```\n"+out.String()+"```\n") {
		t.Errorf("docs/changing.md does not show this (exit code %d):\n%s", code, &out)
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
		"a call": func(ctx context.Context, lim *limits.Limiter) error {
			reply, err := complete(ctx, lim.GPT4, user, "say something")
			if snap, failed := lim.GPT4.Peek(ctx, user); failed != nil || reply == "" || snap.Available.TPM != 15_000-4 {
				err = errors.Join(err, failed, fmt.Errorf("replied %q; %+v is left", reply, snap))
			}
			return err
		},
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
