package docs_test

import (
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluice-go/sluice/cmd/sluice/cli"
	"github.com/sluice-go/sluice/runtime/memdynamo"
)

// loadBlocks are the blocks of commands in docs/load.md.
func loadBlocks(t *testing.T) (blocks []string) {
	t.Helper()
	for _, block := range regexp.MustCompile("(?s)```\n(\\$ .*?)```").FindAllStringSubmatch(read(t,
		"docs/load.md"), -1) {
		blocks = append(blocks, block[1])
	}
	return blocks
}

// shape is what of a report does not depend on the machine: its headings, and the words of its other lines.
func shape(report string) (words []string) {
	numbers := regexp.MustCompile(`[\d.,]+(%| ms| µs| s\b)?|[▏▎▍▌▋▊▉█]+`)
	for line := range strings.Lines(report) {
		if line = strings.Join(strings.Fields(numbers.ReplaceAllString(line, " ")), " "); line != "" {
			words = append(words, line)
		}
	}
	slices.Sort(words)
	return slices.Compact(words)
}

// TestDocsLoad: the command of docs/load.md comes to a report of the form that is shown there. Its times are
// virtual here, and it is shorter.
func TestDocsLoad(t *testing.T) {
	command, shown, _ := strings.Cut(loadBlocks(t)[0], "\n")
	synctest.Test(t, func(t *testing.T) {
		var out, errs strings.Builder
		args := append(strings.Fields(strings.TrimPrefix(command, "$ sluice ")), "--duration", "4s")
		if code := (cli.Program{Stdout: &out, Stderr: &errs, Now: time.Now}).Run(t.Context(), args); code != 0 {
			t.Fatal(code, errs.String())
		}
		got, want := shape(out.String()), shape(shown)
		for _, line := range want {
			if !slices.Contains(got, line) {
				t.Errorf("docs/load.md shows %q; the report has\n%s", line, out.String())
			}
		}
		if slices.Contains(got, shape("DENIED BY NOBODY  12 ms")[0]) ||
			!slices.Contains(got, shape("check: ok: each of 12 calls had one outcome, and the observer got it")[0]) {
			t.Error("the comparison does not see what is not there, or not what is")
		}
		if len(want) < 20 {
			t.Errorf("docs/load.md shows too little: %q", want)
		}
	})
}

// TestDocsLoadTable: the commands for a table are accepted, and leave nothing behind, cut to a few calls.
func TestDocsLoadTable(t *testing.T) {
	engine := memdynamo.New()
	server := httptest.NewServer(engine)
	t.Cleanup(server.Close)
	for line := range strings.Lines(loadBlocks(t)[1]) {
		args := append(strings.Fields(strings.TrimPrefix(line, "$ sluice ")), "--endpoint", server.URL)
		if args[0] == "load" {
			args = append(args, "--calls", "40")
		}
		var out, errs strings.Builder
		if code := (cli.Program{Stdout: &out, Stderr: &errs, Now: time.Now}).Run(t.Context(), args); code != 0 {
			t.Errorf("%s: exit code %d\n%s", line, code, errs.String())
		}
		if args[0] == "load" &&
			(!strings.Contains(out.String(), "\n40 calls") && !strings.HasPrefix(out.String(), "40 calls") ||
				!strings.Contains(out.String(), " buckets deleted\n")) {
			t.Errorf("%s:\n%s", line, out.String())
		}
	}
	bill := engine.Consumed().Tables["load_limits"]["BatchWriteItem"].Applied.Write
	if bill == 0 {
		t.Error("nothing was deleted")
	}
}
