package httplimit_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"

	limits "github.com/sluice-go/sluice/generated"
	"github.com/sluice-go/sluice/runtime"
	"github.com/sluice-go/sluice/runtime/httplimit"
)

// settle settles r's lease for 3: the fake says whether it did.
func settle(r *http.Request) {
	_ = httplimit.Lease[limits.GPT4Cost](r.Context()).Settle(r.Context(), limits.GPT4Cost{TPM: 3})
}

// TestLease says what becomes of a lease, by how its handler ends.
func TestLease(t *testing.T) {
	failed := httplimit.ReleaseOn(func(status int) bool { return status >= 500 })
	type end struct{ settled, released, broken bool }
	for _, test := range []struct {
		name string
		next http.HandlerFunc
		opts []httplimit.Option
		want end
	}{
		{"returns", nothing, nil, end{}},
		{"settles", func(_ http.ResponseWriter, r *http.Request) { settle(r) }, nil, end{settled: true}},
		{"fails", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(500) }, nil, end{}},
		{"panics", func(http.ResponseWriter, *http.Request) { panic("bug") }, nil,
			end{released: true, broken: true}},
		{"settles and panics", func(_ http.ResponseWriter, r *http.Request) {
			settle(r)
			panic("bug")
		}, nil, end{settled: true, broken: true}},
		{"aborts", func(w http.ResponseWriter, _ *http.Request) {
			_, _ = io.WriteString(w, "half")
			panic(http.ErrAbortHandler)
		}, nil, end{broken: true}},
		{"ReleaseOn: fails", func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusEarlyHints)
			w.WriteHeader(502)
		}, []httplimit.Option{failed}, end{released: true}},
		{"ReleaseOn: settles and fails", func(w http.ResponseWriter, r *http.Request) {
			settle(r)
			w.WriteHeader(502)
		}, []httplimit.Option{failed}, end{settled: true}},
		{"ReleaseOn: writes nothing", nothing,
			[]httplimit.Option{httplimit.ReleaseOn(func(status int) bool { return status == 200 })},
			end{released: true}},
		{"ReleaseOn: fails too late", func(w http.ResponseWriter, _ *http.Request) {
			_, _ = io.WriteString(w, "half")
			w.WriteHeader(502)
		}, []httplimit.Option{failed}, end{}},
		{"ReleaseOn: flushes, then fails", func(w http.ResponseWriter, _ *http.Request) {
			w.(http.Flusher).Flush()
			w.WriteHeader(502)
		}, []httplimit.Option{failed}, end{}},
		{"ReleaseOn: copies nothing, then fails", func(w http.ResponseWriter, _ *http.Request) {
			_, _ = w.(io.ReaderFrom).ReadFrom(strings.NewReader(""))
			w.WriteHeader(502)
		}, []httplimit.Option{failed}, end{released: true}},
		{"ReleaseOn: its own time is up", func(w http.ResponseWriter, r *http.Request) {
			ctx, cancel := context.WithTimeout(r.Context(), 0)
			defer cancel()
			httplimit.WriteError(w, r.WithContext(ctx), ctx.Err())
		}, []httplimit.Option{failed}, end{released: true}},
		{"ReleaseOn: copies", func(w http.ResponseWriter, _ *http.Request) {
			_, _ = w.(io.ReaderFrom).ReadFrom(strings.NewReader("all"))
			w.WriteHeader(502)
		}, []httplimit.Option{failed}, end{}},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				fake := newFake()
				client := limited(t, fake, test.next, test.opts...)
				_, err := tryGet(t.Context(), client, "user=1&tpm=700")
				synctest.Wait()
				calls := fake.Calls()
				if len(calls) != 1 || calls[0].Cost.TPM != 700 {
					t.Fatalf("%+v", calls)
				}
				if got := (end{calls[0].Settled.TPM == 3, calls[0].Released, err != nil}); got != test.want {
					t.Errorf("%+v, want %+v", got, test.want)
				}
			})
		})
	}
}

// TestKept: once the handler has returned, its lease is over.
func TestKept(t *testing.T) {
	for name, test := range map[string]struct {
		next http.HandlerFunc
		opts []httplimit.Option
	}{
		"returns": {nothing, nil},
		"aborts":  {func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, nil},
		"ReleaseOn: another status": {nothing,
			[]httplimit.Option{httplimit.ReleaseOn(func(status int) bool { return status == 500 })}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				fake := newFake()
				var lease *limits.GPT4Lease
				client := limited(t, fake, func(w http.ResponseWriter, r *http.Request) {
					lease = httplimit.Lease[limits.GPT4Cost](r.Context())
					test.next(w, r)
				}, test.opts...)
				_, _ = tryGet(t.Context(), client, "user=1&tpm=700")
				synctest.Wait()
				if err := lease.Settle(t.Context(), limits.GPT4Cost{TPM: 3}); !errors.Is(err, runtime.ErrSettled) {
					t.Errorf("%v, want ErrSettled", err)
				}
				if calls := fake.Calls(); len(calls) != 1 || calls[0].Done {
					t.Errorf("%+v, want it to stand as charged", calls)
				}
			})
		})
	}
}

