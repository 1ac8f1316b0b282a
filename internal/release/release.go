package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
		"regexp"
	"slices"

	"strings"

	"golang.org/x/mod/semver"
)

// release takes the steps from a tree to tags. After a failure, the next run takes all of them again.
type release struct {
	root, version, checks, targets, out string
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

// isNew refuses a version that is not above all tagged ones.
func (r release) isNew(ctx context.Context) error {
	if err := checkVersion(r.version); err != nil {
		return err
	}
	out, err := command(ctx, r.root, "git", "tag", "--list", "v*")
	for tagged := range strings.FieldsSeq(out) {
		if semver.IsValid(tagged) && semver.Compare(tagged, r.version) >= 0 {
			return fmt.Errorf("there is %s already: take a higher version", tagged)
		}
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

// tag tags the commit for each module, and prints what publishes all of them at once. The root, by whose tag
// isNew decides, comes last: a run that fails before it can be repeated.
func (r release) tag(ctx context.Context) error {
	push := []string{"git push --atomic origin HEAD"}
	for _, dir := range slices.Backward(released) {
		name := tag(dir, r.version)
		if _, err := command(ctx, r.root, "git", "tag", "-f", "-m", name, name); err != nil {
			return err
		}
		push = append(push, name)
	}
	r.say("publish it:\n%s\n", strings.Join(push, " "))
	return nil
}
