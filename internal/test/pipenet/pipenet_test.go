package pipenet_test

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluice-go/sluice/internal/test/pipenet"
)

// TestTime: an answer that takes an hour takes none in a bubble.
func TestTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := pipenet.Listen()
		server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			time.Sleep(time.Hour) //nolint:forbidigo // in a bubble
			_, _ = io.WriteString(w, "late")
		})}
		ended := make(chan error, 1)
		go func() { ended <- server.Serve(l) }()
		transport := l.Transport()
		resp, err := (&http.Client{Transport: transport}).Get("http://anywhere/")
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(resp.Body)
		if err := errors.Join(err, resp.Body.Close()); err != nil || string(body) != "late" {
			t.Errorf("%q, %v", body, err)
		}
		transport.CloseIdleConnections()
		if err := server.Shutdown(t.Context()); err != nil {
			t.Error(err)
		}
		if err := <-ended; !errors.Is(err, http.ErrServerClosed) {
			t.Error(err)
		}
	})
}

// TestClosed: nobody accepts, and nobody waits for it.
func TestClosed(t *testing.T) {
	l := pipenet.Listen()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := l.Dial(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("Dial: %v", err)
	}
	for range 2 {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	}
	if _, err := l.Accept(); !errors.Is(err, net.ErrClosed) {
		t.Errorf("Accept: %v", err)
	}
	if _, err := l.Dial(t.Context()); !errors.Is(err, net.ErrClosed) {
		t.Errorf("Dial: %v", err)
	}
}

// TestBuffered: two ends that both write before they read do not wait for each other, and a closed one fails.
func TestBuffered(t *testing.T) {
	here, there := net.Pipe()
	client, server := pipenet.Buffered(here), pipenet.Buffered(there)
	for _, end := range []net.Conn{client, server} {
		if n, err := end.Write([]byte("ping")); n != 4 || err != nil {
			t.Fatal(n, err)
		}
	}
	for _, end := range []net.Conn{client, server} {
		got := make([]byte, 4)
		if _, err := io.ReadFull(end, got); string(got) != "ping" || err != nil {
			t.Errorf("%q, %v", got, err)
		}
	}
	for range 2 {
		if err := client.Close(); err != nil {
			t.Error(err)
		}
	}
	if _, err := client.Write([]byte("x")); !errors.Is(err, net.ErrClosed) {
		t.Error(err)
	}
	if _, err := server.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
		t.Error(err)
	}
	if err := server.Close(); err != nil {
		t.Error(err)
	}
}
