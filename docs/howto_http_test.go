package docs_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"

	api "github.com/sluice-go/sluice/examples/publicapi/limits"
	"github.com/sluice-go/sluice/runtime/httplimit"
	"github.com/sluice-go/sluice/runtime/limittest"
	"github.com/sluice-go/sluice/runtime/memdynamo"
)

// door is quoted in docs/how-to/skip-or-401.md.
func door(lim api.APIAcquirer, keyOf func(*http.Request) (api.Key, bool)) func(http.Handler) http.Handler {
	limited := httplimit.Middleware(lim, func(r *http.Request) (api.APIEntity, api.APICost, error) {
		if r.Method == http.MethodOptions || strings.HasPrefix(r.URL.Path, "/static/") {
			return nil, api.APICost{}, httplimit.ErrUnlimited // next is called, and nothing is charged
		}
		key, _ := keyOf(r)
		return key, api.APICost{}, nil
	}, httplimit.ReleaseOn(func(status int) bool { return status >= http.StatusInternalServerError }))

	return func(next http.Handler) http.Handler {
		charged := limited(next)
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if _, known := keyOf(r); !known && r.Method != http.MethodOptions { // a preflight has no key
				w.Header().Set("WWW-Authenticate", "Bearer")
				http.Error(w, "no such key", http.StatusUnauthorized) // before the limiter
				return
			}
			charged.ServeHTTP(w, r)
		})
	}
}

// TestDoor: requests are skipped, answered and charged as docs/how-to/skip-or-401.md says.
func TestDoor(t *testing.T) {
	fake := limittest.NewFake((*api.APIResource)(nil))
	handler := door(fake, func(r *http.Request) (api.Key, bool) {
		id := r.Header.Get("X-Key")
		return api.Key{ID: id}, id != ""
	})(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/fails" {
			w.WriteHeader(http.StatusInternalServerError)
		}
	}))
	for _, c := range []struct {
		method, path, key string
		code, charged     int
		released          bool
	}{
		{"GET", "/items", "", 401, 0, false},
		{"GET", "/items", "1", 200, 1, false},
		{"OPTIONS", "/items", "", 200, 1, false},
		{"GET", "/static/x.css", "1", 200, 1, false},
		{"GET", "/fails", "1", 500, 2, true},
	} {
		w, r := httptest.NewRecorder(), httptest.NewRequest(c.method, c.path, nil)
		r.Header.Set("X-Key", c.key)
		handler.ServeHTTP(w, r)
		calls := fake.Calls()
		if w.Code != c.code || len(calls) != c.charged ||
			c.charged > 0 && calls[c.charged-1].Released != c.released {
			t.Errorf("%s %s: %d, %+v", c.method, c.path, w.Code, calls)
		}
	}
}

// TestFlood: new addresses cost what docs/how-to/per-ip.md says.
func TestFlood(t *testing.T) {
	const addresses = 1_000
	synctest.Test(t, func(t *testing.T) {
		engine := memdynamo.New()
		lim, err := api.New(limittest.StoreOn(t, engine))
		if err != nil {
			t.Fatal(err)
		}
		before := engine.Consumed().Table(limittest.Table)
		for i := range addresses {
			ip := api.IP{ID: fmt.Sprintf("203.0.%d.%d", i/256, i%256)}
			if _, err := lim.API.Acquire(t.Context(), ip, api.APICost{}); err != nil {
				t.Fatal(err)
			}
		}
		used := engine.Consumed().Table(limittest.Table)
		reads := used.Applied.Read - before.Applied.Read
		writes := used.Applied.Write - before.Applied.Write
		line := fmt.Sprintf("| %d new addresses | %.0f RCU | %.0f WCU |", addresses, reads, writes)
		if !strings.Contains(read(t, "docs/how-to/per-ip.md"), line) {
			t.Errorf("docs/how-to/per-ip.md does not show %s", line)
		}
	})
}
