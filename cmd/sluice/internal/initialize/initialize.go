// Package initialize is `sluice init`: it writes a starter limits.yaml.
package initialize

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"

	"github.com/sluice-go/sluice/cmd/sluice/internal/program"
	"github.com/sluice-go/sluice/cmd/sluice/internal/version"
	"github.com/sluice-go/sluice/gen"
	"github.com/sluice-go/sluice/internal/tool/gomod"
)

// Command is `sluice init`.
type Command struct {
	Folder string `arg:"" optional:"" default:"." help:"Folder to write to. It is created, its parents are not."`
}

// Help describes the command.
func (Command) Help() string {
	return "Beside a limits.yaml, it writes sluice.go alone: the file with the go:generate line."
}

// Run writes a starter limits.yaml and the file with the go:generate line, and prints the next steps.
func (c Command) Run(p program.Env) error {
	// Missing parents are not created: they are probably a typing error.
	if err := os.Mkdir(c.Folder, 0o777); err != nil && !errors.Is(err, fs.ErrExist) {
		parent := filepath.Dir(filepath.Clean(c.Folder))
		if _, missing := os.Stat(parent); errors.Is(missing, fs.ErrNotExist) {
			return fmt.Errorf("init %s: there is no folder %s: create it, or correct the path", c.Folder, parent)
		}
		return fmt.Errorf("init %s: the folder cannot be created in %s: choose one in which this user may create "+
			"folders: %w", c.Folder, parent, errors.Unwrap(err))
	}
	if info, err := os.Stat(c.Folder); err == nil && !info.IsDir() {
		return fmt.Errorf("init %s: it is a file: name the folder to write to", c.Folder)
	}
	sluice, err := command(c.Folder, version.Published())
	if err != nil {
		return err
	}
	paths, err := gen.Init(c.Folder, sluice+" generate")
	if err != nil {
		return err
	}
	for _, path := range paths {
		p.Say("wrote %s\n", path)
	}
	p.Say(`next:
  go generate ./...                 # writes the package
  go mod tidy                       # adds what the package imports
  sluice dev --table rate_limits    # serves a DynamoDB in memory with the table, without AWS
  sluice table create               # or creates the table on AWS
`)
	return nil
}

// tool is the package of this program.
const tool = "github.com/sluice-go/sluice/cmd/sluice"

// command returns what runs this program wherever the module around folder is cloned. That is
// `go tool sluice` if the module's go.mod has a line for it, else `go run` of the published version. A
// program built from a clone has none: command returns the one on PATH.
func command(folder, published string) (string, error) {
	known, err := knowsTool(folder)
	switch {
	case err != nil:
		return "", err
	case known:
		return "go tool sluice", nil
	case published != "":
		return "go run " + tool + "@" + published, nil
	}
	return "sluice", nil
}

// knowsTool reports whether the go.mod of the module around folder has a tool line for sluice.
func knowsTool(folder string) (bool, error) {
	root, err := gomod.Root(folder)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	mod, err := os.ReadFile(filepath.Join(root, gomod.File))
	if err != nil {
		return false, fmt.Errorf("look for the tool line: %w", err)
	}
	return toolLine.Match(mod), nil
}

// toolLine matches that line, alone or in a block.
var toolLine = regexp.MustCompile(`(?m)^\s*(tool\s+)?"?` + regexp.QuoteMeta(tool) + `"?\s*(//.*)?$`)
