package httplimit_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluice-go/sluice/internal/test/errtext"
	"github.com/sluice-go/sluice/runtime"
	"github.com/sluice-go/sluice/runtime/httplimit"
)

var denied = &runtime.DeniedError{
	Resource: "gpt-4", Entity: "project-secret", Limit: "tpm", Requested: 700, Available: 20,
	RetryAfter: 4001 * time.Millisecond,
	Refusals: []runtime.Refusal{
		{Resource: "gpt-4", Entity: "user-secret", Limit: "rpm", Requested: 1, RetryAfter: 300 * time.Millisecond},
		{Resource: "gpt-4", Entity: "user-secret", Limit: "tpm", Requested: 700, Available: 90,
			RetryAfter: time.Second},
		{Resource: "gpt-4", Entity: "project-secret", Limit: "tpm", Requested: 700, Available: 20,
			RetryAfter: 4001 * time.Millisecond},
		{Resource: "other", Entity: "project-secret", Limit: "tpm", Requested: 5, Available: 4,
			RetryAfter: 2 * time.Second},
	},
}

const (
	deniedBody = `{"type":"https://iana.org/assignments/http-problem-types#quota-exceeded","title":"Too Many ` +
		`Requests","status":429,` +
		`"detail":"tpm has 20 of the 700 that the request needs: retry after 5 s.","resource":"gpt-4","limits":[` +
		`{"limit":"rpm","requested":1,"available":0,"retry_after":1},` +
		`{"limit":"tpm","requested":700,"available":20,"retry_after":5},` +
		`{"resource":"other","limit":"tpm","requested":5,"available":4,"retry_after":2}],` +
		`"violated-policies":["rpm","tpm","tpm"],"retry_after":5}` + "\n"
	failedBody = `{"type":"about:blank","title":"Service Unavailable","status":503,` +
		`"detail":"The request's limits could not be looked up just now.","resource":"gpt-4","retry_after":1}` +
		"\n"
	setupBody = `{"type":"about:blank","title":"Internal Server Error","status":500,` +
		`"detail":"The limits of this service are not set up."}` + "\n"
	lateBody = `{"type":"about:blank","title":"Service Unavailable","status":503,` +
		`"detail":"Time was up before the request's limits were known.","retry_after":1}` + "\n"
)

