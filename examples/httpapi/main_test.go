package main

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluice-go/sluice/examples/httpapi/limits"
	"github.com/sluice-go/sluice/gen"
	"github.com/sluice-go/sluice/internal/test/pipenet"
	"github.com/sluice-go/sluice/runtime/limittest"
)

// TestGenerated: the code is what limits.yaml gives.
func TestGenerated(t *testing.T) {
	result, err := gen.Run(gen.Config{Schema: "limits.yaml"})
	if err != nil {
		t.Fatal(err)
	}
	if diff := result.Diff(); diff != "" {
		t.Errorf("run `go run ../../cmd/sluice generate` in examples/httpapi and commit:\n%s", diff)
	}
}

// TestRun runs the program in time that takes none, where all of it is as it always is.
func TestRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out strings.Builder
		l := pipenet.Listen()
		if err := run(t.Context(), l, l.Transport(), &out); err != nil {
			t.Error(err)
		}
		for _, line := range []string{
			`0.0 s  GET /items            200     "requests";r=5;t=1, "rows";r=600;t=0`,
			`0.0 s  GET /items            429     "requests";r=0;t=1, "rows";r=300;t=1  1`,
			`heedless  6xxxx1xxxx1xxxx1xxxx1xxxx1`,
			`obedient  6.........2.........2`,
			`paced     6....1....1....1....1`,
			`heedless       110      20      90    81 %         103       9.0 s`,
			`obedient        28      20       8    28 %           0       9.0 s`,
			`paced           20      20       0     0 %           0       9.0 s`,
			`check: ok: nobody who listened came early, and who came when told was served`,
		} {
			if !strings.Contains(out.String(), "\n"+line) {
				t.Errorf("it did not print %q", line)
			}
		}
		if t.Failed() {
			t.Logf("it printed:\n%s", &out)
		}
	})
}

// TestInterrupt: the program ends at once, and says why.
func TestInterrupt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		l := pipenet.Listen()
		began := time.Now()
		if err := run(ctx, l, l.Transport(), io.Discard); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("it returned %v", err)
		}
		if took := time.Since(began); took > 2*time.Second { // of the nine
			t.Errorf("it took %v", took)
		}
	})
}

// TestCheck: clients that did what they must not, or were promised what was not there, fail the program.
func TestCheck(t *testing.T) {
	denied, served := exchange{status: http.StatusTooManyRequests}, exchange{status: http.StatusOK}
	for _, test := range []struct {
		manner manner
		early  int
		log    []exchange
		want   string
	}{
		{heedless, 7, []exchange{denied, denied, denied}, ""},
		{obedient, 0, []exchange{denied, served, denied, served}, ""},
		{obedient, 1, []exchange{denied, served},
			"obedient came early 1 times: a client that waits for Retry-After cannot"},
		{obedient, 0, []exchange{denied, denied, served},
			"obedient was denied 1 times when it came as it was told: Retry-After was early"},
		{paced, 0, []exchange{served, served}, ""},
		{paced, 0, []exchange{denied, served},
			"paced was denied 1 times: the RateLimit fields promised what was not there"},
	} {
		d := newDoor(nil)
		d.early["Bearer key"] = test.early
		err := report{clients: []*client{{key: "key", manner: test.manner, log: test.log}}, door: d}.check(
			io.Discard)
		if test.want == "" && err != nil || test.want != "" && (err == nil || err.Error() != test.want) {
			t.Errorf("%v who came early %d times: %v, want %s", test.manner, test.early, err, test.want)
		}
	}
}

// TestDoor: who comes a moment before its time is early, who comes at it is not.
func TestDoor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDoor(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Retry-After", "2")
		}))
		for _, after := range []time.Duration{0, 2*time.Second - 1, 2 * time.Second, 2 * time.Second} {
			if err := sleep(t.Context(), after); err != nil {
				t.Fatal(err)
			}
			r := httptest.NewRequest(http.MethodGet, "/", nil)
			r.Header.Set("Authorization", "Bearer key")
			d.ServeHTTP(httptest.NewRecorder(), r)
		}
		if n := d.cameEarly("key"); n != 1 {
			t.Errorf("%d came early, want 1", n)
		}
	})
}

// TestAPI: who is not known, or asks for nonsense, is charged nothing.
func TestAPI(t *testing.T) {
	fake := limittest.NewFake((*limits.APIResource)(nil))
	api := newAPI(fake, map[string]limits.Key{"secret": {ID: "1"}})
	for _, test := range []struct {
		path, secret string
		status       int
		charged      limits.APICost
	}{
		{"/items", "secret", 200, limits.APICost{}},
		{"/report?rows=40", "secret", 200, limits.APICost{Rows: 40}},
		{"/nowhere", "secret", 404, limits.APICost{}},
		{"/items", "guess", 401, limits.APICost{}},
		{"/report?rows=all", "secret", 400, limits.APICost{}},
	} {
		before := len(fake.Calls())
		r := httptest.NewRequest(http.MethodGet, test.path, nil)
		r.Header.Set("Authorization", "Bearer "+test.secret)
		w := httptest.NewRecorder()
		api.ServeHTTP(w, r)
		if w.Code != test.status {
			t.Errorf("GET %s: %d, want %d", test.path, w.Code, test.status)
		}
		switch calls := fake.Calls()[before:]; {
		case (test.status == 400 || test.status == 401) != (len(calls) == 0):
			t.Errorf("GET %s: %d acquires", test.path, len(calls))
		case len(calls) == 1 && (calls[0].Cost != test.charged || calls[0].Entity != limits.Key{ID: "1"}):
			t.Errorf("GET %s: charged %+v to %v", test.path, calls[0].Cost, calls[0].Entity)
		}
	}
}

// TestWait: it is until there is enough of every limit, and not a moment less.
func TestWait(t *testing.T) {
	h := http.Header{
		"Ratelimit-Policy": {`"requests";q=2;w=1, "rows";q=100;w=60`}, "Ratelimit": {`"requests";r=0;t=3`,
			`"rows";r=30;t=42`},
	}
	seen, err := parseRateLimit(h)
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		requests, rows int64
		want           time.Duration
	}{
		{0, 30, 0},
		{1, 0, time.Second / 2},
		{3, 30, 3 * time.Second / 2},
		{1, 31, 600 * time.Millisecond},
		{1, 80, 30 * time.Second},
	} {
		got := seen.wait(map[string]int64{"requests": test.requests, "rows": test.rows, "unheard of": 1})
		if got != test.want {
			t.Errorf("%d requests and %d rows are there in %v, want %v", test.requests, test.rows, got, test.want)
		}
	}
	for _, field := range []string{"Ratelimit-Policy", "Ratelimit"} {
		if _, err := parseRateLimit(http.Header{field: {`"requests`}}); err == nil {
			t.Errorf("%s: a field that is none passes", field)
		}
	}
	if none, err := parseRateLimit(http.Header{}); err != nil ||
		none.wait(map[string]int64{"requests": 1}) != 0 {
		t.Errorf("no field: %v, %v", none, err)
	}
}
