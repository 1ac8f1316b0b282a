package httplimit_test

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluice-go/sluice/runtime"
	"github.com/sluice-go/sluice/runtime/httplimit"
	"github.com/sluice-go/sluice/runtime/internal/slottest"
)

// slots returns a store, and a client of next behind its limit of calls in flight.
func slots(t *testing.T, next http.HandlerFunc, opts ...httplimit.Option) (*slottest.Store, *http.Client) {
	t.Helper()
	backend, _, r := slottest.New(t, runtime.WithLogger(slog.New(slog.DiscardHandler)))
	limit := httplimit.Middleware(r, func(*http.Request) (slottest.Key, slottest.Cost, error) {
		return slottest.Key{ID: "1"}, slottest.Cost{}, nil
	}, opts...)
	return backend, serve(t, limit(next))
}

// free reports slots that are not as many as they should be.
func free(t *testing.T, when string, backend *slottest.Store, want int64) {
	t.Helper()
	if got := backend.Free("1"); got != want {
		t.Errorf("%s: %d slots are free, want %d", when, got, want)
	}
}

// TestSlots: however a handler ends, its slot is back, and was taken while it ran.
func TestSlots(t *testing.T) {
	of := func(r *http.Request) *runtime.Lease[slottest.Cost] {
		return httplimit.Lease[slottest.Cost](r.Context())
	}
	for name, next := range map[string]http.HandlerFunc{
		"returns": nothing,
		"fails":   func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusBadGateway) },
		"panics":  func(http.ResponseWriter, *http.Request) { panic("bug") },
		"aborts":  func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) },
		"settles": func(_ http.ResponseWriter, r *http.Request) {
			if err := of(r).Settle(r.Context(), slottest.Cost{}); err != nil || r.Context().Err() != nil {
				t.Errorf("settle: %v, and then its context: %v", err, r.Context().Err())
			}
		},
		"hijacks and closes": func(w http.ResponseWriter, _ *http.Request) {
			if conn, _, err := w.(http.Hijacker).Hijack(); err != nil || conn.Close() != nil {
				t.Error("not hijacked")
			}
		},
		"hijacks and panics": func(w http.ResponseWriter, _ *http.Request) {
			conn, _, _ := w.(http.Hijacker).Hijack()
			defer func() { _ = conn.(interface{ NetConn() net.Conn }).NetConn().Close() }()
			panic("bug")
		},
	} {
		for status, opts := range map[string][]httplimit.Option{
			"": nil, ", ReleaseOn": {httplimit.ReleaseOn(func(status int) bool { return status >= 500 })},
		} {
			t.Run(name+status, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					var backend *slottest.Store
					var ctx context.Context
					backend, client := slots(t, func(w http.ResponseWriter, r *http.Request) {
						ctx = r.Context()
						free(t, "meanwhile", backend, slottest.Capacity-1)
						next(w, r)
					}, opts...)
					_, _ = tryGet(t.Context(), client, "")
					synctest.Wait()
					free(t, "then", backend, slottest.Capacity)
					if ctx.Err() == nil {
						t.Error("the handler's context is open")
					}
				})
			})
		}
	}
}

// TestHijackedSlot is taken until its connection is closed, also after its handler has returned.
func TestHijackedSlot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		conns := make(chan net.Conn, 1)
		backend, client := slots(t, func(w http.ResponseWriter, _ *http.Request) {
			conn, _, err := w.(http.Hijacker).Hijack()
			if err != nil {
				t.Error(err)
			}
			_, _ = io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nmine")
			conns <- conn
		})
		if r, err := tryGet(t.Context(), client, ""); r.body != "mine" {
			t.Errorf("%q, %v", r.body, err)
		}
		<-time.After(10 * time.Minute)
		free(t, "while it is open", backend, slottest.Capacity-1)
		conn := <-conns
		for range 2 {
			_ = conn.Close()
			free(t, "once it is closed", backend, slottest.Capacity)
		}
	})
}

// TestLostSlot: a handler learns from its request's context that it has lost its slot, and a connection that
// it has hijacked is closed.
func TestLostSlot(t *testing.T) {
	for name, hijacks := range map[string]bool{"handler": false, "hijacked": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				start := time.Now()
				causes, conns := make(chan error, 1), make(chan net.Conn, 1)
				backend, client := slots(t, func(w http.ResponseWriter, r *http.Request) {
					if hijacks {
						conn, _, _ := w.(http.Hijacker).Hijack()
						conns <- conn
						return
					}
					<-r.Context().Done()
					causes <- context.Cause(r.Context())
				})
				backend.FailExtensions(errors.New("no reply"))
				go func() { _, _ = tryGet(t.Context(), client, "") }()
				if hijacks {
					conn := <-conns
					_, err := conn.Read(make([]byte, 1))
					if err == nil {
						t.Error("it is open")
					}
					_ = conn.Close()
				} else if cause := <-causes; !errors.Is(cause, runtime.ErrLeaseLost) {
					t.Errorf("cause %v", cause)
				}
				if took := time.Since(start); took != 117*time.Second {
					t.Errorf("after %v, want 3 s before the end of two minutes", took)
				}
			})
		})
	}
}

// TestSlotHeaders: free slots and their number, without a time.
func TestSlotHeaders(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		_, client := slots(t, func(http.ResponseWriter, *http.Request) { <-release }, httplimit.Headers(),
			httplimit.XHeaders())
		replies := make(chan reply, slottest.Capacity)
		for range slottest.Capacity {
			go func() {
				r, _ := tryGet(t.Context(), client, "")
				replies <- r
			}()
			synctest.Wait()
		}
		denied := get(t, client, "")
		if got := denied.Header; denied.StatusCode != http.StatusTooManyRequests ||
			got.Get("RateLimit-Policy") != `"parallel";q=20` || got.Get("RateLimit") != `"parallel";r=0` ||
			got.Get("Retry-After") != "1" {
			t.Errorf("%d %v", denied.StatusCode, got)
		}
		close(release)
		first := <-replies
		for range slottest.Capacity - 1 {
			if r := <-replies; r.Header.Get("RateLimit") == `"parallel";r=19` {
				first = r
			}
		}
		got := first.Header
		if got.Get("RateLimit") != `"parallel";r=19` || got.Get("RateLimit-Policy") != `"parallel";q=20` ||
			got.Get("X-RateLimit-Limit") != "20" || got.Get("X-RateLimit-Reset") != "0" {
			t.Errorf("%v", got)
		}
	})
}