// TestWriteError says what each error is answered with.
func TestWriteError(t *testing.T) {
	canceled, cancel := context.WithCancel(t.Context())
	cancel()
	late, cancel := context.WithDeadline(t.Context(), time.Unix(0, 0))
	defer cancel()
	setup := &runtime.SetupError{What: "table secret is not there", Do: "create it"}
	for _, test := range []struct {
		name   string
		ctx    context.Context
		err    error
		status int // 0: it is not one of sluice's
		retry  string
		body   string
	}{
		{"denied", nil, denied, 429, "5", deniedBody},
		{"wrapped", nil, fmt.Errorf("chat: %w", denied), 429, "5", deniedBody},
		{"denied, time up", late, denied, 429, "5", deniedBody},
		{"a name that there is not", nil, &runtime.UnknownNameError{Resource: "model", Name: "secret"}, 404, "",
			`{"type":"about:blank","title":"Not Found","status":404,"detail":"There is no model of this name.",` +
				`"resource":"model"}` + "\n"},
		{"a name that was not looked up", nil, &runtime.UnknownNameError{Resource: "gpt-4", Unread: true}, 503, "1",
			failedBody},
		{"MaxWait over", nil, fmt.Errorf("chat: %w", runtime.ErrMaxWait), 503, "1",
			strings.Replace(failedBody, `"resource":"gpt-4",`, "", 1)},
		{"denied until a grant", nil, &runtime.DeniedError{Resource: "r", Limit: "l", RetryAfter: math.MaxInt64},
			429, "",
			`{"type":"https://iana.org/assignments/http-problem-types#quota-exceeded","title":"Too Many ` +
				`Requests","status":429,` +
				`"detail":"l has 0 of the 0 that the request needs, until more is granted.","resource":"r"}` + "\n"},
		{"denied for very long", nil,
			&runtime.DeniedError{Resource: "r", Limit: "l", RetryAfter: math.MaxInt64 - 1}, 429, "9223372037",
			`{"type":"https://iana.org/assignments/http-problem-types#quota-exceeded","title":"Too Many ` +
				`Requests","status":429,` +
				`"detail":"l has 0 of the 0 that the request needs: retry after 9223372037 s.","resource":"r",` +
				`"retry_after":9223372037}` + "\n"},
		{"over burst", nil,
			&runtime.CostTooLargeError{Resource: "gpt-4", Entity: "user-secret", Limit: "tpm", Requested: 20_000,
				Burst: 15_000},
			400, "",
			`{"type":"about:blank","title":"Bad Request","status":400,"detail":"The request needs 20000 tpm, and ` +
				`there are never more ` +
				`than 15000 at once: make it smaller.","resource":"gpt-4",` +
				`"limits":[{"limit":"tpm","requested":20000,"burst":15000}]}` + "\n"},
		{"invalid", nil, &runtime.InvalidError{Resource: "gpt-4", Field: "id of user", Value: "a#secret",
			Reason: "has a #"}, 400, "",
			`{"type":"about:blank","title":"Bad Request","status":400,"detail":"The request's id of user is not ` +
				`valid.",` +
				`"resource":"gpt-4"}` + "\n"},
		{"unavailable", nil, &runtime.UnavailableError{Resource: "gpt-4", Attempts: 3, Err: errors.New("secret")},
			503, "1", failedBody},
		{"contended", nil, &runtime.ContendedError{Resource: "gpt-4", Entity: "user-secret", Attempts: 8}, 503, "1",
			failedBody},
		{"queue full", nil, &runtime.QueueFullError{Resource: "gpt-4", Entity: "user-secret", MaxWaiters: 9}, 503,
			"1",
			strings.Replace(failedBody, "The request's limits could not be looked up just now.",
				"Too many requests wait for the same limits already.", 1)},
		{"setup", nil, setup, 500, "", setupBody},
		{"an outage for want of rights", nil, &runtime.UnavailableError{Resource: "gpt-4", Err: setup}, 500, "",
			setupBody},
		{"gone", canceled, fmt.Errorf("sluice: gpt-4 for user-1: %w", context.Canceled), 503, "", ""},
		{"gone, and denied", canceled, denied, 503, "", ""},
		{"time up", late, fmt.Errorf("sluice: gpt-4 for user-1: %w", context.DeadlineExceeded), 503, "1", lateBody},
		{"canceled, but not by the caller", nil, context.Canceled, 0, "", ""},
		{"time up, but not the caller's", nil, context.DeadlineExceeded, 0, "", ""},
		{"gone, with another's error", canceled, io.ErrUnexpectedEOF, 0, "", ""},
		{"another's", nil, io.ErrUnexpectedEOF, 0, "", ""},
		{"a second settle", nil, runtime.ErrSettled, 0, "", ""},
		{"none", nil, nil, 0, "", ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			ctx := test.ctx
			if ctx == nil {
				ctx = t.Context()
			}
			w := httptest.NewRecorder()
			w.Code = 0
			if test.body != "" { // what there is no body for is left as it is
				w.Header().Set("Content-Length", "7")
				w.Header().Set("Retry-After", "7")
			}
			ok := httplimit.WriteError(w, httptest.NewRequestWithContext(ctx, http.MethodGet, "/", nil), test.err)
			if ok != (test.status != 0) || w.Code != test.status {
				t.Fatalf("%v, status %d; want %d", ok, w.Code, test.status)
			}
			if got := w.Header().Get("Retry-After"); got != test.retry {
				t.Errorf("Retry-After: %q, want %q", got, test.retry)
			}
			if w.Body.String() != test.body {
				t.Errorf("%s\nwant\n%s", w.Body, test.body)
			}
			if test.body == "" {
				return
			}
			if w.Header().Get("Content-Type") != "application/problem+json" || w.Header().Get("Content-Length") != "" {
				t.Errorf("%v", w.Header())
			}
		})
	}
}

// TestErrorsAreAnswered: what comes of an acquire, and of ask, arrives through a server, and next is not
// called.
func TestErrorsAreAnswered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fake := newFake()
		never := func(http.ResponseWriter, *http.Request) { t.Error("next was called") }
		client := limited(t, fake, never, httplimit.Headers())
		fake.Fail(denied)
		if r := get(t, client, "user=1&tpm=700"); r.StatusCode != 429 || r.body != deniedBody ||
			r.Header.Get("Retry-After") != "5" {
			t.Errorf("%d %v %s", r.StatusCode, r.Header, r.body)
		}
		fake.Fail(&runtime.SetupError{What: "no table"})
		if r := get(t, client, "user=1&tpm=700"); r.StatusCode != 500 || r.body != setupBody {
			t.Errorf("%d %s", r.StatusCode, r.body)
		}
		if r := get(t, client, "user=1&tpm=many"); r.StatusCode != 500 ||
			r.Header.Get("Content-Type") != "application/problem+json" {
			t.Errorf("where ask fails: %d %s", r.StatusCode, r.body)
		}
		if n := len(fake.Calls()); n != 2 {
			t.Errorf("%d acquires, want none where ask has failed", n)
		}

		client = limited(t, fake, never, httplimit.OnError(nil), httplimit.ReleaseOn(nil))
		if r := get(t, client, "user=1&tpm=700"); r.StatusCode != 500 || r.body != setupBody {
			t.Errorf("OnError(nil): %d %s", r.StatusCode, r.body)
		}

		var reported error
		client = limited(t, fake, never, httplimit.OnError(func(w http.ResponseWriter, _ *http.Request, err error) {
			reported = err
			w.WriteHeader(http.StatusTeapot)
		}))
		for query, want := range map[string]string{"user=1&tpm=1": "setup: no table",
			"user=1&tpm=x": `strconv.ParseInt: parsing "x": invalid syntax`} {
			if r := get(t, client, query); r.StatusCode != http.StatusTeapot || errtext.Of(reported) != want {
				t.Errorf("OnError: %d %v", r.StatusCode, reported)
			}
		}
	})
}
