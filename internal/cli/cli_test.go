package cli

import (
	"errors"
	"strings"
	"testing"
	"time"
)

// full is a disk without space.
type full struct{}

func (full) Write([]byte) (int, error) { return 0, errors.New("no space left") }

func TestOutputThatCannotBeWritten(t *testing.T) {
	var errs strings.Builder
	p := Program{Stdout: full{}, Stderr: &errs, Now: time.Now}
	if code := p.Run(t.Context(), []string{"version"}); code != exitFailure || errs.String() != "sluice: write the output: no space left\n" {
		t.Errorf("exit code %d, %q", code, errs.String())
	}
}
