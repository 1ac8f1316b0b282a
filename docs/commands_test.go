package docs_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

// TestEveryCommandIsDocumented fails if neither README nor docs show how to call a command of `sluice
// --help`.
func TestEveryCommandIsDocumented(t *testing.T) {
	var help strings.Builder
	if code := sluiceAt(time.Now)(t.Context(), []string{"--help"}, &help, &help); code != 0 {
		t.Fatal(help.String())
	}
	files, err := filepath.Glob("docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	var text strings.Builder
	for _, file := range append(files, "README.md") {
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		text.Write(b)
	}
	names := commandNames(help.String())
	if len(names) < 15 {
		t.Fatalf("`sluice --help` lists only %v", names)
	}
	for name := range names {
		if !mentions(text.String(), name) {
			t.Errorf("neither README.md nor docs/*.md mention `sluice %s`: describe it there", name)
		}
	}
	if mentions(text.String(), "no-such-command") {
		t.Error("the control, a command that does not exist, is documented")
	}
}

// commandNames returns the names of commands that a help text lists, without subcommands.
func commandNames(help string) map[string]bool {
	names := map[string]bool{}
	_, list, _ := strings.Cut(help, "\nCommands:\n")
	for _, match := range regexp.MustCompile(`(?m)^  ([a-z]+)\b`).FindAllStringSubmatch(list, -1) {
		names[match[1]] = true
	}
	return names
}

// mentions reports whether a text has a call of a command.
func mentions(text, name string) bool {
	return regexp.MustCompile(`\bsluice ` + regexp.QuoteMeta(name) + `\b`).MatchString(text)
}
