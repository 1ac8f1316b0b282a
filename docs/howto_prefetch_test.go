package docs_test

import (
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluice-go/sluice/cmd/sluice/cli"
	"github.com/sluice-go/sluice/internal/test/longform"
)

// figures returns the numbers that each of patterns finds in text.
func figures(t *testing.T, text string, patterns ...string) (all []float64) {
	t.Helper()
	for _, pattern := range patterns {
		found := regexp.MustCompile(pattern).FindStringSubmatch(text)
		if found == nil {
			all = append(all, 0)
			continue
		}
		n, err := strconv.ParseFloat(found[1], 64)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, n)
	}
	return all
}

// prefetched returns the line of EXPRESSIONS.md on what a limits.yaml lets be prefetched, or "".
func prefetched(t *testing.T, file string) string {
	t.Helper()
	var out, errs strings.Builder
	args := []string{"generate", "--file", file}
	if code := (cli.Program{Stdout: &out, Stderr: &errs, Now: time.Now}).Run(t.Context(), args); code != 0 {
		t.Fatal(code, errs.String())
	}
	text, err := os.ReadFile(filepath.Join(filepath.Dir(file), "limits", "EXPRESSIONS.md"))
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSuffix(regexp.MustCompile(`(?m)^.* prefetched .*$`).FindString(string(text)), "\n")
}

// TestDocsPrefetch runs the commands of docs/how-to/prefetch.md, the load in virtual time, for each row of
// the table there that has figures. The table has what they print, as near as loads with other turns of
// goroutines come to it.
func TestDocsPrefetch(t *testing.T) {
	doc := read(t, "docs/how-to/prefetch.md")
	schema := regexp.MustCompile("(?s)```yaml\n(.*?)```").FindStringSubmatch(doc)[1]
	block := regexp.MustCompile(`(?s)\n\$ sluice (load .*?) \| grep`).FindStringSubmatch(doc)[1]
	command := strings.Fields(strings.ReplaceAll(block, "\\\n", " "))
	const key = "    prefetch: 200ms\n"
	for row, own := range map[string]string{
		"no `prefetch`: exact": "", "`prefetch: 100ms`": "    prefetch: 100ms\n", "`prefetch: 200ms`": key,
		"`prefetch: 1s`": "    prefetch: 1s\n",
	} {
		t.Run(row, func(t *testing.T) {
			if own != key {
				longform.Only(t, "the row of 200 ms")
			}
			file := filepath.Join(t.TempDir(), "limits.yaml")
			if err := os.WriteFile(file, []byte(strings.Replace(schema, key, own, 1)), 0o600); err != nil {
				t.Fatal(err)
			}
			cells := regexp.MustCompile(`(?m)^\| ` + regexp.QuoteMeta(row) + ` \|.*$`).FindString(doc)
			bound := prefetched(t, file)
			if want := strings.Split(cells, " | ")[1]; own != "" && !strings.Contains(bound, ": "+want+" (") {
				t.Errorf("the table has the bound %q, and EXPRESSIONS.md %q", want, bound)
			}
			if (own == "") != (bound == "") || own == key && !strings.Contains(doc, "\n"+bound+"\n```") {
				t.Errorf("EXPRESSIONS.md has %q, and the page does not", bound)
			}
			want := figures(t, cells, `\| (0\.\d+) \|`, `\| ([\d.]+) ms,`, `, ([\d.]+) ms \|`, `\| ([\d.]+) % \|`)
			synctest.Test(t, func(t *testing.T) {
				var out, errs strings.Builder
				args := append(slices.Clone(command), "--file", file)
				if code := (cli.Program{Stdout: &out, Stderr: &errs, Now: time.Now}).Run(t.Context(), args); code != 0 {
					t.Fatal(code, errs.String())
				}
				got := figures(t, out.String(), `(?m)^([\d.]+) capacity units per acquire`,
					`(?m)^admitted .*\s([\d.]+) ms(?:\s+[\d.]+ ms){4}$`, `(?m)^admitted .*\s([\d.]+) ms(?:\s+[\d.]+ ms){2}$`,
					`admitted calls \(([\d.]+)%\)`)
				for i, tolerance := range []float64{0.25 * want[0], 0.5, 8, 3} {
					if math.Abs(got[i]-want[i]) > tolerance {
						t.Errorf("the command prints %v, the table has %v:\n%s", got, want, out.String())
						break
					}
				}
			})
		})
	}
}
