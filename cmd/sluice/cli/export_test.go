package cli

import "github.com/sluice-go/sluice/cmd/sluice/internal/program"

// With returns the program with other timeouts.
func (p Program) With(timeouts program.Timeouts) Program {
	p.timeouts = &timeouts
	return p
}
