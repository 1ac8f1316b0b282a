package breaking

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sluice-go/sluice/gen"
)

// TestCommandEscapes: nothing of a file's name or a message ends a workflow command or starts another.
func TestCommandEscapes(t *testing.T) {
	change := gen.BreakingChange{Rule: "A_RULE", Severity: "data", Message: "100 % of a: b,\r\n::warning::c"}
	change.File, change.Line, change.Col = "50%,\r\n::a:b.yaml", 3, 7
	const want = "::error file=50%25%2C%0D%0A%3A%3Aa%3Ab.yaml,line=3,col=7,title=A_RULE (data)::100 %25 of a: " +
		"b,%0D%0A::warning::c"
	if got := asCommand(change); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

// TestNoGit: without the command, and with one that fails, comparing with a file is what remains.
func TestNoGit(t *testing.T) {
	bin := t.TempDir()
	t.Setenv("PATH", bin)
	_, _, err := atRef(context.Background(), "limits.yaml", "main")
	if err == nil || !strings.Contains(err.Error(), "--against git:main needs the git command: install it, "+
		"or pass --against OLD.yaml") {
		t.Errorf("no git: %v", err)
	}
	if err := os.WriteFile(filepath.Join(bin, "git"),
		[]byte("#!/bin/sh\necho 'fatal: out of' >&2\necho order >&2\nexit 3\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	const want = "look for the repository of limits.yaml: git: fatal: out of order; run this where it is " +
		"checked out, or pass --against OLD.yaml"
	if _, _, err := atRef(context.Background(), "limits.yaml", "main"); err == nil || err.Error() != want {
		t.Errorf("a git that fails: %v, want %s", err, want)
	}
}
