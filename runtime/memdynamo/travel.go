package memdynamo

import (
	"context"
	"net"
	"os"
	"syscall"

	"github.com/sluice-go/sluice/runtime/memdynamo/internal/engine"
	"github.com/sluice-go/sluice/runtime/memdynamo/internal/exception"
)

// answer is what comes back of a request: the output, or an *exception.Error, or the error of a connection
// that is broken.
type answer struct {
	output []byte
	err    error
}

// perform brings a request to the tables and its reply back, as far as Faults let them through. It returns
// the output, an *exception.Error, ctx's error, or one of a connection that is broken.
func (e *Engine) perform(ctx context.Context, operation string, input []byte, dice *dice) ([]byte, error) {
	to := e.faults.decide(operation, input, dice)
	to.there += e.faults.queue(e.clock.Now().Add(to.there))
	if to.instant() {
		a, there := e.arrived(ctx, operation, input, to)
		if there {
			a = e.returned(a, to)
		}
		return a.output, a.err
	}
	// Under way, a request is beyond recall: a client that gives up does not know what became of it. No
	// goroutine travels with it: a bubble of testing/synctest cannot end while it has one.
	back := make(chan answer, 1)
	recalled := context.WithoutCancel(ctx)
	later(e.clock, to.there, func() {
		a, there := e.arrived(recalled, operation, input, to)
		if !there {
			back <- a
			return
		}
		later(e.clock, to.back, func() { back <- e.returned(a, to) })
	})
	select {
	case a := <-back:
		return a.output, a.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// arrived does what befalls a request once it was under way for its time, in the order in which it does. It
// reports whether the request was there.
func (e *Engine) arrived(
	ctx context.Context, operation string, input []byte, to fate,
) (a answer, there bool) {
	if to.loseRequest || e.faults.down.Load() {
		return answer{err: broken("read", syscall.ECONNRESET)}, false
	}
	a = e.work(ctx, operation, input, to)
	if to.duplicate {
		e.work(ctx, operation, input, to) // its reply reaches nobody
	}
	if to.lateInternalError {
		a = answer{err: exception.New(exception.InternalServerError, internalErrorText)}
	}
	return a, true
}

// work does the request, unless a fault has it answered without.
func (e *Engine) work(ctx context.Context, operation string, input []byte, to fate) (a answer) {
	e.meter.arrived(operation)
	switch {
	case to.internalError:
		a.err = exception.New(exception.InternalServerError, internalErrorText)
	case to.throttle:
		a.err = engine.ThroughputExceeded()
	default:
		a.output, a.err = e.db.Do(ctx, operation, input)
	}
	return a
}

// returned does what befalls a reply.
func (e *Engine) returned(a answer, to fate) answer {
	if to.loseReply || e.faults.down.Load() {
		return answer{err: broken("read", syscall.ECONNRESET)}
	}
	return a
}

// internalErrorText is what AWS says.
const internalErrorText = "Internal server error"

// broken is the error of a connection on which op failed, as package net makes it.
func broken(op string, cause syscall.Errno) error {
	call := op
	if op == "dial" {
		call = "connect"
	}
	return &net.OpError{Op: op, Net: "tcp", Err: os.NewSyscallError(call, cause)}
}
