package api

import (
	"errors"

	"github.com/sluice-go/sluice/runtime"
	"github.com/sluice-go/sluice/serve/internal/leases"
	"github.com/sluice-go/sluice/serve/internal/limits"
)

// settle is POST /v1/leases/{lease}/settle.
func (c *call) settle() error {
	name, open, cost, err := c.leaseCost()
	if err != nil {
		return err
	}
	lease, err := c.Leases.Settle(c.r.Context(), name, cost)
	if _, failed := errors.AsType[*runtime.UnavailableError](err); failed {
		return errUnsettled
	}
	if _, failed := errors.AsType[*runtime.ContendedError](err); failed {
		return errUnsettled
	}
	if err != nil {
		return err
	}
	return c.replyRemaining(open.On, lease)
}

// more is POST /v1/leases/{lease}/more.
func (c *call) more() error {
	name, open, cost, err := c.leaseCost()
	if err == nil && c.Draining.Err() != nil {
		err = errDraining
	}
	if err != nil {
		return err
	}
	lease, err := c.Leases.More(c.r.Context(), name, cost)
	if err != nil {
		return err
	}
	return c.replyRemaining(open.On, lease)
}

// leaseCost reads the cost of a call on a lease.
func (c *call) leaseCost() (name string, open leases.Open, cost []int64, err error) {
	name = c.r.PathValue("lease")
	if open, err = c.Leases.Find(name); err != nil {
		return name, open, nil, err
	}
	text, err := c.body()
	if err != nil {
		return name, open, nil, err
	}
	b, err := decode(text, memberCost, memberUsage)
	if err != nil {
		return name, open, nil, err
	}
	cost, err = b.costFor(open.On, open.Kind)
	return name, open, cost, err
}

// replyRemaining answers with what the last write of a lease left.
func (c *call) replyRemaining(on *limits.Resource, lease *limits.Lease) error {
	c.reply(append(appendRemaining([]byte{'{'}, on, lease), "}\n"...))
	return nil
}

// keep is POST /v1/leases/{lease}/keep.
func (c *call) keep() error {
	if err := c.Leases.Keep(c.r.Context(), c.r.PathValue("lease")); err != nil {
		return err
	}
	return c.done()
}

// release is POST /v1/leases/{lease}/release.
func (c *call) release() error {
	if err := c.Leases.Release(c.r.Context(), c.r.PathValue("lease")); err != nil {
		return err
	}
	return c.done()
}

// alive is POST /v1/leases/{lease}/alive.
func (c *call) alive() error {
	if err := c.Leases.Alive(c.r.PathValue("lease")); err != nil {
		return err
	}
	return c.done()
}
