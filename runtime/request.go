package runtime

import (
	"context"
	"slices"
	"time"

	"github.com/sluice-go/sluice/runtime/internal/chains"
	"github.com/sluice-go/sluice/runtime/internal/deadlines"
	"github.com/sluice-go/sluice/runtime/internal/outage"
	"github.com/sluice-go/sluice/runtime/store"
)

// request is one call to the store, with notes that the store does not need.
type request struct {
	outage.Request

	chains []chains.Chain // one for each of Parts
}

// requestOf returns a request for part, of a resource with spec.
func requestOf(spec *store.Spec, called time.Time, part store.Part) *request {
	call := &request{chains: []chains.Chain{{Spec: spec}}}
	call.Called, call.Parts = called, []store.Part{part}
	return call
}

// step is work of the store for a call: core.acquire, core.resolve or core.peek.
type step func(context.Context, *request) error

// within calls step for call, bounded by budget.
func (c *core) within(ctx context.Context, budget time.Duration, call *request, step step) error {
	call.Deadline = deadlines.Of(c.env.Clock, call.Called, budget)
	return step(ctx, call)
}

// acquire completes call's chains and charges their buckets.
func (c *core) acquire(ctx context.Context, call *request) error {
	err := c.resolve(ctx, call)
	if err == nil {
		err = chains.CheckShared(call.Parts)
	}
	if err != nil {
		return err
	}
	err = c.session.Acquire(ctx, &call.Call)
	call.Asked = !call.Pooled
	return err
}

// peek reads call's buckets, within call's deadline.
func (c *core) peek(ctx context.Context, call *request) error {
	ctx, cancel := context.WithDeadline(ctx, call.Deadline)
	defer cancel()
	call.Asked = true
	return c.session.Peek(ctx, &call.Call)
}

// resolve completes by look-ups those of call's chains that need it, and finds the calendars of entities' own
// windows, within call's deadline. If it fails, chains keep what was found.
func (c *core) resolve(ctx context.Context, call *request) error {
	if !slices.ContainsFunc(call.chains, func(on chains.Chain) bool { return on.Unresolved() }) {
		return nil
	}
	ctx, cancel := context.WithDeadline(ctx, call.Deadline)
	defer cancel()
	for i := range call.Parts {
		if err := call.chains[i].Resolve(ctx, &call.Parts[i], c.session); err != nil {
			return err
		}
	}
	return nil
}

// nearest returns the first link of entity's chain and the link's stored id, or what is wrong with it. The
// errors name resource, unless it is empty. It warns of swapped ids in the whole chain.
func (c *core) nearest(resource string, entity Entity) (link store.Link, stored string, err error) {
	links, stored, err := chains.Nearest(c.kinds, resource, entity)
	if err != nil {
		return store.Link{}, "", err
	}
	c.swaps.Warn(c.env.Logger, c.kinds, links)
	return links[0], stored, nil
}
