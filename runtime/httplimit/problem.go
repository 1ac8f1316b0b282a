package httplimit

import (
	"encoding/json"
	"net/http"
	"strconv"
	"time"

	"github.com/sluice-go/sluice/runtime/money"
)

// quotaExceeded is the type of a denial, of draft-ietf-httpapi-ratelimit-headers-10; other problems say no
// more than their status.
const quotaExceeded = "https://iana.org/assignments/http-problem-types#quota-exceeded"

// problem is an answer's body, as of RFC 9457.
type problem struct {
	Type       string         `json:"type"`
	Title      string         `json:"title"`
	Status     int            `json:"status"`
	Detail     string         `json:"detail"`
	Resource   string         `json:"resource,omitempty"`
	Limits     []limitProblem `json:"limits,omitempty"`
	Violated   []string       `json:"violated-policies,omitempty"` // the limits' names, as quotaExceeded has it
	RetryAfter *int64         `json:"retry_after,omitempty"`       // seconds, as in the header
}

// limitProblem is a limit that refused, in seconds and whole tokens, or with Money instead.
type limitProblem struct {
	Resource   string `json:"resource,omitempty"` // where it is another than the problem's
	Limit      string `json:"limit"`
	Requested  *int64 `json:"requested,omitempty"`
	Available  *int64 `json:"available,omitempty"`
	Burst      *int64 `json:"burst,omitempty"`
	Money      *funds `json:"money,omitempty"`
	RetryAfter *int64 `json:"retry_after,omitempty"`
	// Resets is when the window ends. A limit that refills has none.
	Resets time.Time `json:"resets,omitzero"`
}

// funds are the numbers of a limit of money, in a limitProblem. Amounts are strings, since numbers of JSON
// are floats to many readers.
type funds struct {
	Currency  string        `json:"currency"`
	Requested money.Amount  `json:"requested"`
	Available *money.Amount `json:"available,omitempty"`
	Capacity  *money.Amount `json:"capacity,omitempty"`
}

// write answers with p. It takes back what a handler has said of a body of its own.
func (p problem) write(w http.ResponseWriter) {
	if p.Type == "" {
		p.Type = "about:blank"
	}
	p.Title = http.StatusText(p.Status)
	h := w.Header()
	for _, of := range []string{"Content-Length", "Content-Encoding", "Cache-Control", "Etag", "Last-Modified",
		"Retry-After"} {
		h.Del(of)
	}
	h.Set("Content-Type", "application/problem+json")
	if p.RetryAfter != nil {
		h.Set("Retry-After", strconv.FormatInt(*p.RetryAfter, 10))
	}
	w.WriteHeader(p.Status)
	body, _ := json.Marshal(p) // there is nothing in it that could not be written
	_, _ = w.Write(append(body, '\n'))
}
