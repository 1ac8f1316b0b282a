package runtime

import (
	"context"

	"github.com/sluice-go/sluice/runtime/store"
)

// ChangedBy returns a context for calls that change a plan, an override or a catalog: the records of the
// changes name by and reason. With an empty by, they name the client that the store signs in with. Of each,
// the first 200 bytes are recorded.
func ChangedBy(ctx context.Context, by, reason string) context.Context {
	return store.ChangedBy(ctx, by, reason)
}

// Context returns a copy of ctx that ends before another caller may have what the lease holds:
//   - with cause ErrLeaseLost, if the lease is lost: three seconds before the end of what it holds; and if
//     the Limiter is closed;
//   - with cause ErrSettled, when the lease ends.
//
// The contexts of Do and of middlewares last until their function returns, also after a Settle. A lease is
// not collected while its context is in use: keep the context, not its Done channel alone. Context returns
// ctx itself if the lease's buckets count no holds.
func (l *Lease[C]) Context(ctx context.Context) context.Context {
	if (*lease)(l).isZero() || l.record.holder == nil {
		return ctx
	}
	return (*lease)(l).bind(ctx, false)
}

// during returns the context of a call under l, and what ends it.
func (l *lease) during(ctx context.Context) (context.Context, func()) {
	if l.record.holder == nil {
		return ctx, func() {}
	}
	own := l.bind(ctx, true)
	return own, func() { own.cancel(nil) }
}

// bind returns a copy of ctx that ends if l is lost and, unless it outlasts l, when l ends.
func (l *lease) bind(ctx context.Context, outlasts bool) *leaseContext {
	own, cancel := l.bound.Add(ctx, outlasts)
	return &leaseContext{Context: own, of: ctx, lease: l, cancel: cancel}
}

// leaseContext is a context of a lease. It keeps the lease reachable.
type leaseContext struct {
	context.Context

	of     context.Context
	lease  *lease
	cancel context.CancelCauseFunc
}

// Err returns why c has ended, nil if it has not. It looks at the clock too: of a process that was frozen and
// goes on, callers may run before the Keeper does.
func (c *leaseContext) Err() error {
	if err := c.Context.Err(); err != nil {
		return err
	}
	core := c.lease.record.resource.core
	if c.lease.record.Over(core.session.Now(core.env.Clock.Now())) {
		c.lease.bound.End(ErrLeaseLost, true)
	}
	return c.Context.Err()
}

// Outlast returns another copy of the context that c was made of, and what ends it. It does not end with the
// lease. Middlewares call it.
func (c *leaseContext) Outlast() (context.Context, func()) {
	own := c.lease.bind(c.of, true)
	return own, func() { own.cancel(nil) }
}
