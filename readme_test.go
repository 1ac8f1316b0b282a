package sluice_test

import (
	"os"
	"regexp"
	"strings"
	"testing"
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
