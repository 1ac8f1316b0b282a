package region

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/sluice-go/sluice/cmd/sluice/internal/program"
	"github.com/sluice-go/sluice/runtime/region"
	"github.com/sluice-go/sluice/runtime/store"
)

// TestProgressShowsNoControls: an error that holds what another region or S3 has written adds no line to the
// log, and no control character.
func TestProgressShowsNoControls(t *testing.T) {
	evil := errors.New("S3 says \x1b[2J\u202e")
	var errs bytes.Buffer
	r := newProgress(program.Env{Stdout: &bytes.Buffer{}, Stderr: &errs, Now: time.Now}, false)
	r.report(&region.Report{
		Failed: []error{evil},
		Peers: []region.Peer{{Region: "eu-west-1", State: region.Silent,
			Err: errors.New(evil.Error() + "\ncycle 2: all is well")}},
	})
	lines := strings.Split(strings.TrimSuffix(errs.String(), "\n"), "\n")
	for _, line := range lines {
		if !store.IsPlain(line) || !strings.HasPrefix(line, "cycle 1: ") ||
			!strings.Contains(line, `S3 says \x1b[2J\u202e`) && !strings.HasSuffix(line, "eu-west-1 silent") {
			t.Errorf("%q", line)
		}
	}
	if len(lines) != 3 {
		t.Errorf("%d lines: %q", len(lines), lines)
	}
}
