package dynamo

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/sluice-go/sluice/runtime/internal/item"
)

// network is what lies between the real client and the engine. It does with each write of a bucket what the
// test said, one mishap after the other; what comes after those, reads and other items pass.
type network struct {
	next dynamodb.HTTPClient

	mu      sync.Mutex
	mishaps []mishap
	// writes of entities' items, and of the heartbeat, that the client sent
	sent int
	late []func() (*http.Response, error) // delayed
}

// mishap is what befalls a write. apply sends it on, as often as it is called.
type mishap func(w *network, apply func() (*http.Response, error)) (*http.Response, error)

// withNetwork returns a client of the engine through a network of its own.
func (e *engine) withNetwork(mishaps ...mishap) (*dynamodb.Client, *network) {
	o := e.client.Options()
	w := &network{next: o.HTTPClient, mishaps: mishaps}
	o.HTTPClient = w
	return dynamodb.New(o), w
}

// Do implements dynamodb.HTTPClient.
func (w *network) Do(r *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	apply := func() (*http.Response, error) {
		again := r.Clone(context.WithoutCancel(r.Context())) // what was sent arrives, though nobody waits
		again.Body = io.NopCloser(bytes.NewReader(body))
		return w.next.Do(again)
	}
	_, op, _ := strings.Cut(r.Header.Get("X-Amz-Target"), ".")
	if op != "PutItem" && op != "UpdateItem" && op != "TransactWriteItems" ||
		!bytes.Contains(body, []byte(`"ENTITY#`)) && !bytes.Contains(body, []byte(item.Heartbeat.SK)) {
		return apply()
	}
	w.mu.Lock()
	w.sent++
	var next mishap = pass
	if len(w.mishaps) > 0 {
		next, w.mishaps = w.mishaps[0], w.mishaps[1:]
	}
	w.mu.Unlock()
	return next(w, apply)
}

// expect sets what befalls the next writes, and forgets how many there were.
func (w *network) expect(mishaps ...mishap) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.mishaps, w.sent = mishaps, 0
}

// writes holds how many writes the client sent since expect, and that every mishap happened.
func (w *network) writes(t testing.TB, want int) {
	t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.sent != want {
		t.Errorf("%d writes were sent, want %d", w.sent, want)
	}
	if len(w.mishaps) > 0 {
		t.Errorf("%d mishaps did not happen", len(w.mishaps))
	}
}

// errWire is a connection that broke while the client waited for the reply.
var errWire = &net.OpError{Op: "read", Net: "tcp", Err: os.NewSyscallError("read", syscall.ECONNRESET)}

func drop(r *http.Response, err error) {
	if err == nil {
		_ = r.Body.Close()
	}
}

func pass(_ *network, apply func() (*http.Response, error)) (*http.Response, error) { return apply() }

func loseRequest(*network, func() (*http.Response, error)) (*http.Response, error) {
	return nil, errWire
}

func refuseConnection(*network, func() (*http.Response, error)) (*http.Response, error) {
	return nil, &net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}
}

func loseReply(_ *network, apply func() (*http.Response, error)) (*http.Response, error) {
	drop(apply())
	return nil, errWire
}

// cutReply ends the reply in its middle.
func cutReply(_ *network, apply func() (*http.Response, error)) (*http.Response, error) {
	r, err := apply()
	if err != nil {
		return nil, err
	}
	defer func() { _ = r.Body.Close() }()
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	r.Body = io.NopCloser(io.MultiReader(bytes.NewReader(body[:len(body)/2]), broken{}))
	return r, nil
}

type broken struct{}

func (broken) Read([]byte) (int, error) { return 0, io.ErrUnexpectedEOF }

// duplicate sends the request twice, and returns the second reply.
func duplicate(_ *network, apply func() (*http.Response, error)) (*http.Response, error) {
	drop(apply())
	return apply()
}

// delay keeps the request until the test lets it arrive.
func delay(w *network, apply func() (*http.Response, error)) (*http.Response, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.late = append(w.late, apply)
	return nil, errWire
}

// keep sends the request on, and keeps a copy that the test lets arrive.
func keep(w *network, apply func() (*http.Response, error)) (*http.Response, error) {
	_, _ = delay(w, apply)
	return apply()
}

// arrive lets what was delayed or kept arrive, and returns the engine's answers. It can be called again.
func (w *network) arrive(t testing.TB) (codes []int) {
	t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, deliver := range w.late {
		r, err := deliver()
		if err != nil {
			t.Fatal(err)
		}
		drop(r, nil)
		codes = append(codes, r.StatusCode)
	}
	return codes
}

// then runs something once the write is applied and before the mishap of the reply.
func then(do func(), m mishap) mishap {
	return func(w *network, apply func() (*http.Response, error)) (*http.Response, error) {
		r, err := apply()
		do()
		taken := false
		defer func() {
			if !taken {
				drop(r, err)
			}
		}()
		return m(w, func() (*http.Response, error) { taken = true; return r, err })
	}
}

// reject answers with an error and applies nothing.
func reject(code, message string) mishap {
	return func(*network, func() (*http.Response, error)) (*http.Response, error) {
		return answer(http.StatusBadRequest, code, message), nil
	}
}

// cancel answers that a transaction of two items was cancelled, and applies nothing.
func cancel(codes ...string) mishap {
	return func(*network, func() (*http.Response, error)) (*http.Response, error) {
		r := answer(http.StatusBadRequest, "TransactionCanceledException", "cancelled")
		reasons := make([]string, len(codes))
		for i, code := range codes {
			reasons[i] = fmt.Sprintf(`{"Code":%q}`, code)
		}
		body := fmt.Sprintf(`%s,"CancellationReasons":[%s]}`,
			strings.TrimSuffix(text(r), "}"), strings.Join(reasons, ","))
		r.Body, r.ContentLength = io.NopCloser(strings.NewReader(body)), int64(len(body))
		return r, nil
	}
}

func text(r *http.Response) string {
	body, _ := io.ReadAll(r.Body) // of a string
	return string(body)
}

// fail500 applies the write and answers with a server's failure.
func fail500(_ *network, apply func() (*http.Response, error)) (*http.Response, error) {
	drop(apply())
	return answer(http.StatusInternalServerError, "InternalServerError", "we are sorry"), nil
}

// proxy502 applies the write, and a proxy answers in a language of its own.
func proxy502(_ *network, apply func() (*http.Response, error)) (*http.Response, error) {
	drop(apply())
	r := answer(http.StatusBadGateway, "", "")
	r.Body = io.NopCloser(strings.NewReader("<html>Bad Gateway</html>"))
	return r, nil
}

func answer(status int, code, message string) *http.Response {
	body := fmt.Sprintf(`{"__type":"com.amazonaws.dynamodb.v20120810#%s","message":%q}`, code, message)
	return &http.Response{
		StatusCode: status, Status: http.StatusText(status), ProtoMajor: 1, ProtoMinor: 1,
		Header: http.Header{"Content-Type": {"application/x-amz-json-1.0"}},
		Body:   io.NopCloser(strings.NewReader(body)), ContentLength: int64(len(body)),
	}
}

var requestText = regexp.MustCompile(
	`operation error DynamoDB: \w+, (https response error StatusCode: \d+, RequestID: [\w-]*, (api error )?)?`,
)

// withoutRequest drops from an error's text what the client says of the request, which has a new id each
// time.
func withoutRequest(text string) string { return requestText.ReplaceAllString(text, "") }
