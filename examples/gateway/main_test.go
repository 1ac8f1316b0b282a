package main

import (
	"context"
	"errors"
	"flag"
	"net"
	"net/http"
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
		"-table", "t12", "-serve", ":80", "-v"})
	want := settings{table: "t12", serve: ":80", duration: 3 * time.Second, seed: 7, verbose: true}
	if err != nil || s != want {
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
	ctx, interrupt := context.WithCancel(t.Context())
	interrupt()
	if err := run(ctx, settings{table: "rate_limits"}, pipes, display{}); !errors.Is(err, errInterrupted) ||
		err.Error() != "interrupted" {
		t.Errorf("run returned %v", err)
	}

	// The control: what fails by itself is not called an interrupt.
	if err := run(t.Context(), settings{endpoint: "nonsense"}, pipes, display{}); err == nil ||
		err.Error() != `-endpoint "nonsense" is not a URL: pass one such as http://localhost:8000` {
		t.Errorf("run with a wrong endpoint returned %v", err)
	}
}

// TestRemote: keys come from AWS's variables, and an emulator takes made-up ones.
func TestRemote(t *testing.T) {
	for _, name := range []string{
		"AWS_REGION", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN",
	} {
		t.Setenv(name, "")
	}
	const local, wire = "http://localhost:8000", "eu-west-1"
	client, err := remote(settings{endpoint: local})
	if err != nil {
		t.Fatal(err)
	}
	keys, err := client.Options().Credentials.Retrieve(t.Context())
	if o := client.Options(); err != nil || keys.AccessKeyID != "local" || o.Region != "us-east-1" ||
		*o.BaseEndpoint != local {
		t.Errorf("%s: key %s, region %s, %v", local, keys.AccessKeyID, o.Region, err)
	}
	if _, err := remote(settings{region: wire}); err == nil ||
		!strings.HasPrefix(err.Error(), "no credentials of AWS: set AWS_ACCESS_KEY_ID and ") {
		t.Errorf("without keys: %v", err)
	}
	t.Setenv("AWS_ACCESS_KEY_ID", "key")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "secret")
	if client, err = remote(settings{region: wire}); err != nil {
		t.Fatal(err)
	}
	keys, err = client.Options().Credentials.Retrieve(t.Context())
	if o := client.Options(); err != nil || keys.AccessKeyID != "key" || o.Region != wire ||
		o.BaseEndpoint != nil {
		t.Errorf("key %s, region %s, %v", keys.AccessKeyID, o.Region, err)
	}
}

// TestServe serves on its own until Ctrl-C, and then says what it has done, and that the table has it so.
func TestServe(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out strings.Builder
		ctx, interrupt := context.WithCancel(t.Context())
		l := pipenet.Listen()
		transport := l.Transport()
		on := func(context.Context) (net.Listener, *http.Transport, error) { //nolint:unparam // a network can fail
			return l, transport, nil
		}
		ended := make(chan error, 1)
		go func() {
			ended <- run(ctx, settings{table: "rate_limits", serve: "pipe", seed: 1}, on, display{Writer: &out})
		}()
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
		for _, line := range []string{
			"serving at http://pipe until Ctrl-C; keys are sk-alice sk-bob",
			"curl -iN http://pipe/v1/chat/completions -H 'Authorization: Bearer sk-alice'",
			"-d '" + body + "'\n", "\nstreams: 1 ended, ",
			"\nok: The table charged what passed on the wire, on all 16 limits",
		} {
			if !strings.Contains(out.String(), line) {
				t.Errorf("it did not print %q", line)
			}
		}
		if t.Failed() {
			t.Logf("it printed:\n%s", &out)
		}
	})
}
