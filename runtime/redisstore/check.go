package redisstore

import (
	"context"
	"fmt"
	"time"

	"github.com/sluice-go/sluice/runtime/redisstore/internal/health"
)

// Check implements store.Session. It verifies the following. If nothing is recorded, it records the owner
// under the Prefix; it changes nothing else:
//
//   - Redis answers, is not too old and is not a replica.
//   - The user has the rights that calls need.
//   - No other owner is recorded under the Prefix.
//   - On a cluster, the keys of a chain are in one slot.
//
// It returns when ctx ends, which the client does not watch while it waits, or after checkTime.
func (s *session) Check(ctx context.Context) error {
	bounded, cancel := context.WithTimeout(ctx, checkTime)
	defer cancel()
	checked := make(chan error, 1)
	s.background.Start(func() { checked <- checkerOf(s).Check(bounded) })
	select {
	case err := <-checked:
		if err == nil || ctx.Err() != nil || bounded.Err() == nil { // else the client has noticed it first
			return err
		}
	case <-bounded.Done():
	}
	if ctx.Err() != nil {
		return s.db.OperationError(ctx, ctx.Err())
	}
	return s.db.OperationError(ctx, fmt.Errorf("%w: no answer within %v: check the address and the network",
		context.DeadlineExceeded, checkTime))
}

// checkerOf returns the checker for s.
func checkerOf(s *session) health.Checker {
	c := health.Checker{DB: &s.db, Env: s.env}
	for _, r := range s.resources {
		c.Specs, c.Windows = append(c.Specs, r.spec), c.Windows || r.needs > plain
	}
	return c
}

// checkTime is how long Check waits for Redis, in all attempts of the client.
const checkTime = 10 * time.Second
