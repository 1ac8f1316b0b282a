package breaking

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/sluice-go/sluice/cmd/sluice/internal/program"

	"github.com/sluice-go/sluice/gen"
)

// atRef returns the file as it was at a commit, branch or tag of the git repository around it, even if it
// has moved since. found is false if there was none.
func atRef(ctx context.Context, file, ref string) (old gen.OldSchema, found bool, err error) {
	switch {
	case ref == "":
		return old, false, program.Usagef("--against git: has no commit, branch or tag: write one, such as " +
			"git:origin/main")
	case strings.HasPrefix(ref, "-"): // git would read an option
		return old, false, program.Usagef("--against git:%s: no commit, branch or tag starts with '-'", ref)
	case strings.Contains(ref, ":"):
		return old, false, program.Usagef("--against git:%s: want a commit, branch or tag alone; the file is %s "+
			"(--file)", ref, file)
	}
	if _, err := exec.LookPath("git"); err != nil {
		return old, false, fmt.Errorf("--against git:%s needs the git command: install it, or pass --against "+
			"OLD.yaml (%w)", ref, err)
	}
	if target, err := filepath.EvalSymlinks(file); err == nil { // git stores of a link only its target
		file = target
	}
	dir, path := filepath.Dir(file), "./"+filepath.Base(file)
	if _, err := runGit(ctx, dir, "rev-parse", "--git-dir"); err != nil {
		return old, false, fmt.Errorf("look for the repository of %s: %w; run this where it is checked out, or "+
			"pass --against OLD.yaml", file, err)
	}
	tree, err := runGit(ctx, dir, "rev-parse", "--verify", "--quiet", ref+"^{tree}")
	if err != nil {
		return old, false,
			fmt.Errorf("git has no commit, branch or tag %s: correct the name, or fetch it, where a "+
				"CI has checked out one commit alone (%w)", ref, err)
	}
	// Paths that start with "./" are relative to dir.
	at := strings.TrimSpace(string(tree))
	listed, err := runGit(ctx, dir, "--literal-pathspecs", "ls-tree", at, path)
	if err != nil {
		return old, false, fmt.Errorf("look for %s in git:%s: %w", file, ref, err)
	}
	if len(listed) == 0 {
		return movedFrom(ctx, file, ref, at)
	}
	text, err := runGit(ctx, dir, "cat-file", "blob", at+":"+path)
	if err != nil {
		return old, false, fmt.Errorf("read %s of git:%s: %w", file, ref, err)
	}
	return gen.OldSchema{Name: "git:" + ref, Text: text}, true, nil
}

// runGit runs git in dir and returns its output. The error contains git's message on one line.
func runGit(ctx context.Context, dir string, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, "git", args...)
	cmd.Dir = dir
	// GIT_DIR without GIT_WORK_TREE, as in hooks, would make dir the top of the work tree
	if os.Getenv("GIT_WORK_TREE") == "" {
		cmd.Env = slices.DeleteFunc(cmd.Environ(),
			func(set string) bool { return strings.HasPrefix(set, "GIT_DIR=") })
	}
	var complaint bytes.Buffer
	cmd.Stderr = &complaint
	out, err := cmd.Output()
	if said := strings.Join(strings.Fields(complaint.String()), " "); err != nil && said != "" {
		return nil, errors.New("git: " + said)
	}
	return out, err
}
