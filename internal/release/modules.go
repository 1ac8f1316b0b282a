package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/mod/modfile"
	"golang.org/x/mod/module"
	"golang.org/x/mod/semver"
)

// rootPath is the path of the root's module. A nested module's path is rootPath and its folder.
const rootPath = "github.com/sluice-go/sluice"

// released lists the folders of the modules that get a tag, each after those that it requires. The others
// hold tests and tools of this repository.
var released = []string{".", "cmd/sluice", "runtime/grpclimit", "runtime/otellimit", "serve"}

// modulePath returns the path of the module in a folder.
func modulePath(dir string) string { return path.Join(rootPath, dir) }

// tag returns the name of a module's tag: for a nested module, the folder comes before the version.
func tag(dir, version string) string { return path.Join(dir, version) }

// checkVersion says what is wrong with a version to release.
func checkVersion(version string) error {
	if semver.Canonical(version) != version || semver.Build(version) != "" {
		return fmt.Errorf("%q is not a version: write it like v0.1.0 or v0.1.0-rc.1", version)
	}
	if err := module.CheckPathMajor(version, ""); err != nil {
		return fmt.Errorf("%w: from v2 on, paths of modules end with the major version", err)
	}
	return nil
}

// withVersions returns a go.mod that requires the repository's own modules at a version.
func withVersions(name string, text []byte, version string) ([]byte, error) {
	f, err := modfile.Parse(name, text, nil)
	if err != nil {
		return nil, err
	}
	for _, r := range f.Replace {
		return nil, fmt.Errorf("%s: Go ignores replace lines of dependencies: remove the one for %s", name,
			r.Old.Path)
	}
	for _, r := range f.Require {
		if own(r.Mod.Path) {
			if err := f.AddRequire(r.Mod.Path, version); err != nil {
				return nil, err
			}
		}
	}
	return f.Format()
}

// own reports whether a module is one of this repository.
func own(modulePath string) bool {
	return modulePath == rootPath || strings.HasPrefix(modulePath, rootPath+"/")
}

// setVersions makes all modules of the workspace require each other at a version, which the workspace
// replaces by the tree.
func setVersions(root, version string) error {
	name := filepath.Join(root, "go.work")
	text, err := os.ReadFile(name)
	if err != nil {
		return err
	}
	work, err := modfile.ParseWork(name, text, nil)
	if err != nil {
		return err
	}
	for _, use := range work.Use {
		file := filepath.Join(root, use.Path, "go.mod")
		mod, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		if mod, err = withVersions(file, mod, version); err != nil {
			return err
		}
		if err := os.WriteFile(file, mod, 0o644); err != nil {
			return err
		}
	}
	for _, r := range slices.Clone(work.Replace) {
		at, by := r.Old, r.New // DropReplace clears r
		if err := work.DropReplace(at.Path, at.Version); err != nil {
			return err
		}
		if err := work.AddReplace(at.Path, version, by.Path, by.Version); err != nil {
			return err
		}
	}
	work.Cleanup()
	return os.WriteFile(name, modfile.Format(work.Syntax), 0o644)
}

// command runs a program in the repository and returns its output.
func command(ctx context.Context, root string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, args[0], args[1:]...)
	cmd.Dir = root
	out, err := cmd.Output()
	if failed, ok := errors.AsType[*exec.ExitError](err); ok {
		return "", fmt.Errorf("%s: %w: %s", strings.Join(args, " "), err, failed.Stderr)
	}
	return string(out), err
}
