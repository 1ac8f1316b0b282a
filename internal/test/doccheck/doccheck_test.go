package doccheck_test

import (
	"context"
	"fmt"
	"io"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sluice-go/sluice/internal/test/doccheck"
)

// world has a sluice that says what it is given, and what is in SLUICE_TABLE.
func world() doccheck.World {
	return doccheck.World{
		Root: "../../..", Schema: "limits.yaml",
		Sluice: func(_ context.Context, args []string, stdout, stderr io.Writer) int {
			if args[0] == "fail" {
				_, _ = fmt.Fprintln(stderr, "sluice: no")
				return 1
			}
			_, _ = fmt.Fprintf(stdout, "%q on %s in 12ms\nlast\n", args, os.Getenv("SLUICE_TABLE"))
			return 0
		},
		Real: []string{"http://127.0.0.1:8000", "http://127.0.0.1:39481"},
	}
}

// fenced is a block with what stands above it.
func fenced(above, lang, text string) string {
	return strings.TrimSuffix(above, "\n") + "\n```" + lang + "\n" + text + "```\n"
}

// TestHolds: what is right is taken, each in its way.
func TestHolds(t *testing.T) {
	w := world()
	came := 0
	w.Given = map[string]func(){"a full bucket": func() { came++ }}
	w.Masked = []*regexp.Regexp{regexp.MustCompile(`in \d+ms`)}
	text := "# Words: `TestHolds/one`, `TestBuilds`.\n\n" +
		fenced("<!-- given: a full bucket -->", "console",
			"$ export SLUICE_TABLE=mine\n$ sluice peek \"a b\" --at http://127.0.0.1:8000\n"+
				"[\"peek\" \"a b\" \"--at\" \"http://127.0.0.1:8000\"] on mine in 7ms\nlast\n$ sluice peek | grep "+
				"last\nlast\n") +
		fenced("", "", "$ go tool sluice a \\\n    b\n[\"a\" \"b\"] on mine in 7ms\n...\n") +
		fenced("", "console", "$ sluice fail\nsluice: no\n$ sluice fail || echo $?\nsluice: no\n1\n") +
		fenced("", "sh", "sluice peek\nsluice peek >/dev/null\n") +
		fenced("<!-- from limits.yaml -->", "yaml", "version: 1\n# ...\n  embeddings:\n") +
		fenced("<!-- from internal/test/doccheck/doccheck_test.go -->", "go", "func TestHolds(t *testing.T) {\n") +
		fenced("", "yaml", "resources:\n  gpt-4: {settle: lazy}\n") +
		fenced("<!-- held by TestHolds -->", "", "whatever\n") +
		fenced("<!-- not run: it needs AWS -->", "sh", "aws s3 ls\n")
	r := doccheck.Check(t.Context(), w, "x.md", text)
	if len(r.Wrong) > 0 || came != 1 {
		t.Errorf("%d states; %s", came, strings.Join(r.Wrong, "\n"))
	}
	want := map[string]int{"run": 4, "quoted": 2, "read": 1, "held by a test": 1, "not run": 1}
	if diff := cmp.Diff(want, r.Kinds); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"x.md:52: it needs AWS"}, r.NotRun); diff != "" {
		t.Error(diff)
	}
}

