package docs_test

import (
	"regexp"
	"strings"
	"testing"
	"time"
)

// TestEveryCommandIsDocumented fails if docs/command.md does not show the help of a command of the grammar.
// TestDocs runs those blocks, and writes them with -update.
func TestEveryCommandIsDocumented(t *testing.T) {
	var help strings.Builder
	if code := sluiceAt(time.Now)(t.Context(), []string{"--help"}, &help, &help); code != 0 {
		t.Fatal(help.String())
	}
	names := commandNames(help.String())
	if len(names) < 30 {
		t.Fatalf("`sluice --help` lists only %q", names)
	}
	page := read(t, "docs/command.md")
	for _, name := range names {
		if !showsHelp(page, name) {
			t.Errorf("docs/command.md has no help of %s: add a console block `$ sluice %[1]s --help`, and run "+
				"go test ./docs -run TestDocs -update", name)
		}
	}
	for _, m := range regexp.MustCompile(`(?m)^### (.*)$`).FindAllStringSubmatch(page, -1) {
		if !strings.Contains(help.String(), "\n  "+m[1]) {
			t.Errorf("docs/command.md describes `sluice %s`, which the grammar does not have", m[1])
		}
	}
}

// TestCommandControl looks for a command that does not exist, and for one without its heading.
func TestCommandControl(t *testing.T) {
	page := read(t, "docs/command.md")
	if showsHelp(page, "no-such-command") {
		t.Error("a command that does not exist is found")
	}
	if showsHelp(strings.Replace(page, "### peek\n", "", 1), "peek") {
		t.Error("peek is found without its heading")
	}
}

// commandNames returns the commands that a help text lists, each with its subcommand.
func commandNames(help string) []string {
	var names []string
	_, list, _ := strings.Cut(help, "\nCommands:\n")
	for _, m := range regexp.MustCompile(`(?m)^  ([a-z]+(?: [a-z]+)?)\b`).FindAllStringSubmatch(list, -1) {
		names = append(names, m[1])
	}
	return names
}

// showsHelp reports whether a page has a heading for a command, and below it a block with its help.
func showsHelp(page, name string) bool {
	return strings.Contains(page, "\n### "+name+"\n\n```console\n$ sluice "+name+" --help\n")
}
