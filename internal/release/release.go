package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"

	"strings"

	"golang.org/x/mod/semver"
)

// release takes the steps from a tree to tags. After a failure, the next run takes all of them again.
type release struct {
	root, version, checks, targets, out string
	trial                               bool
	log                                 io.Writer
}

// say prints progress.
func (r release) say(format string, args ...any) { _, _ = fmt.Fprintf(r.log, format, args...) }

func (r release) run(ctx context.Context) error {
	for _, step := range []struct {
		name string
		run  func(context.Context) error
	}{
		{"the version is new", r.isNew},
		{"this is main", r.isMain},
		{"nothing is uncommitted", r.isClean},
		{"CHANGELOG.md has the version", r.isInChangelog},
		{"set the versions of modules, and commit", r.commit},
		{"check: " + r.checks, r.check},
		{"tag", r.tag},
	} {
		r.say("== %s\n", step.name)
		if err := step.run(ctx); err != nil {
			return fmt.Errorf("%s: %w", step.name, err)
		}
	}
	return nil
}

// isNew refuses a version that is not above all tagged ones, here and where the tags are pushed to. A nested
// module may have the version: a run that failed before it tagged the root left it.
func (r release) isNew(ctx context.Context) error {
	if err := checkVersion(r.version); err != nil {
		return err
	}
	tags, err := command(ctx, r.root, "git", "tag", "--list")
	if err != nil {
		return err
	}
	if remotes, err := command(ctx, r.root, "git", "remote"); err != nil {
		return err
	} else if strings.Contains("\n"+remotes, "\norigin\n") {
		pushed, err := command(ctx, r.root, "git", "ls-remote", "--tags", "--refs", "origin")
		if err != nil {
			return err
		}
		tags += strings.ReplaceAll(pushed, "refs/tags/", "")
	}
	for name := range strings.FieldsSeq(tags) {
		dir, tagged := path.Split(name)
		higher := semver.Compare(tagged, r.version)
		if semver.IsValid(tagged) && (higher > 0 || higher == 0 && dir == "") {
			return fmt.Errorf("there is %s already: take a higher version", name)
		}
	}
	return nil
}

// isMain refuses another branch: tags would be on a commit that is not on main.
func (r release) isMain(ctx context.Context) error {
	branch, err := command(ctx, r.root, "git", "branch", "--show-current")
	if branch = strings.TrimSpace(branch); err == nil && branch != "main" {
		err = fmt.Errorf("this is %q: a release is made from main", branch)
	}
	return err
}

func (r release) isClean(ctx context.Context) error {
	out, err := command(ctx, r.root, "git", "status", "--porcelain")
	if err == nil && out != "" {
		err = fmt.Errorf("commit or remove\n%s", out)
	}
	return err
}

func (r release) isInChangelog(context.Context) error {
	text, err := os.ReadFile(filepath.Join(r.root, "CHANGELOG.md"))
	if err != nil {
		return err
	}
	number := strings.TrimPrefix(r.version, "v")
	heading := regexp.MustCompile(`(?m)^## \[` + regexp.QuoteMeta(number) + `\] - \d{4}-\d\d-\d\d$`)
	if !heading.Match(text) {
		return fmt.Errorf("no heading like `## [%s] - 2026-12-31`: move what is below Unreleased there", number)
	}
	return nil
}

// commit writes the version to the modules. If they have it already, there is nothing to commit.
func (r release) commit(ctx context.Context) error {
	if err := setVersions(r.root, r.version); err != nil {
		return err
	}
	if out, err := command(ctx, r.root, "git", "status", "--porcelain"); err != nil || out == "" {
		return err
	}
	_, err := command(ctx, r.root, "git", "commit", "-q", "-a", "-m", "Release "+r.version)
	return err
}

// check runs r.checks, and logs its output.
func (r release) check(ctx context.Context) error {
	cmd := exec.CommandContext(ctx, "sh", "-c", r.checks)
	cmd.Dir, cmd.Stdout, cmd.Stderr = r.root, r.log, r.log
	return cmd.Run()
}

// tag tags the commit for each module, and prints what publishes them. The root comes last: isNew decides by
// its tag, and its push starts the workflow. A push of more than three tags would start none.
func (r release) tag(ctx context.Context) error {
	for _, dir := range slices.Backward(released) {
		name := tag(dir, r.version)
		if _, err := command(ctx, r.root, "git", "tag", "-f", "-m", name, name); err != nil {
			return err
		}
	}
	r.say("publish it:\ngit push --atomic origin HEAD")
	for _, dir := range released[1:] {
		r.say(" %s", tag(dir, r.version))
	}
	r.say("\ngit push origin %s\n", r.version)
	return nil
}

// isTagged refuses a commit that is not that of all tags, or whose modules do not require each other at the
// version.
func (r release) isTagged(ctx context.Context) error {
	for _, dir := range released {
		out, err := command(ctx, r.root, "git", "tag", "--points-at", "HEAD", "--list", tag(dir, r.version))
		if err != nil {
			return err
		}
		if out == "" {
			return fmt.Errorf("HEAD has no tag %s: run make release", tag(dir, r.version))
		}
		name := filepath.Join(r.root, dir, "go.mod")
		mod, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		if set, err := withVersions(name, mod, r.version); err != nil || string(set) != string(mod) {
			return errors.Join(err, fmt.Errorf("%s requires another version: run make release", name))
		}
	}
	return nil
}
