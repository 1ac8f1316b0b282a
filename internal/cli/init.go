package cli

import (
	"github.com/sluice-go/sluice/gen"
)

type initCommand struct {
	Folder string `arg:"" optional:"" default:"." help:"Where to write; the current folder if not given."`
}

// Run writes a starter limits.yaml and the file with the go:generate line, and says how to go on.
func (c initCommand) Run(p Program) error {
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