// TestFinds is the control: what does not hold is found, with its place.
func TestFinds(t *testing.T) {
	for name, c := range map[string]struct{ text, want string }{
		"another output": {fenced("", "console", "$ sluice peek\n[\"peek\"] on  in 12ms\nfirst\n"),
			"x.md:2: $ sluice peek\n"},
		"output left out": {fenced("", "console", "$ sluice peek\n[\"peek\"] on  in 12ms\n"),
			"x.md:2: $ sluice peek\n"},
		"lines that never come": {fenced("", "console", "$ sluice peek\n...\nfirst\n"), "x.md:2: $ sluice peek\n"},
		"a command that fails": {fenced("", "sh", "sluice peek\nsluice fail\n"),
			"x.md:2: sluice fail fails: exit status 1\nsluice: no"},
		"a program it does not": {fenced("", "sh", "aws s3 ls\n"),
			"aws s3 ls fails: exit status 127\ndoccheck runs no aws"},
		"no shell":  {fenced("", "console", "$ sluice (\n"), "no shell reads this"},
		"no prompt": {fenced("", "console", "sluice peek\n"), "it does not begin with a command"},
		"an unknown state": {fenced("<!-- given: snow -->", "console", "$ sluice peek\n"),
			`nothing brings about "snow"`},
		"no such file": {fenced("<!-- from nowhere.go -->", "go", "package x\n"),
			"it is quoted from nowhere.go, which cannot be read"},
		"a line that is not": {fenced("<!-- from limits.yaml -->", "yaml", "version: 1\nrevision: 7\n"),
			"limits.yaml does not have this"},
		"another order": {fenced("<!-- from limits.yaml -->", "yaml", "resources:\n# ...\nversion: 1\n"),
			"limits.yaml does not have this, or not here:\nversion: 1"},
		"Go that is not built": {fenced("<!-- from internal/test/nocompile/testdata/accepted/x.go -->", "go",
			"package x\n"), "Go does not build"},
		"a file with a mistake": {fenced("", "yaml", "version: 1\nrevision: 0\n"), "ZERO_NUMBER"},
		"an unknown key":        {fenced("", "yaml", "resources:\n  gpt-4: {setle: lazy}\n"), "UNKNOWN_KEY"},
		"no YAML":               {fenced("", "yaml", "a: b: c\n"), "this is no limits.yaml, nor a part"},
		"a list":                {fenced("", "yaml", "- a\n"), "it has no keys"},
		"no such test": {fenced("<!-- held by TestNothing -->", "", "x\n"),
			"there is no test TestNothing"},
		"a test in the text": {"As `TestNothing` shows.\n", "x.md:1: there is no test TestNothing"},
		"held by nothing":    {fenced("", "", "x\n"), "x.md:2: this block is held by nothing"},
		"another language":   {fenced("", "json", "{}\n"), "this block is held by nothing"},
		"no reason":          {fenced("<!-- not run: -->", "json", "{}\n"), "this block is held by nothing"},
		"a mark above no block": {"<!-- from limits.yaml -->\nText.\n",
			"x.md:1: `from limits.yaml` stands above no block"},
		"a block without an end": {"```sh\nsluice peek\n", "x.md:1: this block has no end"},
		"a state of nobody":      {"Text.\n", `x.md: no block is given "rain"`},
		"Go that does not build": {fenced("", "go", "package x\n\nvar n int = \"one\"\n"), "cannot use \"one\""},
		"a test that fails": {fenced("", "go",
			"package x\n\nimport \"testing\"\n\nfunc TestIt(t *testing.T) { t.Fatal(\"it rains\") }\n"), "it rains"},
		"the begin of a line": {fenced("<!-- from limits.yaml -->", "yaml", "version: 1\n# ...\nrevision:\n"),
			"limits.yaml does not have this"},
		"the end of a line": {fenced("<!-- from limits.yaml -->", "yaml", "1\n"),
			"limits.yaml does not have this"},
		"a quotation of nothing": {fenced("<!-- from limits.yaml -->", "yaml", "\n"),
			"limits.yaml does not have this"},
		"no commands":            {fenced("", "console", ""), "x.md:2: it has no command"},
		"no commands of a shell": {fenced("", "sh", "\n"), "x.md:2: it has no command"},
		"a failure left out": {fenced("", "console", "$ sluice fail\n...\n"),
			"x.md:2: $ sluice fail fails: exit status 1"},
		"a first command": {fenced("", "sh", "sluice fail; sluice peek\n"),
			"x.md:2: sluice fail; sluice peek fails: exit status 1"},
		"a file outside":      {fenced("", "sh", "echo 1 >../x\n"), "outside of the folder"},
		"more behind a fence": {fenced("", "go title=x", "x := 1\n"), "x.md:2: no language"},
		"another fence":       {"~~~\nsluice peek\n~~~\n", "x.md:1: no language"},
		"a file removed":      {fenced("", "sh", "rm -f ../x\n"), "rm: ../x is outside of the folder"},
		"a test of another": {fenced("<!-- held by TestFind -->", "", "x\n"),
			"TestFind is in no file that names this document"},
		"a quoted block":        {"> ```\n> sluice peek\n> ```\n", "x.md:1: no language"},
		"Go that is not a file": {fenced("", "go", "x := 1\n"), "as a file of its own"},
	} {
		t.Run(name, func(t *testing.T) {
			w := world()
			if name == "a state of nobody" {
				w.Given = map[string]func(){"rain": func() {}}
			}
			r := doccheck.Check(t.Context(), w, "x.md", c.text)
			if len(r.Wrong) != 1 || !strings.Contains(r.Wrong[0], c.want) {
				t.Errorf("found %q, want %q", r.Wrong, c.want)
			}
		})
	}
}

// TestEnds: a command that waits for ever is found.
func TestEnds(t *testing.T) {
	w := world()
	w.Timeout = time.Millisecond
	w.Sluice = func(ctx context.Context, _ []string, _, _ io.Writer) int {
		<-ctx.Done()
		return 1
	}
	for _, lang := range []string{"console", "sh"} {
		r := doccheck.Check(t.Context(), w, "x.md", fenced("", lang, map[string]string{"console": "$ "}[lang]+
			"sluice dev\n"))
		if len(r.Wrong) != 1 || !strings.Contains(r.Wrong[0], "it does not end") {
			t.Errorf("%s: %q", lang, r.Wrong)
		}
	}
}

// TestFixes: wrong output can be replaced, and is right then.
func TestFixes(t *testing.T) {
	text := "Before.\n" + fenced("", "console", "$ sluice one\nfirst\n$ sluice fail\n") + "Between.\n" +
		fenced("", "console", "$ sluice fail\nsluice: no\n") + "After.\n"
	w := world()
	w.Sluice = func(_ context.Context, _ []string, stdout, _ io.Writer) int {
		_, _ = fmt.Fprintln(stdout, "sluice: no")
		return 0
	}
	r := doccheck.Check(t.Context(), w, "x.md", text)
	want := strings.Replace(text, "first\n$ sluice fail\n", "sluice: no\n$ sluice fail\nsluice: no\n", 1)
	if diff := cmp.Diff(want, r.Fixed); diff != "" || len(r.Wrong) != 2 {
		t.Errorf("%d wrong; (-want +got)\n%s", len(r.Wrong), diff)
	}
	if r = doccheck.Check(t.Context(), w, "x.md", r.Fixed); len(r.Wrong) != 0 {
		t.Error(r.Wrong)
	}
}

// TestBuilds: Go that is right is built, and its tests run.
func TestBuilds(t *testing.T) {
	text := fenced("", "go", "package x\n\nvar N = 1\n") +
		fenced("", "go", "package x\n\nimport \"testing\"\n\nfunc TestIt(t *testing.T) {}\n")
	r := doccheck.Check(t.Context(), world(), "x.md", text)
	if len(r.Wrong) > 0 || r.Kinds["built"] != 2 {
		t.Errorf("%v, %v", r.Wrong, r.Kinds)
	}
}
