package memdynamo

import (
	"context"
	"net"
	"os"
	"syscall"
	"time"

	"github.com/sluice-go/sluice/runtime/memdynamo/internal/exception"
)

// perform brings a request to the tables and its reply back, as far as Faults let them through. It returns the output, an
// *exception.Error, ctx's error, or one of a connection that is broken.
func (e *Engine) perform(ctx context.Context, operation string, input []byte, dice *dice) ([]byte, error) {
	to := e.faults.decide(operation, input, dice)
	if to.instant() {
		return e.deliver(ctx, operation, input, to)
	}
	type reply struct {
		output []byte
		err    error
	}
	// Under way, a request is beyond recall: a client that gives up does not know what became of it.
	back := make(chan reply, 1)
	go func() {
		output, err := e.deliver(context.WithoutCancel(ctx), operation, input, to)
		back <- reply{output, err}
	}()
	select {
	case r := <-back:
		return r.output, r.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// deliver does what befalls a request, in the order in which it does.
func (e *Engine) deliver(ctx context.Context, operation string, input []byte, to fate) (output []byte, err error) {
	e.pass(to.there)
	if to.loseRequest || e.faults.down.Load() {
		return nil, broken("read", syscall.ECONNRESET)
	}
	e.meter.arrived(operation)
	switch {
	case to.internalError:
		err = exception.New(exception.InternalServerError, internalErrorText)
	case to.throttle:
		err = exception.New(exception.ProvisionedExceeded, throttledText)
	default:
		output, err = e.db.Do(ctx, operation, input)
	}
	if to.duplicate {
		e.meter.arrived(operation)
		_, _ = e.db.Do(ctx, operation, input) // its reply reaches nobody
	}
	if to.lateInternalError {
		output, err = nil, exception.New(exception.InternalServerError, internalErrorText)
	}
	e.pass(to.back)
	if to.loseReply || e.faults.down.Load() {
		return nil, broken("read", syscall.ECONNRESET)
	}
	return output, err
}

// What AWS says.
const (
	internalErrorText = "Internal server error"
	throttledText     = "The level of configured provisioned throughput for the table was exceeded. " +
		"Consider increasing your provisioning level with the UpdateTable API."
)

// pass lets time go by.
func (e *Engine) pass(d time.Duration) {
	if d > 0 {
		<-e.clock.After(d)
	}
}

// broken is the error of a connection on which op failed, as package net makes it.
func broken(op string, cause syscall.Errno) error {
	call := op
	if op == "dial" {
		call = "connect"
	}
	return &net.OpError{Op: op, Net: "tcp", Err: os.NewSyscallError(call, cause)}
}
