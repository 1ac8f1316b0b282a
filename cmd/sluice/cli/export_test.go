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

// CommandNames returns the names of all commands, such as override set, with the names of their flags.
func CommandNames() (names map[string][]string, err error) {
	all := &commands{}
	parser, err := kong.New(all, kong.Name("sluice"), kong.PostBuild(all.setHelp),
		kong.NamedMapper("entity", kong.MapperFunc(decodeEntity)))
	if err != nil {
		return nil, err
	}
	names = map[string][]string{}
	for _, leaf := range parser.Model.Leaves(false) {
		flags := []string{}
		for _, flag := range leaf.Flags {
			if !flag.Hidden {
				flags = append(flags, flag.Name)
			}
		}
		names[strings.TrimPrefix(leaf.FullPath(), "sluice ")] = flags
	}
	return names, nil
}
