package httplimit

import (
	"context"
	"net/http"
	"strconv"

	"github.com/sluice-go/sluice/runtime"
	"github.com/sluice-go/sluice/runtime/internal/edge"
)

// WriteHeaders writes RateLimit-Policy and RateLimit into h, as Headers does, and Retry-After if the call has
// to come back. It is for a server whose answers another program turns into HTTP, such as a proxy. err is
// that of the call, nil if it was admitted. balances are those of its leases, or those that Lookup returns
// after an error.
func WriteHeaders(h http.Header, err error, balances []runtime.Balance) {
	limits := edge.Admitted(balances)
	if err != nil {
		if limits = edge.Refused(err, balances); limits == nil {
			limits = edge.Admitted(balances)
		}
		if a, ok := edge.Of(context.Background(), err, 0); ok && a.RetryAfter > 0 {
			h.Set("Retry-After", strconv.FormatInt(edge.Seconds(a.RetryAfter), 10))
		}
	}
	if len(limits) > 0 {
		ietf(h, limits)
	}
}
