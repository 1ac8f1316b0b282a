package main

import (
	"context"
	"errors"
	"flag"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluice-go/sluice/internal/test/pipenet"
)

// pipes is a network in the process, where time in a bubble does not stand still.
func pipes(context.Context) (net.Listener, *http.Transport, error) {
	l := pipenet.Listen()
	return l, l.Transport(), nil
}

func TestParse(t *testing.T) {
	s, err := parse(flag.NewFlagSet("gateway", flag.ContinueOnError), []string{"-for", "3s", "-seed", "7",
		"-table", "t12", "-serve", ":80"})
	if want := (settings{table: "t12", serve: ":80", duration: 3 * time.Second, seed: 7}); err != nil ||
		s != want {
		t.Errorf("%+v, %v, want %+v", s, err, want)
	}
	_, err = parse(flag.NewFlagSet("gateway", flag.ContinueOnError), []string{"-seed", "7", "3s"})
	if err == nil || err.Error() != `unexpected argument "3s": run with -help for the flags` {
		t.Errorf("a stray argument: %v", err)
	}
	_, err = parse(flag.NewFlagSet("gateway", flag.ContinueOnError), []string{"-for", "-1s"})
	if err == nil || err.Error() != `-for -1s: want more than 0` {
		t.Errorf("no time at all: %v", err)
	}
}

// TestTaken: who cannot listen is told where, and what to do.
func TestTaken(t *testing.T) {
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	for _, address := range []string{l.Addr().String(), "8080"} {
		_, _, err := tcp(address)(t.Context())
		if err == nil || !strings.HasPrefix(err.Error(), "cannot serve at "+address+": ") ||
			!strings.HasSuffix(err.Error(), ": pass another address, such as -serve :8080") {
			t.Errorf("%v", err)
		}
	}
}

// TestStarting: an interrupt while the program starts is no failure of what it broke off.
func TestStarting(t *testing.T) {
	out, err := os.Create(filepath.Join(t.TempDir(), "out"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = out.Close() }()
	ctx, interrupt := context.WithCancel(t.Context())
	interrupt()
	if err := run(ctx, settings{table: "rate_limits"}, pipes, out); !errors.Is(err, errInterrupted) ||
		err.Error() != "interrupted" {
		t.Errorf("run returned %v", err)
	}

	// The control: what fails by itself is not called an interrupt.
	t.Setenv("AWS_EC2_METADATA_DISABLED", "true")
	if err := run(t.Context(), settings{endpoint: "nonsense"}, pipes, out); err == nil ||
		errors.Is(err, errInterrupted) {
		t.Errorf("run with a wrong endpoint returned %v", err)
	}
}

// TestDemo runs the program as `make demo` does, in time that takes none: all its checks hold, after a Ctrl-C
// too.
func TestDemo(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		interrupt time.Duration
		lines     []string
	}{
		"to its end": {time.Hour, []string{"\ndenied ", "\ndegraded "}},
		"Ctrl-C":     {3 * time.Second, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				out, err := os.Create(filepath.Join(t.TempDir(), "out"))
				if err != nil {
					t.Fatal(err)
				}
				defer func() { _ = out.Close() }()
				s, err := parse(flag.NewFlagSet("gateway", flag.ContinueOnError), nil)
				if err != nil {
					t.Fatal(err)
				}
				if testing.Short() {
					s.duration = 6 * time.Second
				}
				ctx, interrupt := context.WithCancel(t.Context())
				defer time.AfterFunc(test.interrupt, interrupt).Stop()
				if err := run(ctx, s, pipes, out); err != nil {
					t.Error(err)
				}
				printed, err := os.ReadFile(out.Name())
				if err != nil {
					t.Fatal(err)
				}
				for _, line := range append(test.lines,
					"\nstreams: ", "\ncheck: ok: of ", "\ncheck: ok: on all 16 limits ",
					"\ncheck: ok: on all 4 limits of projects ", "\nbill: ok: ") {
					if !strings.Contains(string(printed), line) {
						t.Errorf("it did not print %q", line)
					}
				}
				if t.Failed() {
					t.Logf("it printed:\n%s", printed)
				}
			})
		})
	}
}

// TestServe serves on its own until Ctrl-C, and then says what it has done, and that the table has it so.
func TestServe(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		out, err := os.Create(filepath.Join(t.TempDir(), "out"))
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = out.Close() }()
		ctx, interrupt := context.WithCancel(t.Context())
		l := pipenet.Listen()
		transport := l.Transport()
		on := func(context.Context) (net.Listener, *http.Transport, error) { //nolint:unparam // a network can fail
			return l, transport, nil
		}
		ended := make(chan error, 1)
		go func() { ended <- run(ctx, settings{table: "rate_limits", serve: "pipe", seed: 1}, on, out) }()
		post := func(path, body string) *http.Response {
			t.Helper()
			r, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://pipe"+path, strings.NewReader(body))
			if err != nil {
				t.Fatal(err)
			}
			r.Header.Set("Authorization", "Bearer sk-alice")
			resp, err := (&http.Client{Transport: transport}).Do(r)
			if err != nil {
				t.Fatal(err)
			}
			return resp
		}
		const body = `{"model": "gpt-4", "stream": true, "messages": [{"role": "user", "content": "say ` +
			`something"}]}`
		resp := post("/v1/chat/completions", body)
		read, err := read(resp.Body, 0)
		if err := errors.Join(err, resp.Body.Close()); err != nil || read == 0 {
			t.Errorf("read %d tokens: %v", read, err)
		}
		resp = post("/v1/embeddings", `{"model": "embeddings", "input": "something"}`)
		if err := resp.Body.Close(); err != nil || resp.StatusCode != http.StatusOK ||
			resp.Header.Get("X-Ratelimit-Remaining-Requests") != "19" {
			t.Errorf("embeddings: %d, %v, %v", resp.StatusCode, resp.Header, err)
		}
		interrupt()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		printed, err := os.ReadFile(out.Name())
		if err != nil {
			t.Fatal(err)
		}
		for _, line := range []string{
			"serving at http://pipe until Ctrl-C; keys are sk-alice sk-bob",
			"curl -iN http://pipe/v1/chat/completions -H 'Authorization: Bearer sk-alice'",
			"-d '" + body + "'\n", "\nstreams: 1 ended, ", "\ncheck: ok: on all 16 limits ",
		} {
			if !strings.Contains(string(printed), line) {
				t.Errorf("it did not print %q", line)
			}
		}
		if t.Failed() {
			t.Logf("it printed:\n%s", printed)
		}
	})
}

// TestMoment: a tick is never on time to the nanosecond.
func TestMoment(t *testing.T) {
	const all = 18 * time.Second
	for elapsed, want := range map[time.Duration]string{
		time.Second + time.Millisecond: "1 of 18 s",
		all:                            "18 of 18 s",
		all + 2*time.Millisecond:       "18 of 18 s",
		all + time.Second:              "finishing",
	} {
		if got := moment(elapsed, all); got != want {
			t.Errorf("moment(%v) = %q, want %q", elapsed, got, want)
		}
		if line := progressLine(counts{}, want); !strings.HasPrefix(line, strings.Repeat(" ", 10-len(want))+want+
			"   admitted ") {
			t.Errorf("line %q", line)
		}
	}
}
