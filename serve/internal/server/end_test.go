package server_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluice-go/sluice/runtime/memdynamo"
	"github.com/sluice-go/sluice/serve/internal/server"
)

// TestDrainWrites: a client that does not read its answer takes no time from the last writes. They give back
// the slot of a lease that is open at the end.
func TestDrainWrites(t *testing.T) {
	bubble(t, func(r *rig) {
		r.want(r.post("/v1/jobs/acquire", `{"entity": {"org": "7"}}`), http.StatusOK)
		r.client.CloseIdleConnections()
		deaf, err := r.listen.Dial(r.Context())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(deaf, "GET /none HTTP/1.1\r\nHost: sluice\r\n\r\n"); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		r.engine.Faults().Latency(memdynamo.Constant(20 * time.Millisecond))
		if err := r.server.Drain(now()); err != nil {
			t.Error(err)
		}
		_ = deaf.Close()
		if left := newRig(r.T, r.engine, "after").left("jobs", `{"org": "7"}`, "parallel"); left != 2. {
			t.Errorf("%v slots are free, want 2", left)
		}
	})
}

// TestPanic: a panic has a line in the log with its place, and without what it says. Others are served.
func TestPanic(t *testing.T) {
	r := newRigWithout(t)
	s := server.New(server.Config{Limits: newCurrent(r), Replica: "replica", Most: 100, Logger: r.logger(),
		Tokens: func() []string { panic("secret") }})
	func() {
		defer func() {
			if what := recover(); what != http.ErrAbortHandler { //nolint:errorlint // net/http compares it so
				t.Errorf("panic %v", what)
			}
		}()
		s.Handler().ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodPost, "/v1/acquire", nil))
	}()
	if log := r.log.String(); !strings.Contains(log, "a request has panicked") ||
		strings.Contains(log, "secret") || !strings.Contains(log, "end_test.go") {
		t.Errorf("log: %s", log)
	}
}
