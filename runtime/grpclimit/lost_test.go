package grpclimit_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"

	"google.golang.org/grpc"

	slots "github.com/sluice-go/sluice/examples/gateway/limits"
	"github.com/sluice-go/sluice/runtime"
	"github.com/sluice-go/sluice/runtime/dynamo"
	"github.com/sluice-go/sluice/runtime/dynamo/operator"
	"github.com/sluice-go/sluice/runtime/grpclimit"
	"github.com/sluice-go/sluice/runtime/memdynamo"
)

var slotted = slots.User{ID: "1", Project: slots.Project{ID: "1"}}

// table returns limits with slots, on a table of their own.
func table(t *testing.T) *slots.Limiter {
	t.Helper()
	client := memdynamo.New().Client()
	if _, err := operator.CreateTable(t.Context(), client, "limits"); err != nil {
		t.Fatal(err)
	}
	lim, err := slots.New(dynamo.New(client, "limits"))
	if err != nil {
		t.Fatal(err)
	}
	return lim
}

// free fails unless so many slots are free.
func free(t *testing.T, lim *slots.Limiter, want int64) {
	t.Helper()
	snap, err := lim.GPT4.Peek(t.Context(), slotted)
	if err != nil || snap.Available.Parallel != want {
		t.Errorf("left: %+v, %v; want %d slots", snap, err, want)
	}
}

// TestLost: the context of a handler whose lease has a slot ends if the lease is lost, as by Close, and not by
// a settle. Its slot is back once it has returned.
func TestLost(t *testing.T) {
	for name, lost := range map[string]bool{"settles": false, "is lost": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				lim := table(t)
				unary := grpclimit.Unary(lim.GPT4, func(context.Context, any, *grpc.UnaryServerInfo) (slots.GPT4Entity,
					slots.GPT4Cost, error) {
					return slotted, slots.GPT4Cost{TPM: 1}, nil
				})
				var of context.Context
				_, err := unary(t.Context(), nil, nil, func(ctx context.Context, _ any) (any, error) {
					of = ctx
					if !lost {
						free(t, lim, 19)
						err := grpclimit.Lease[slots.GPT4Cost](ctx).Settle(ctx, slots.GPT4Cost{TPM: 1})
						return nil, errors.Join(err, ctx.Err())
					}
					err := lim.Close(context.WithoutCancel(ctx))
					<-ctx.Done()
					if cause := context.Cause(ctx); !errors.Is(cause, runtime.ErrLeaseLost) {
						t.Errorf("the context's cause is %v", cause)
					}
					return nil, err
				})
				if err != nil || of.Err() == nil {
					t.Errorf("%v; after the handler, its context's error is %v", err, of.Err())
				}
				free(t, lim, 20)
			})
		})
	}
}

// receiving is a stream of messages.
type receiving struct {
	grpc.ServerStream

	ctx context.Context
}

func (r receiving) Context() context.Context { return r.ctx }
func (receiving) RecvMsg(any) error          { return nil }

// TestLostMessages: of a stream, each message has a slot and a context, until the next one is received.
func TestLostMessages(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lim := table(t)
		limited := grpclimit.StreamMessages(lim.GPT4, func(context.Context, any, *grpc.StreamServerInfo) (
			slots.GPT4Entity, slots.GPT4Cost, error) {
			return slotted, slots.GPT4Cost{TPM: 1}, nil
		})
		var last context.Context
		err := limited(nil, receiving{ctx: t.Context()}, nil, func(_ any, stream grpc.ServerStream) error {
			for range 3 {
				if err := stream.RecvMsg(nil); err != nil {
					return err
				}
				if last != nil && last.Err() == nil {
					t.Error("the context of the message before goes on")
				}
				last = stream.Context()
				if last.Err() != nil {
					t.Error("the context of a message has ended")
				}
				free(t, lim, 19)
			}
			return nil
		})
		if err != nil || last.Err() == nil {
			t.Errorf("%v; the last context's error is %v", err, last.Err())
		}
		free(t, lim, 20)
		if err := lim.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
	})
}
