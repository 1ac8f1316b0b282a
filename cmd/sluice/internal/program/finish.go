package program

import (
	"context"
	"time"
)

// finishing is how long a call goes on once its command is interrupted.
const finishing = 3 * time.Second

// Finish returns a context for a call that writes. If ctx is interrupted, the call has some seconds to end:
// the command can say what became of it. It has none if the command gives up, as the server is silent.
func Finish(ctx context.Context) (context.Context, context.CancelFunc) {
	on, cancel := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() {
		if GaveUp(ctx) != nil {
			cancel()
			return
		}
		time.AfterFunc(finishing, cancel)
	})
	return on, func() {
		stop()
		cancel()
	}
}

// Finishing returns Finish's context for the connection of a command that writes much, and ctx for one that
// writes nothing. The client of a Redis is closed with the context that it was opened with.
func Finishing(ctx context.Context, writes bool) (context.Context, context.CancelFunc) {
	if !writes {
		return ctx, func() {}
	}
	return Finish(ctx)
}
