package doccheck

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
)

// build has Go build the blocks, each as a package of a module of a reader's, and run what tests they have.
func (d *document) build(ctx context.Context, blocks []block) {
	if len(blocks) == 0 {
		return
	}
	dir, err := os.MkdirTemp("", "doccheck")
	if err == nil {
		defer func() { _ = os.RemoveAll(dir) }()
		err = errors.Join(writeModule(dir, d.Root), writePrograms(dir, blocks))
	}
	if err != nil {
		d.add(blocks[0], "its program cannot be written: %v", err)
		return
	}
	command := exec.CommandContext(ctx, "go", "test", "-timeout", "1m", "./...")
	command.Dir = dir
	// all that it needs is needed here already
	command.Env = append(os.Environ(), "GOPROXY=off", "GOWORK=off", "GOFLAGS=")
	out, err := command.CombinedOutput()
	if err == nil {
		return
	}
	found := false
	for _, b := range blocks {
		if strings.Contains(string(out), folder(b)) {
			d.add(b, "Go does not build and run it as a file of its own: fix it, or quote it from a file:\n%s", out)
			found = true
		}
	}
	if !found {
		d.add(blocks[0], "Go does not build and run it: %v\n%s", err, out)
	}
}

// folder is that of b's package.
func folder(b block) string { return fmt.Sprintf("block%d", b.line) }

var moduleLine = regexp.MustCompile(`(?m)^module (.*)$`)

// writeModule makes dir a module that requires the one at root, and what that requires.
func writeModule(dir, root string) error {
	root, err := filepath.Abs(root)
	if err != nil {
		return err
	}
	text, err := os.ReadFile(filepath.Join(root, "go.mod"))
	if err != nil {
		return err
	}
	sums, err := os.ReadFile(filepath.Join(root, "go.sum"))
	if err != nil {
		return err
	}
	module := moduleLine.FindSubmatch(text)
	if module == nil {
		return fmt.Errorf("%s names no module", filepath.Join(root, "go.mod"))
	}
	text = moduleLine.ReplaceAll(text, []byte("module example.com/reader"))
	text = fmt.Appendf(bytes.TrimRight(text, "\n"), "\n\nrequire %s v0.0.0\n\nreplace %[1]s => %s\n",
		module[1], root)
	return errors.Join(
		os.WriteFile(filepath.Join(dir, "go.mod"), text, 0o600),
		os.WriteFile(filepath.Join(dir, "go.sum"), sums, 0o600),
	)
}

// writePrograms writes each block to a folder of its own.
func writePrograms(dir string, blocks []block) error {
	for _, b := range blocks {
		name := "block.go"
		if testFunc.MatchString(b.text) {
			name = "block_test.go"
		}
		if err := os.Mkdir(filepath.Join(dir, folder(b)), 0o700); err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(dir, folder(b), name), []byte(b.text), 0o600); err != nil {
			return err
		}
	}
	return nil
}
