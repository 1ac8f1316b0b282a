package main

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"sync"

	"github.com/sluice-go/sluice/examples/gateway/limits"
)

// audit books what passes between clients and gateways. It reads along on the wire, and knows nothing of
// leases: what it has seen of a call is what the call has to have been charged.
type audit struct {
	tenants map[string]*tenant // by API key
	ledger  *ledger

	mu    sync.Mutex
	count streams
}

// streams counts replies by how they ended, and their tokens.
type streams struct {
	// broken: by the model, or failed, before its first token; hungUp: by the client
	whole, broken, failed, hungUp int
	sent                          int64
}

func newAudit(cast []tenant, l *ledger) *audit {
	a := &audit{tenants: map[string]*tenant{}, ledger: l}
	for i := range cast {
		a.tenants[cast[i].apiKey()] = &cast[i]
	}
	return a
}

// watch has the audit read along with next.
func (a *audit) watch(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		t, known := a.tenants[apiKey(r)]
		if !known {
			next.ServeHTTP(w, r)
			return
		}
		var asked bytes.Buffer
		r.Body = struct {
			io.Reader
			io.Closer
		}{io.TeeReader(r.Body, &asked), r.Body}
		seen := &tap{ResponseWriter: w}
		next.ServeHTTP(seen, r)
		degraded := w.Header().Get("X-Ratelimit-Remaining-Requests") == "" // nobody knows what is left
		if r.URL.Path == "/v1/embeddings" {
			a.ledger.embedded(t, seen.status, degraded)
			return
		}
		c := &chat{MaxTokens: most}
		if json.Unmarshal(asked.Bytes(), c) != nil {
			return // nor could the gateway read it
		}
		a.note(seen)
		used := limits.GPT4Usage{Input: tokens(c.prompt()), Output: seen.sent}
		a.ledger.completed(t, seen.status, degraded, c.estimate(), used)
	})
}

// note counts a reply.
func (a *audit) note(seen *tap) {
	a.mu.Lock()
	defer a.mu.Unlock()
	c := &a.count
	c.sent += seen.sent
	switch {
	case seen.whole:
		c.whole++
	case seen.broken:
		c.broken++
	case seen.status == http.StatusBadGateway:
		c.failed++
	case seen.status == http.StatusOK || seen.status == 0:
		c.hungUp++
	}
}

// streams returns what was seen so far.
func (a *audit) streams() streams {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.count
}

// tap reads along with what a handler writes.
type tap struct {
	http.ResponseWriter

	status  int // 0: none was written
	pending bytes.Buffer
	sent    int64 // tokens that have left
	whole   bool  // so has the reply's end,
	broken  bool  // or that the model has broken off
}

// WriteHeader implements http.ResponseWriter.
func (t *tap) WriteHeader(status int) {
	t.status = status
	t.ResponseWriter.WriteHeader(status)
}

// Write implements http.ResponseWriter.
func (t *tap) Write(p []byte) (int, error) {
	if t.status == 0 {
		t.status = http.StatusOK
	}
	n, err := t.ResponseWriter.Write(p)
	t.pending.Write(p[:n])
	return n, err
}

// Unwrap lets http.ResponseController find what else the server's writer can do.
func (t *tap) Unwrap() http.ResponseWriter { return t.ResponseWriter }

// FlushError is what http.ResponseController calls. It counts the flushed events as sent.
func (t *tap) FlushError() error {
	err := http.NewResponseController(t.ResponseWriter).Flush()
	if err != nil {
		return err
	}
	for line := range strings.Lines(t.pending.String()) {
		e := parseEvent(line)
		t.sent += tokens(e.text)
		t.whole, t.broken = t.whole || e.done, t.broken || e.failed
	}
	t.pending.Reset()
	return nil
}

// event is what a line of a stream says.
type event struct {
	text         string
	completion   int64 // tokens of the whole reply, if it says that
	done, failed bool
}

// parseEvent reads a line of a stream: of one that is no data, nothing.
func parseEvent(line string) (e event) {
	data, ok := strings.CutPrefix(strings.TrimSpace(line), "data: ")
	if !ok {
		return e
	}
	if data == done {
		return event{done: true}
	}
	var said struct {
		chunk
		errorBody
	}
	if json.Unmarshal([]byte(data), &said) != nil {
		return e
	}
	for _, c := range said.Choices {
		e.text += c.Delta.Content
	}
	if said.Usage != nil {
		e.completion = said.Usage.Completion
	}
	e.failed = said.Error.Message != ""
	return e
}
