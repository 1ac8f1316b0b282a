// Package git reads files of commits by the git command.
package git

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// Run runs git in dir and returns its output. The error contains git's message on one line.
func Run(ctx context.Context, dir string, args ...string) ([]byte, error) {
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

// Tree returns the id of the tree of a commit, branch or tag in the repository around dir.
func Tree(ctx context.Context, dir, ref string) (string, error) {
	tree, err := Run(ctx, dir, "rev-parse", "--verify", "--quiet", ref+"^{tree}")
	return strings.TrimSpace(string(tree)), err
}

// File returns a file as it is in a tree of the repository around it. found is false if the tree does not
// have it. The file need not be there any longer, nor its folder. For a link it is the target, as git stores
// only that of a link.
func File(ctx context.Context, file, tree string) (text []byte, found bool, err error) {
	if target, err := filepath.EvalSymlinks(file); err == nil {
		file = target
	}
	dir, path := filepath.Dir(file), filepath.Base(file)
	for {
		if _, err := os.Stat(dir); err == nil || dir == filepath.Dir(dir) {
			break
		}
		dir, path = filepath.Dir(dir), filepath.Join(filepath.Base(dir), path)
	}
	path = "./" + filepath.ToSlash(path) // relative to dir
	listed, err := Run(ctx, dir, "--literal-pathspecs", "ls-tree", tree, path)
	if err != nil || len(listed) == 0 {
		return nil, false, err
	}
	text, err = Run(ctx, dir, "cat-file", "blob", tree+":"+path)
	return text, err == nil, err
}

// Committed returns a function that returns files as the last commit has them, nil for those that it does not
// have. The function is nil if the last commit does not tell whether the schema at file was published:
//
//   - there is no git, or no repository;
//   - git ignores the schema;
//   - the schema is not in the commit, and may be one of it that was moved.
func Committed(ctx context.Context, file string) func(path string) ([]byte, error) {
	dir := filepath.Dir(file)
	if _, err := Run(ctx, dir, "rev-parse", "--git-dir"); err != nil {
		return nil
	}
	tree, err := Tree(ctx, dir, "HEAD")
	if err != nil { // no commit yet
		return func(string) ([]byte, error) { return nil, nil }
	}
	committed := func(path string) ([]byte, error) {
		text, _, err := File(ctx, path, tree)
		return text, err
	}
	switch text, err := committed(file); {
	case err != nil:
		return nil
	case text != nil:
		return committed
	}
	if _, err := Run(ctx, dir, "check-ignore", "--quiet", filepath.Base(file)); err == nil {
		return nil
	}
	moved, err := Run(ctx, dir, "diff", "--name-only", "--no-renames", "--diff-filter=D", tree, "--",
		":(top)*.yaml", ":(top)*.yml")
	if err != nil || len(moved) > 0 {
		return nil
	}
	return committed
}
