package cli_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/sluice-go/sluice/cmd/sluice/cli"
	"github.com/sluice-go/sluice/internal/test/longform"
)

// sequential skips a test under the race detector: its commands run one after the other, and none of them has
// goroutines of its own. Such tests would take most of this package's time there.
func sequential(t *testing.T) {
	t.Helper()
	longform.NoRace(t, "its commands do one thing at a time, and their stores are raced by their own tests")
}

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
