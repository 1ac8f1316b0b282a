package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"time"
)

// client makes requests with one key, one after the other.
type client struct {
	http     *http.Client
	url, key string
	manner   manner

	seen     rateLimit // of the last answer
	answered time.Time
	log      []exchange
}

// manner is what a client makes of what it is told.
type manner int

const (
	heedless manner = iota // asks again, and again
	obedient               // asks again after Retry-After
	paced                  // asks only for what is there, as the RateLimit fields say
)

// impatience is how long a heedless client waits.
const impatience = 100 * time.Millisecond

// exchange is a request, and what it got.
type exchange struct {
	at                    time.Time
	path                  string
	status                int
	rateLimit, retryAfter string
}

// get sends a GET request until it is served. It needs so much of each limit.
func (c *client) get(ctx context.Context, path string, need map[string]int64) error {
	for {
		if c.manner == paced {
			if err := sleep(ctx, time.Until(c.answered.Add(c.seen.wait(need)))); err != nil {
				return err
			}
		}
		status, header, err := c.send(ctx, path)
		if err != nil {
			return err
		}
		wait, later := retryAfter(header)
		switch {
		case status == http.StatusOK:
			return nil
		case !later: // a 400, say: asking again does not help
			return fmt.Errorf("GET %s: %d %s", path, status, http.StatusText(status))
		case c.manner == heedless:
			wait = impatience
		}
		if err := sleep(ctx, wait); err != nil {
			return err
		}
	}
}

// send sends one request, and notes what comes back.
func (c *client) send(ctx context.Context, path string) (status int, header http.Header, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, c.url+path, nil)
	if err != nil {
		return 0, nil, err
	}
	req.Header.Set("Authorization", "Bearer "+c.key)
	at := time.Now()
	resp, err := c.http.Do(req)
	if err != nil {
		return 0, nil, err
	}
	defer func() { _ = resp.Body.Close() }()
	if _, err := io.Copy(io.Discard, resp.Body); err != nil { // to its end, so that the connection serves again
		return 0, nil, err
	}
	c.answered = time.Now()
	if c.seen, err = parseRateLimit(resp.Header); err != nil {
		return 0, nil, fmt.Errorf("GET %s: %w", path, err)
	}
	c.log = append(c.log, exchange{at, path, resp.StatusCode, resp.Header.Get("RateLimit"),
		resp.Header.Get("Retry-After")})
	return resp.StatusCode, resp.Header, nil
}

// sleep waits, unless ctx ends before.
func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
