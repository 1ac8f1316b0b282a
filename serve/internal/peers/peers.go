// Package peers forwards calls on a lease to the replica that holds it.
package peers

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"sync"
	"time"
)

// Path is where a replica says which one it is, and Forwarded the header of a call that a replica forwards.
// Such a call is not forwarded again.
const (
	Path      = "/v1/replica"
	Forwarded = "Sluice-Forwarded"
)

// Bounds of the times that peers take to answer. A settle takes up to 5 s.
const (
	introduction = time.Second
	longest      = 15 * time.Second
)

// most bounds an answer, in bytes.
const most = 256 << 10

// ErrUnknown says that no peer is the replica. ErrUnsent says that the replica was not reached: nothing was
// done.
var (
	ErrUnknown = errors.New("no peer holds the lease")
	ErrUnsent  = errors.New("the replica that holds the lease cannot be reached")
)

// Introduction is what a replica says of itself.
type Introduction struct {
	Replica string `json:"replica"`
}

// Peers are the other replicas. It is safe for concurrent use.
type Peers struct {
	urls   []string
	client *http.Client

	mu    sync.Mutex
	known map[string]string // URLs by replica
}

// New returns the Peers at URLs, such as http://10.0.0.2:8080.
func New(urls []string, client *http.Client) *Peers {
	return &Peers{urls: urls, client: client, known: map[string]string{}}
}

// Answer is what a replica has answered.
type Answer struct {
	Status int
	Header http.Header
	Body   []byte
}

// Forward sends a request to a replica, and returns its answer. token is the header Authorization. After
// ErrUnknown and ErrUnsent, nothing was done. After any other error, the replica may have done it.
func (p *Peers) Forward(ctx context.Context, replica, path, token string, body []byte) (*Answer, error) {
	answer, err := p.forward(ctx, replica, path, token, body)
	if err == nil && answer.Status == http.StatusMisdirectedRequest {
		// It has done nothing: another replica has the address by now, and this one may have another.
		return p.forward(ctx, replica, path, token, body)
	}
	return answer, err
}

// forward is Forward to where the replica was last.
func (p *Peers) forward(ctx context.Context, replica, path, token string, body []byte) (*Answer, error) {
	at, err := p.find(ctx, replica, token)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), longest) // a settle outlives its client
	defer cancel()
	answer, err := p.send(ctx, http.MethodPost, at+path, token, body)
	if err == nil && answer.Status != http.StatusMisdirectedRequest {
		return answer, nil
	}
	p.mu.Lock()
	delete(p.known, replica) // another one may have its place
	p.mu.Unlock()
	if dial, ok := errors.AsType[*net.OpError](err); ok && dial.Op == "dial" {
		return nil, fmt.Errorf("%w: %w", ErrUnsent, err)
	}
	return answer, err
}

// find returns the URL of a replica. It asks all peers which ones they are, if it does not know.
func (p *Peers) find(ctx context.Context, replica, token string) (string, error) {
	p.mu.Lock()
	at, ok := p.known[replica]
	p.mu.Unlock()
	if ok {
		return at, nil
	}
	ctx, cancel := context.WithTimeout(ctx, introduction)
	defer cancel()
	var asking sync.WaitGroup
	var silent error
	for _, peer := range p.urls {
		asking.Go(func() {
			name, err := p.introduce(ctx, peer, token)
			p.mu.Lock()
			defer p.mu.Unlock()
			if err != nil {
				silent = err
				return
			}
			p.known[name] = peer
		})
	}
	asking.Wait()
	p.mu.Lock()
	defer p.mu.Unlock()
	switch at, ok := p.known[replica]; {
	case ok:
		return at, nil
	case silent != nil: // it may be the one
		return "", fmt.Errorf("%w: %w", ErrUnsent, silent)
	}
	return "", ErrUnknown
}

// introduce asks a peer which replica it is.
func (p *Peers) introduce(ctx context.Context, peer, token string) (string, error) {
	answer, err := p.send(ctx, http.MethodGet, peer+Path, token, nil)
	if err != nil {
		return "", err
	}
	if answer.Status != http.StatusOK {
		return "", fmt.Errorf("%s answers %d", Path, answer.Status)
	}
	var own Introduction
	err = json.Unmarshal(answer.Body, &own)
	return own.Replica, err
}

// send sends a request to a peer.
func (p *Peers) send(ctx context.Context, method, to, token string, body []byte) (*Answer, error) {
	r, err := http.NewRequestWithContext(ctx, method, to, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set(Forwarded, "1")
	if token != "" {
		r.Header.Set("Authorization", token)
	}
	resp, err := p.client.Do(r)
	if failed, ok := errors.AsType[*url.Error](err); ok { // it names the lease
		err = failed.Err
	}
	if err != nil {
		return nil, err
	}
	defer func() { _ = resp.Body.Close() }()
	text, err := io.ReadAll(io.LimitReader(resp.Body, most))
	return &Answer{resp.StatusCode, resp.Header, text}, err
}
