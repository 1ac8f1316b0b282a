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
