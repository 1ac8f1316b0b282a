package breaking

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/sluice-go/sluice/cmd/sluice/internal/git"
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
	dir := filepath.Dir(file)
	if _, err := git.Run(ctx, dir, "rev-parse", "--git-dir"); err != nil {
		return old, false, fmt.Errorf("look for the repository of %s: %w; run this where it is checked out, or "+
			"pass --against OLD.yaml", file, err)
	}
	tree, err := git.Tree(ctx, dir, ref)
	if err != nil {
		return old, false,
			fmt.Errorf("git has no commit, branch or tag %s: correct the name, or fetch it, where a "+
				"CI has checked out one commit alone (%w)", ref, err)
	}
	text, found, err := git.File(ctx, file, tree)
	switch {
	case err != nil:
		return old, false, fmt.Errorf("read %s of git:%s: %w", file, ref, err)
	case !found:
		return movedFrom(ctx, file, ref, tree)
	}
	return gen.OldSchema{Name: "git:" + ref, Text: text}, true, nil
}
