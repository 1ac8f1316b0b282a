package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/sluice-go/sluice/gen"
)

type initCommand struct {
	Folder string `arg:"" optional:"" default:"." help:"Where to write; the current folder if not given. It is created, its parents are not."`
}

// Run writes a starter limits.yaml and the file with the go:generate line, and says how to go on.
func (c initCommand) Run(p Program) error {
	// Parents that are not there are rather a slip than meant.
	switch err := os.Mkdir(c.Folder, 0o777); {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("init %s: there is no folder %s: create it, or mend the path", c.Folder, filepath.Dir(filepath.Clean(c.Folder)))
	case err != nil && !errors.Is(err, fs.ErrExist):
		return err
	}
	paths, err := gen.Init(c.Folder)
	if err != nil {
		return err
	}
	for _, path := range paths {
		p.say("wrote %s\n", path)
	}
	p.say(`next:
  go get -tool github.com/sluice-go/sluice/cmd/sluice
  go generate ./...
`)
	return nil
}
