package dynamo

import (
	"strings"
	"testing"

	"github.com/sluice-go/sluice/internal/test/errtext"
	"github.com/sluice-go/sluice/runtime/store"
)

// wantErr compares errtext's description of err with want, without what the client says of its request.
func wantErr(t *testing.T, err error, want string) {
	t.Helper()
	if got := withoutRequest(errtext.Of(err)); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// wantSetup checks that err has a *store.SetupError, and that its description names all of these.
func wantSetup(t *testing.T, err error, names ...string) {
	t.Helper()
	if !isA[*store.SetupError](err) {
		t.Errorf("got a %T: %v", err, err)
		return
	}
	for _, name := range names {
		if got := errtext.Of(err); !strings.Contains(got, name) {
			t.Errorf("nothing of %q in\n%s", name, got)
		}
	}
}
