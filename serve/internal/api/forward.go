package api

import (
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"

	"github.com/sluice-go/sluice/serve/internal/leases"
	"github.com/sluice-go/sluice/serve/internal/logs"
	"github.com/sluice-go/sluice/serve/internal/peers"
)

// introduce is GET /v1/replica: it says to peers which replica this is.
func (c *call) introduce() error {
	text, err := json.Marshal(peers.Introduction{Replica: c.Leases.Replica()})
	if err != nil {
		return err
	}
	c.reply(append(text, '\n'))
	return nil
}

// forward has the replica that holds the lease answer the call.
func (c *call) forward() error {
	body, err := c.body()
	if err != nil {
		return err
	}
	replica := leases.ReplicaOf(c.r.PathValue("lease"))
	got, err := c.Peers.Forward(c.r.Context(), replica, c.r.URL.Path, c.r.Header.Get("Authorization"), body)
	switch {
	case errors.Is(err, peers.ErrUnknown):
		return leases.ErrElsewhere
	case err != nil:
		// The error is of the network between replicas, and names no entity.
		c.Logger.Warn("a call could not be forwarded", slog.Any("error", logs.OperatorError{Err: err}))
		if errors.Is(err, peers.ErrUnsent) {
			return &problem{Status: http.StatusServiceUnavailable, RetryAfter: 1,
				Detail: "The replica that holds the lease does not answer: nothing was done."}
		}
		return answer(http.StatusServiceUnavailable,
			"The replica that holds the lease has not answered: it is not known whether the call was done.")
	}
	for _, name := range []string{"Content-Type", "Cache-Control", "Retry-After"} {
		if value := got.Header.Get(name); value != "" {
			c.w.Header().Set(name, value)
		}
	}
	c.w.WriteHeader(got.Status)
	_, _ = c.w.Write(got.Body)
	return nil
}
