package edge

import "context"

// During returns the context of a handler under a lease, and what ends it. It ends if the lease is lost, not
// when the handler settles. It is ctx itself if nothing of the lease can be lost.
func During(ctx context.Context, lease interface {
	Context(ctx context.Context) context.Context
}) (context.Context, func()) {
	if l, ok := lease.Context(ctx).(interface {
		Outlast() (context.Context, func())
	}); ok {
		return l.Outlast()
	}
	return ctx, func() {}
}
