package redisstore

import (
	"context"

	"github.com/redis/go-redis/v9"
)

// command runs a script. The client sends it once, whatever its MaxRetries, but for what a cluster redirects: what had no answer
// may have been applied, and would be charged or given back again.
type command struct{ *redis.IntSliceCmd }

// NoRetry implements redis.Cmder.
func (command) NoRetry() bool { return true }

// evalsha runs c's script if Redis has it.
func (c *call) evalsha() *command { return c.run(c.requests[0].script.evalsha) }

// eval runs c's script, and has Redis keep it.
func (c *call) eval() *command { return c.run(c.requests[0].script.eval) }

func (c *call) run(head []any) *command {
	first := c.requests[0]
	args := evalArgs(head, first.shares, c.requests[0].script.any, len(c.requests)*len(first.args))
	for _, r := range c.requests {
		args = append(args, r.args...)
	}
	return &command{redis.NewIntSliceCmd(context.Background(), args...)}
}

// evalArgs returns what runs the script that head names on the keys of shares, and calls nothing yet; there is room for so many
// more. A script that serves any number of keys is told how many they are.
func evalArgs(head []any, shares []share, anyNumber bool, more int) []any {
	keys := 0
	for i := range shares {
		keys += len(shares[i].keys)
	}
	args := append(append(make([]any, 0, 4+3*keys+more), head...), keys)
	for i := range shares {
		args = append(args, shares[i].keys...)
	}
	if anyNumber {
		args = append(args, keys)
	}
	for i := range shares {
		args = append(args, shares[i].shape.params...)
	}
	return args
}
