package api

import (
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"strconv"
	"strings"

	"github.com/sluice-go/sluice/runtime"
	"github.com/sluice-go/sluice/runtime/httplimit"
	"github.com/sluice-go/sluice/serve/internal/leases"
	"github.com/sluice-go/sluice/serve/internal/once"
)

// problem is an answer of RFC 9457, and the error that leads to it. Package httplimit answers errors of
// limits.
type problem struct {
	Type       string `json:"type"`
	Title      string `json:"title"`
	Status     int    `json:"status"`
	Detail     string `json:"detail"`
	Resource   string `json:"resource,omitempty"`
	Ended      string `json:"ended,omitempty"` // how a lease has ended, if that is known
	RetryAfter int64  `json:"retry_after,omitempty"`
}

// answer returns a problem that says no more than this.
func answer(status int, detail string) *problem { return &problem{Status: status, Detail: detail} }

// Error returns the detail.
func (p *problem) Error() string { return p.Detail }

// write answers with p.
func (p problem) write(w http.ResponseWriter) {
	p.Type, p.Title = "about:blank", http.StatusText(p.Status)
	h := w.Header()
	h.Set("Content-Type", "application/problem+json")
	if p.RetryAfter > 0 {
		h.Set("Retry-After", strconv.FormatInt(p.RetryAfter, 10))
	}
	w.WriteHeader(p.Status)
	body, _ := json.Marshal(p) // there is nothing in it that could not be written
	_, _ = w.Write(append(body, '\n'))
}

// RefusePage answers a request that a page in a browser has sent.
func RefusePage(w http.ResponseWriter) {
	answer(http.StatusForbidden, "A page in a browser has sent the request: send it from a program.").write(w)
}

// Answers that are always the same.
var (
	errDraining = &problem{Status: http.StatusServiceUnavailable, RetryAfter: 1,
		Detail: "The server is about to end: nothing was charged; try again."}
	errUnsettled = answer(http.StatusServiceUnavailable, "The settle did not get through: the lease has "+
		"ended, and stands as charged or as settled. Do not repeat it.")
)

// moneyLimit is the name of a limit of money, for httplimit.
type moneyLimit struct{ resource, limit string }

// Resource implements runtime.LimitName.
func (l moneyLimit) Resource() string { return l.resource }

// String implements runtime.LimitName.
func (l moneyLimit) String() string { return l.limit }

// unknownResource returns the answer for a path whose resource is not in limits.yaml.
func unknownResource(err error) error {
	return &problem{Status: http.StatusNotFound, Detail: sentence(err)}
}

// sentence returns an error of the runtime as a detail.
func sentence(err error) string {
	text := strings.TrimPrefix(err.Error(), "sluice: ")
	if !strings.HasSuffix(text, "?") {
		text += "."
	}
	return text
}

// fail answers err.
func (c *call) fail(err error) {
	if p := problemOf(err); p != nil {
		p.write(c.w)
		return
	}
	if httplimit.WriteError(c.w, c.r, err, c.budgets()...) {
		return
	}
	c.Logger.LogAttrs(c.r.Context(), slog.LevelError, "a request failed",
		slog.String("route", c.r.Pattern), slog.Any("error", err))
	problem{Status: http.StatusInternalServerError, Detail: "Internal error: see the server's log."}.write(c.w)
}

// budgets returns the options by which denials of limits of money are answered with 402.
func (c *call) budgets() (all []httplimit.Option) {
	for _, r := range c.in.All {
		for i, name := range r.Spec.Limits {
			if r.Spec.Unit(i) != "" {
				all = append(all, httplimit.Status(moneyLimit{r.Name(), name}, http.StatusPaymentRequired))
			}
		}
	}
	return all
}

// problemOf returns the answer for an error that is not one of limits, or nil.
func problemOf(err error) *problem {
	if p, ok := errors.AsType[*problem](err); ok {
		return p
	}
	if invalid, ok := errors.AsType[*runtime.InvalidError](err); ok {
		return &problem{Status: http.StatusBadRequest, Resource: invalid.Resource, Detail: sentence(err)}
	}
	if unknown, ok := errors.AsType[*runtime.UnknownNameError](err); ok {
		p := &problem{Status: http.StatusNotFound, Resource: unknown.Resource, Detail: sentence(err)}
		if unknown.Unread {
			p.Status, p.RetryAfter = http.StatusServiceUnavailable, 1
		}
		return p
	}
	if ended, ok := errors.AsType[*leases.EndedError](err); ok {
		p := answer(http.StatusGone, "The lease has ended before: the call has changed nothing.")
		if ended.How != leases.Unknown {
			p.Ended = ended.How.String()
		}
		return p
	}
	switch {
	case errors.Is(err, leases.ErrForged):
		return answer(http.StatusNotFound, "There is no such lease.")
	case errors.Is(err, leases.ErrElsewhere):
		return answer(http.StatusMisdirectedRequest, "Another replica holds the lease: send the "+
			"call to the one that granted it.")
	case errors.Is(err, leases.ErrDied):
		return answer(http.StatusGone, "The process that held the lease has ended: what the "+
			"lease held comes back within two minutes, and the rest stays charged.")
	case errors.Is(err, runtime.ErrLeaseLost):
		return &problem{Status: http.StatusGone, Ended: "lost",
			Detail: "The lease is lost: others may have what it held, so stop the work."}
	case errors.Is(err, leases.ErrFull):
		return &problem{Status: http.StatusServiceUnavailable, RetryAfter: 1,
			Detail: "Too many leases are open: end them, or start the server with a higher --max-leases."}
	case errors.Is(err, once.ErrFull):
		return &problem{Status: http.StatusServiceUnavailable, RetryAfter: 60,
			Detail: "Too many Idempotency-Keys are remembered: send the request without one, or later."}
	case errors.Is(err, once.ErrOther):
		return answer(http.StatusUnprocessableEntity, "The Idempotency-Key was used for another "+
			"request in the last ten minutes: send another key.")
	}
	return nil
}
