package docs_test

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"

	limits "github.com/sluice-go/sluice/generated"
	"github.com/sluice-go/sluice/runtime/httplimit"
	"github.com/sluice-go/sluice/runtime/limittest"
)

// withKeys is quoted in docs/http.md. It charges the owner of an API key, and nobody for health checks.
func withKeys(lim *limits.Limiter) func(http.Handler) http.Handler {
	errNoKey := errors.New("no API key")
	ask := func(r *http.Request) (limits.GPT4Entity, limits.GPT4Cost, error) {
		key := r.Header.Get("X-API-Key")
		switch {
		case r.URL.Path == "/healthz":
			return nil, limits.GPT4Cost{}, httplimit.ErrUnlimited // the handler is called without a lease
		case key == "":
			return nil, limits.GPT4Cost{}, errNoKey
		}
		return limits.User{ID: key, Project: limits.Project{ID: "1"}}, limits.GPT4Cost{TPM: 9_000}, nil
	}
	onError := httplimit.OnError(func(w http.ResponseWriter, r *http.Request, err error) {
		switch {
		case errors.Is(err, errNoKey):
			http.Error(w, "send an API key", http.StatusUnauthorized) // nothing was charged
		case !httplimit.WriteError(w, r, err):
			http.Error(w, "failed", http.StatusInternalServerError)
		}
	})
	limited := httplimit.Middleware(lim.GPT4, ask, onError)
	return limited
}

func TestWithKeys(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lim, err := limits.New(limittest.Store(t))
		if err != nil {
			t.Fatal(err)
		}
		handler := withKeys(lim)(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
		for _, c := range []struct {
			path, key string
			want      int
		}{
			{"/chat", "", http.StatusUnauthorized},
			{"/chat", "a", http.StatusOK},
			{"/chat", "a", http.StatusTooManyRequests},
			{"/chat", "a#", http.StatusBadRequest},
			{"/healthz", "", http.StatusOK},
			{"/healthz", "a", http.StatusOK},
		} {
			r := httptest.NewRequest(http.MethodGet, c.path, nil)
			r.Header.Set("X-API-Key", c.key)
			w := httptest.NewRecorder()
			if handler.ServeHTTP(w, r); w.Code != c.want {
				t.Errorf("%s with key %q: %d, want %d", c.path, c.key, w.Code, c.want)
			}
		}
	})
}
