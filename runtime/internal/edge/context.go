package edge

import (
	"context"

	"github.com/sluice-go/sluice/runtime"
)

// Context returns the context of a handler that runs under lease, and what ends it: it ends if the lease is
// lost, but not when the handler settles it. holds reports whether the lease may hold something. If not, the
// context is ctx.
func Context[C any](
	ctx context.Context, lease *runtime.Lease[C],
) (own context.Context, end func(), holds bool) {
	if c, ok := lease.Context(ctx).(interface {
		Outlast() (context.Context, func())
	}); ok {
		own, end = c.Outlast()
		return own, end, true
	}
	return ctx, func() {}, false
}
