package cli

import "github.com/sluice-go/sluice/gen"

// schemaCommand is `sluice schema`.
type schemaCommand struct {
	JSON bool `name:"json" help:"Print the JSON Schema that editors check limits.yaml by instead."`
}

// Help is what --help prints besides the flags.
func (schemaCommand) Help() string {
	return "Prints every key of limits.yaml with its type, its default, an example and what is said of mistakes, as Markdown."
}

// Run prints it.
func (c schemaCommand) Run(p Program) error {
	if c.JSON {
		p.say("%s", gen.JSONSchema())
		return nil
	}
	text, err := gen.Reference()
	if err != nil {
		return err
	}
	p.say("%s", text)
	return nil
}
