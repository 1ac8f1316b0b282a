package redistest

import (
	"context"
	"net"
	"sync/atomic"
	"syscall"

	"github.com/redis/go-redis/v9"
)

// Break makes Client find no listener, until Repair.
func (r *Redis) Break() { r.outage.on.Store(true) }

// Repair ends what Break began.
func (r *Redis) Repair() { r.outage.on.Store(false) }

// outage is a hook that fails commands as a port fails them on which nobody listens.
type outage struct{ on atomic.Bool }

func (o *outage) err() error {
	if o.on.Load() {
		return &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}
	}
	return nil
}

// DialHook implements redis.Hook.
func (o *outage) DialHook(next redis.DialHook) redis.DialHook {
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		if err := o.err(); err != nil {
			return nil, err
		}
		return next(ctx, network, addr)
	}
}

// ProcessHook implements redis.Hook.
func (o *outage) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if err := o.err(); err != nil {
			cmd.SetErr(err)
			return err
		}
		return next(ctx, cmd)
	}
}

// ProcessPipelineHook implements redis.Hook.
func (o *outage) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		err := o.err()
		if err == nil {
			return next(ctx, cmds)
		}
		for _, cmd := range cmds {
			cmd.SetErr(err)
		}
		return err
	}
}
