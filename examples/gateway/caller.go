package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"sync"

	"github.com/sluice-go/sluice/examples/gateway/limits"
)

// caller calls gateways as tenants do.
type caller struct {
	board *board

	mu   sync.Mutex
	read int64 // tokens of replies
	err  error // the first that no client should see
}

// post sends a request and notes how it is answered. The answer is to be closed.
func (c *caller) post(
	ctx context.Context, at *front, t *tenant, path string, body any,
) (*http.Response, error) {
	text, err := json.Marshal(body)
	if err != nil {
		return nil, err
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, at.url+path, bytes.NewReader(text))
	if err != nil {
		return nil, err
	}
	r.Header.Set("Authorization", "Bearer "+t.apiKey())
	r.Header.Set("Content-Type", "application/json")
	resp, err := at.client.Do(r)
	if err == nil {
		c.board.note(t, resp)
	}
	return resp, err
}

// chat asks for a completion, and hangs up after so many tokens, unless that is 0.
func (c *caller) chat(ctx context.Context, at *front, t *tenant, prompt string, enough int64) {
	body := chat{Model: limits.GPT4, Stream: true, Messages: []message{{"user", prompt}}}
	if t.waits {
		body.ServiceTier = "flex"
	}
	resp, err := c.post(ctx, at, t, "/v1/chat/completions", body)
	if err != nil {
		c.note(ctx, 0, err)
		return
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode != http.StatusOK {
		_, _ = io.Copy(io.Discard, resp.Body) // to its end, so that the connection serves again
		return
	}
	read, err := read(resp.Body, enough)
	c.note(ctx, read, err)
}

// read reads a reply, and returns how many tokens it had. It fails if these are not as many as it is said to
// have.
func read(body io.Reader, enough int64) (read int64, err error) {
	lines := bufio.NewScanner(body)
	for lines.Scan() {
		e := parseEvent(lines.Text())
		read += tokens(e.text)
		switch {
		case enough > 0 && read >= enough:
			return read, nil
		case e.completion > 0 && e.completion != read:
			return read, fmt.Errorf("a reply of %d tokens has %d", e.completion, read)
		case e.done, e.failed:
			_, err := io.Copy(io.Discard, body)
			return read, err
		}
	}
	if lines.Err() != nil {
		return read, lines.Err()
	}
	return read, fmt.Errorf("a reply ends after %d tokens without an end", read)
}

// embed asks for embeddings.
func (c *caller) embed(ctx context.Context, at *front, t *tenant) {
	resp, err := c.post(ctx, at, t, "/v1/embeddings", map[string]string{"model": limits.Embeddings,
		"input": "some text"})
	if err == nil {
		_, err = io.Copy(io.Discard, resp.Body)
		_ = resp.Body.Close()
	}
	c.note(ctx, 0, err)
}

// note counts what was read. After a Ctrl-C calls fail, and may.
func (c *caller) note(ctx context.Context, read int64, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.read += read
	if c.err == nil && ctx.Err() == nil {
		c.err = err
	}
}

// seen returns how many tokens clients have read, and the first error that none should see.
func (c *caller) seen() (read int64, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.read, c.err
}
