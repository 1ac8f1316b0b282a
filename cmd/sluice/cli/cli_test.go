package cli_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/sluice-go/sluice/cmd/sluice/cli"
)

// full is a disk without space.
type full struct{}

func (full) Write([]byte) (int, error) { return 0, errors.New("no space left") }

func TestOutputThatCannotBeWritten(t *testing.T) {
	for _, args := range [][]string{{"version"}, {"--version"}, {"--help"}, {"breaking", "--rules"}} {
		var errs strings.Builder
		p := cli.Program{Stdout: full{}, Stderr: &errs, Now: time.Now}
		if code := p.Run(t.Context(), args); code != 1 ||
			errs.String() != "sluice: write the output: no space left\n" {
			t.Errorf("%v: exit code %d, %q", args, code, errs.String())
		}
	}
}
