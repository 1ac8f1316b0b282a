package redisstore

import (
	"context"

	"github.com/redis/go-redis/v9"

	"github.com/sluice-go/sluice/runtime/redisstore/internal/window"
)

// command runs a script. The client sends it once despite its MaxRetries, except where a cluster redirects
// it. A command without a reply may have been applied, and a repetition would charge or refund twice.
type command struct{ *redis.IntSliceCmd }

// NoRetry implements redis.Cmder.
func (command) NoRetry() bool { return true }

// evalsha returns the command that runs c's script by its hash; it fails where Redis does not have the
// script.
func (c *call) evalsha() *command { return c.newCommand(c.requests[0].script.evalsha) }

// eval returns the command that runs c's script by its text, which Redis then keeps.
func (c *call) eval() *command { return c.newCommand(c.requests[0].script.eval) }

func (c *call) newCommand(head []any) *command {
	first := c.requests[0]
	now := c.redisNow
	if now == 0 {
		now = c.pipeline.server.At(c.pipeline.now())
	}
	extra := len(c.requests) * len(first.args)
	args := first.script.args(head, first.portions, now, oldest(c.pipeline.env), extra)
	for _, r := range c.requests {
		args = append(args, r.args...)
	}
	return &command{redis.NewIntSliceCmd(context.Background(), args...)}
}

// args returns the arguments that run s, named by head, on the keys of portions, without any request's costs.
// It is now by Redis's clock, in ms, and the overrides of portions were read at most oldest ms ago. The slice
// has capacity for extra more arguments. A script for any number of keys is passed their number.
func (s *script) args(head []any, portions []portion, now, oldest int64, extra int) []any {
	keys := 0
	for i := range portions {
		keys += len(portions[i].keys)
		extra += window.Extra * (portions[i].inForce.replies - len(portions[i].keys))
	}
	args := append(append(make([]any, 0, 5+4*keys+extra), head...), keys)
	for i := range portions {
		args = append(args, portions[i].keys...)
	}
	if s.any {
		args = append(args, keys)
	}
	args = append(args, oldest)
	for i := range portions {
		args = append(args, portions[i].inForce.args(portions[i].calendars, now)...)
	}
	return args
}
