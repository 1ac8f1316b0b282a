// Package schema is `sluice schema`: it prints the reference of limits.yaml.
package schema

import (
	"github.com/sluice-go/sluice/cmd/sluice/internal/program"
	"github.com/sluice-go/sluice/gen"
)

// Command is `sluice schema`.
type Command struct {
	JSON bool `name:"json" help:"Print the JSON Schema instead, by which editors check limits.yaml."`
}

// Help describes the output.
func (Command) Help() string {
	return "Prints every key of limits.yaml with its type, its default, an example and what is said of " +
		"mistakes, as Markdown."
}

// Run prints the reference.
func (c Command) Run(p program.Env) error {
	if c.JSON {
		p.Say("%s", gen.JSONSchema())
		return nil
	}
	text, err := gen.Reference()
	if err != nil {
		return err
	}
	p.Say("%s", text)
	return nil
}
