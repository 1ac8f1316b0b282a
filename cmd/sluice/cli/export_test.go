package cli

import (
	"strings"

	"github.com/alecthomas/kong"

	"github.com/sluice-go/sluice/cmd/sluice/internal/program"
)

// With returns the program with other timeouts.
func (p Program) With(timeouts program.Timeouts) Program {
	p.timeouts = &timeouts
	return p
}

// CommandNames returns the names of all commands, such as override set.
func CommandNames() (names []string, err error) {
	all := &commands{}
	parser, err := kong.New(all, kong.Name("sluice"), kong.PostBuild(all.setHelp),
		kong.NamedMapper("entity", kong.MapperFunc(decodeEntity)))
	if err != nil {
		return nil, err
	}
	for _, leaf := range parser.Model.Leaves(false) {
		names = append(names, strings.TrimPrefix(leaf.FullPath(), "sluice "))
	}
	return names, nil
}
