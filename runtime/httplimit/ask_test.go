package httplimit_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	limits "github.com/sluice-go/sluice/generated"
	"github.com/sluice-go/sluice/runtime"
	"github.com/sluice-go/sluice/runtime/dynamo"
	"github.com/sluice-go/sluice/runtime/httplimit"
	"github.com/sluice-go/sluice/runtime/memdynamo"
)

// TestUnlimited: a request that ask does not limit reaches the handler, costs nothing and has no lease.
func TestUnlimited(t *testing.T) {
	fake := newFake()
	fake.Fail(denied)
	served := 0
	free := httplimit.Middleware(fake, func(*http.Request) (limits.GPT4Entity, limits.GPT4Cost, error) {
		return nil, limits.GPT4Cost{}, fmt.Errorf("health: %w", httplimit.ErrUnlimited)
	}, httplimit.Headers(), httplimit.OnError(func(_ http.ResponseWriter, _ *http.Request, err error) {
		t.Errorf("OnError: %v", err)
	}))(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if served++; httplimit.Lease[limits.GPT4Cost](r.Context()) != nil {
			t.Error("a lease of nothing")
		}
	}))
	w := httptest.NewRecorder()
	free.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/healthz", nil))
	if w.Code != http.StatusOK || served != 1 || len(fake.Calls()) != 0 || len(w.Header()) != 0 {
		t.Errorf("%d %v, %d served, %+v", w.Code, w.Header(), served, fake.Calls())
	}
}

// TestAskFails: an error of ask is answered without its text. The limiter's log has the text, unless the
// answer says all there is to say, or OnError has the error.
func TestAskFails(t *testing.T) {
	secret := errors.New("secret")
	teapot := httplimit.OnError(func(w http.ResponseWriter, _ *http.Request, _ error) {
		w.WriteHeader(http.StatusTeapot)
	})
	for _, test := range []struct {
		name   string
		err    error
		opts   []httplimit.Option
		status int
		detail string
		logged bool
	}{
		{"another's", secret, nil, 500, "Internal error: the rate limit could not be determined.", true},
		{"a body too large", fmt.Errorf("read: %w", &http.MaxBytesError{Limit: 9}), nil, 413,
			"The request is too large.", false},
		{"one of sluice's", &runtime.InvalidError{Field: "id", Value: "secret"}, nil, 400,
			"The request's id is not valid.", false},
		{"OnError", secret, []httplimit.Option{teapot}, http.StatusTeapot, "", false},
	} {
		t.Run(test.name, func(t *testing.T) {
			var log bytes.Buffer
			lim, err := limits.New(dynamo.New(memdynamo.New().Client(), "limits"),
				runtime.WithLogger(slog.New(slog.NewJSONHandler(&log, nil))))
			if err != nil {
				t.Fatal(err)
			}
			w, r := httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "/%1b[2J", nil)
			httplimit.Middleware(lim.GPT4, func(*http.Request) (limits.GPT4Entity, limits.GPT4Cost, error) {
				return nil, limits.GPT4Cost{}, test.err
			}, test.opts...)(http.NotFoundHandler()).ServeHTTP(w, r)
			var body struct{ Detail string }
			_ = json.Unmarshal(w.Body.Bytes(), &body)
			if w.Code != test.status || body.Detail != test.detail || strings.Contains(w.Body.String(), "secret") {
				t.Errorf("%d %s", w.Code, w.Body)
			}
			line := map[string]string{}
			_ = json.Unmarshal(log.Bytes(), &line)
			if test.logged != (line["error"] == "secret") || test.logged == (log.Len() == 0) {
				t.Errorf("logged %s", &log)
			}
			if test.logged && (line["level"] != "ERROR" || line["path"] != `"/\x1b[2J"`) {
				t.Errorf("logged %+v", line)
			}
		})
	}
}
