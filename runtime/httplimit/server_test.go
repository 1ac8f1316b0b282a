package httplimit_test

import (
	"context"
	"errors"
	"io"
	"log"
	"log/slog"
	"net/http"
	"strconv"
	"testing"

	limits "github.com/sluice-go/sluice/generated"
	"github.com/sluice-go/sluice/internal/test/pipenet"
	"github.com/sluice-go/sluice/runtime"
	"github.com/sluice-go/sluice/runtime/httplimit"
	"github.com/sluice-go/sluice/runtime/limittest"
)

// serve returns a client of a server with handler, both of which end with the test.
func serve(t testing.TB, handler http.Handler) *http.Client {
	t.Helper()
	l := pipenet.Listen()
	server := &http.Server{Handler: handler, ErrorLog: log.New(io.Discard, "", 0)}
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(l) }()
	transport := l.Transport()
	t.Cleanup(func() {
		transport.CloseIdleConnections()
		_ = server.Close()
		if err := <-ended; !errors.Is(err, http.ErrServerClosed) {
			t.Error(err)
		}
	})
	return &http.Client{Transport: transport}
}

// reply is an answer that has been read.
type reply struct {
	*http.Response

	body string
}

// get sends a request of query, such as tpm=100&user=1.
func get(t testing.TB, client *http.Client, query string) reply {
	t.Helper()
	r, err := tryGet(t.Context(), client, query)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func tryGet(ctx context.Context, client *http.Client, query string) (reply, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://gateway/?"+query, nil)
	if err != nil {
		return reply{}, err
	}
	resp, err := client.Do(req)
	if err != nil {
		return reply{}, err
	}
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(resp.Body)
	return reply{resp, string(body)}, err
}

// ask charges user for tpm, both of the query.
func ask(r *http.Request) (limits.GPT4Entity, limits.GPT4Cost, error) {
	tpm, err := strconv.ParseInt(r.FormValue("tpm"), 10, 64)
	if err != nil {
		return nil, limits.GPT4Cost{}, err
	}
	return limits.User{ID: r.FormValue("user"), Project: limits.Project{ID: "1"}}, limits.GPT4Cost{TPM: tpm}, nil
}

// open returns a limiter on a table of its own.
func open(t testing.TB, store runtime.Store) *limits.Limiter {
	t.Helper()
	lim, err := limits.New(store, runtime.WithLogger(slog.New(slog.DiscardHandler)))
	if err != nil {
		t.Fatal(err)
	}
	return lim
}

// limited returns a client of next behind gpt4's limits.
func limited(t testing.TB, gpt4 limits.GPT4Acquirer, next http.HandlerFunc,
	opts ...httplimit.Option) *http.Client {
	t.Helper()
	return serve(t, httplimit.Middleware(gpt4, ask, opts...)(next))
}

func newFake() *limittest.Fake[limits.GPT4Entity, limits.GPT4Cost] {
	return limittest.NewFake((*limits.GPT4Resource)(nil))
}

func nothing(http.ResponseWriter, *http.Request) {}

func newEmbeddings() *limittest.Fake[limits.EmbeddingsEntity, limits.EmbeddingsCost] {
	return limittest.NewFake((*limits.EmbeddingsResource)(nil))
}