// TestClientGoesAway: the handler of a stream notices, and what it settles then counts.
func TestClientGoesAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fake := newFake()
		ctx, hangUp := context.WithCancel(t.Context())
		client := limited(t, fake, func(w http.ResponseWriter, r *http.Request) {
			defer settle(r)
			w.(http.Flusher).Flush()
			hangUp()
			<-r.Context().Done()
		}, httplimit.ReleaseOn(func(int) bool { return true }))
		_, _ = tryGet(ctx, client, "user=1&tpm=700")
		synctest.Wait()
		if calls := fake.Calls(); len(calls) != 1 || calls[0].Settled.TPM != 3 || calls[0].Released {
			t.Errorf("%+v", calls)
		}
	})
}

// TestClientThatHangsUp in the last moment has had its answer's work done: an answer that nobody hears gives
// nothing back.
func TestClientThatHangsUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fake := newFake()
		ctx, hangUp := context.WithCancel(t.Context())
		client := limited(t, fake, func(w http.ResponseWriter, r *http.Request) {
			hangUp()
			<-r.Context().Done()
			if !httplimit.WriteError(w, r, r.Context().Err()) {
				t.Error("not answered")
			}
		}, httplimit.ReleaseOn(func(status int) bool { return status >= 500 }))
		_, _ = tryGet(ctx, client, "user=1&tpm=700")
		synctest.Wait()
		if calls := fake.Calls(); len(calls) != 1 || calls[0].Done {
			t.Errorf("%+v, want it to stand as charged", calls)
		}
	})
}

// broken is a writer whose client has gone.
type broken struct {
	http.ResponseWriter

	err error
}

// FlushError is what http.ResponseController asks for.
func (w broken) FlushError() error { return w.err }

// TestFlushFails: a handler that streams is told why its answer does not get through, as it is by the
// server's own writer.
func TestFlushFails(t *testing.T) {
	left := errors.New("the client has gone")
	for _, test := range []struct {
		at   http.ResponseWriter
		want error
	}{
		{broken{httptest.NewRecorder(), left}, left},
		{struct{ http.ResponseWriter }{httptest.NewRecorder()}, http.ErrNotSupported},
		{httptest.NewRecorder(), nil},
	} {
		var err error
		handler := httplimit.Middleware(newFake(), ask,
			httplimit.ReleaseOn(func(int) bool { return false }))(http.HandlerFunc(
			func(w http.ResponseWriter, _ *http.Request) { err = http.NewResponseController(w).Flush() },
		))
		handler.ServeHTTP(test.at, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/?user=1&tpm=1",
			nil))
		if !errors.Is(err, test.want) || (err == nil) != (test.want == nil) {
			t.Errorf("%T: %v, want %v", test.at, err, test.want)
		}
	}
}

// TestHijack: a handler that has hijacked the connection settles before it returns. ReleaseOn is not asked,
// since the status is not known.
func TestHijack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fake := newFake()
		client := limited(t, fake, func(w http.ResponseWriter, r *http.Request) {
			conn, _, err := w.(http.Hijacker).Hijack()
			if err != nil {
				t.Error(err)
				return
			}
			_, _ = io.WriteString(conn, "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nmine")
			settle(r)
			_ = conn.Close()
		}, httplimit.ReleaseOn(func(int) bool { return true }))
		if r, err := tryGet(t.Context(), client, "user=1&tpm=700"); r.body != "mine" {
			t.Errorf("%q, %v", r.body, err)
		}
		if calls := fake.Calls(); calls[0].Settled.TPM != 3 || calls[0].Released {
			t.Errorf("%+v", calls)
		}
	})
}

// TestWriterIsTheServers: without ReleaseOn nothing stands between a handler and the server, and with it
// ResponseController finds it.
func TestWriterIsTheServers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var at http.ResponseWriter
		note := func(next http.Handler) http.HandlerFunc {
			return func(w http.ResponseWriter, r *http.Request) {
				at = w
				next.ServeHTTP(w, r)
			}
		}
		for name, opts := range map[string][]httplimit.Option{
			"without": {httplimit.Headers()}, "with ReleaseOn": {httplimit.ReleaseOn(func(int) bool { return false })},
		} {
			fake := newFake()
			client := serve(t, note(httplimit.Middleware(fake, ask,
				opts...)(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				if wrapper, ok := w.(interface{ Unwrap() http.ResponseWriter }); ok {
					w = wrapper.Unwrap()
				}
				if w != at {
					t.Errorf("%s: %T, want the server's", name, w)
				}
			}))))
			get(t, client, "user=1&tpm=1")
			if len(fake.Calls()) != 1 {
				t.Error("the handler was not reached")
			}
		}
	})
}

// TestTwoLeases: a handler behind two limits settles each.
func TestTwoLeases(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		chat, batches := newFake(), newEmbeddings()
		project := func(*http.Request) (limits.EmbeddingsEntity, limits.EmbeddingsCost, error) {
			return limits.Project{ID: "1"}, limits.EmbeddingsCost{RPS: 2}, nil
		}
		inner := httplimit.Middleware(chat, ask)(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			settle(r)
			httplimit.Lease[limits.EmbeddingsCost](r.Context()).Release(r.Context())
			if httplimit.Lease[int](r.Context()) != nil {
				t.Error("a lease of no limit's")
			}
		}))
		get(t, serve(t, httplimit.Middleware(batches, project)(inner)), "user=1&tpm=700")
		if a, b := chat.Calls(), batches.Calls(); len(a) != 1 || len(b) != 1 || a[0].Settled.TPM != 3 ||
			!b[0].Released {
			t.Errorf("%+v %+v", a, b)
		}
	})
}
