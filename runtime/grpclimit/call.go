package grpclimit

import (
	"context"
	"sync"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"

	"github.com/sluice-go/sluice/runtime"
	"github.com/sluice-go/sluice/runtime/internal/edge"
)

// call is one that its handler is at work on. One goroutine may receive messages while another sends.
type call[C any] struct {
	*options

	from context.Context // before it had a lease

	mu     sync.Mutex
	ctx    context.Context   // the handler's
	end    func()            // ends ctx
	lease  *runtime.Lease[C] // nil: none
	shown  bool              // what is left of its limits
	broken bool              // the client gets no more of it
	done   bool              // the handler has returned
}

func newCall[C any](ctx context.Context, o *options) *call[C] {
	return &call[C]{options: o, from: ctx, ctx: ctx, end: func() {}}
}

// took notes what was charged last, nil if that was nothing, and keeps what was charged before.
func (c *call[C]) took(lease *runtime.Lease[C]) {
	ctx, end, _ := edge.Context(c.from, lease)
	ctx = context.WithValue(ctx, leaseKey[C]{}, lease)
	c.mu.Lock()
	before, done := c.lease, c.done
	c.lease, c.ctx = lease, ctx
	end, c.end = c.end, end
	c.mu.Unlock()
	end()
	before.Keep(c.from)
	if done { // a goroutine of the handler's still receives
		c.keep()
	}
}

// over ends the handler's context.
func (c *call[C]) over() {
	c.mu.Lock()
	end := c.end
	c.mu.Unlock()
	end()
}

// keep keeps what was charged last: its slot may be the one that the next message needs.
func (c *call[C]) keep() {
	c.over()
	lease, _ := c.state()
	lease.Keep(c.from)
}

func (c *call[C]) context() context.Context {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.ctx
}

// broke notes that the stream has broken.
func (c *call[C]) broke() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.broken = true
}

// serve calls handler, and sees to what becomes of the lease.
func (c *call[C]) serve(handler func() error) error {
	returned := false
	defer func() {
		c.mu.Lock()
		c.done = true
		c.mu.Unlock()
		c.over()
		lease, _ := c.state()
		if !returned {
			lease.Release(c.from)
		}
		lease.Keep(c.from)
	}()
	err := handler()
	returned = true
	c.over()
	if lease, abandoned := c.state(); c.releaseOn != nil && !abandoned && c.releaseOn(codeOf(err)) {
		lease.Release(c.from)
	}
	return err
}

// state returns the lease, and whether the client does not wait for the answer any more.
func (c *call[C]) state() (lease *runtime.Lease[C], abandoned bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.lease, c.broken || c.from.Err() != nil
}

// show tells the client once what is left, as far as that is known: in the header if it may, unless that is
// on its way, else in the trailer.
func (c *call[C]) show(header bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.metadata || c.shown || c.lease == nil || c.lease.Degraded() {
		return
	}
	c.shown = true
	md := fields(edge.Admitted(c.lease.Balances()))
	if !header || grpc.SetHeader(c.from, md) != nil {
		_ = grpc.SetTrailer(c.from, md)
	}
}

// fields returns what Metadata shows.
func fields(limits []edge.Standing) metadata.MD {
	md := metadata.MD{}
	policy, level := edge.Fields(limits)
	if policy != "" {
		md.Set("ratelimit-policy", policy)
	}
	if level != "" {
		md.Set("ratelimit", level)
	}
	return md
}
