package docs_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"

	"github.com/sluice-go/sluice/examples/beside/limits"
	"github.com/sluice-go/sluice/runtime"
	"github.com/sluice-go/sluice/runtime/httplimit"
	"github.com/sluice-go/sluice/runtime/limittest"
)

// server is what is left of the tutorial's, once the old limiter is deleted.
type server struct{ api limits.APIAcquirer }

// ServeHTTP is quoted in docs/tutorials/beside-an-existing-limiter.md.
func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	customer := limits.Customer{ID: r.Header.Get("X-Customer")}
	if _, err := s.api.Acquire(r.Context(), customer, limits.APICost{}); err != nil {
		if !httplimit.WriteError(w, r, err) {
			http.Error(w, "internal error", http.StatusInternalServerError)
		}
		return
	}
	_, _ = fmt.Fprintln(w, "an answer")
}

// TestAloneAfterShadow: without the old limiter, sluice answers 429 beyond its burst.
func TestAloneAfterShadow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lim, err := limits.New(limittest.Store(t), runtime.WithCallDefaults(runtime.Shadow(false)))
		if err != nil {
			t.Fatal(err)
		}
		counts := map[int]int{}
		for range 15 {
			w, r := httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "/items", nil)
			r.Header.Set("X-Customer", "acme")
			(&server{lim.API}).ServeHTTP(w, r)
			counts[w.Code]++
		}
		if counts[http.StatusOK] != 10 || counts[http.StatusTooManyRequests] != 5 {
			t.Error(counts)
		}
	})
}
