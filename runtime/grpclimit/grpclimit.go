// Package grpclimit puts limits in front of gRPC handlers.
//
//	limited := grpclimit.Unary(lim.GPT4, func(ctx context.Context, req any,
//		_ *grpc.UnaryServerInfo) (limits.GPT4Entity, limits.GPT4Cost, error) {
//		chat, ok := req.(*pb.SimpleRequest)
//		if !ok {
//			return nil, limits.GPT4Cost{}, grpclimit.ErrUnlimited // health checks, reflection
//		}
//		return userOf(ctx), limits.GPT4Cost{TPM: int64(chat.GetResponseSize())}, nil
//	}, grpclimit.Metadata())
//	server := grpc.NewServer(grpc.UnaryInterceptor(limited))
//
// Unary, Stream and StreamMessages make server interceptors that acquire before a handler, and answer for it
// where it may not be called. A handler that acquires by itself returns what Error makes of the error.
// Callers are told in gRPC's terms what package httplimit tells them in HTTP's.
//
// Once a handler has returned, its lease is kept, unless the handler has ended it: exact costs
// need nothing. It is given back, unless the handler has ended it, if the handler panics, or fails with a
// code that ReleaseOn names. A client that goes away changes nothing: handlers settle or release in a defer,
// as both outlive the call's context.
//
// The context of a handler is that of its lease: it ends with cause runtime.ErrLeaseLost if the lease is lost
// (runtime.Lease.Context), and when the handler has returned.
//
// An interceptor sees all methods of its server, health checks and reflection too: for what is not limited,
// ask returns ErrUnlimited.
package grpclimit

import (
	"context"
	"errors"

	"google.golang.org/grpc"

	"github.com/sluice-go/sluice/runtime"
	"github.com/sluice-go/sluice/runtime/internal/edge"
)

// ErrUnlimited is returned by ask for a call or a message that costs nothing: nothing is charged, and there
// is no lease.
var ErrUnlimited = errors.New("grpclimit: not limited")

// Unary acquires before a handler of unary calls. ask returns the entity to charge and the cost for a
// request. It may fail with a status, or with an error that Error knows. Any other error is answered with
// INTERNAL, without its text, which goes to the resource's log (runtime.WithLogger). A resource's With
// sets how long an acquire may take, and what happens in an outage. Many goroutines call ask at once.
func Unary[E runtime.Entity, C any](
	r runtime.Acquirer[E, C], ask func(ctx context.Context, req any, info *grpc.UnaryServerInfo) (E, C, error),
	opts ...Option,
) grpc.UnaryServerInterceptor {
	l := newLimited(r, opts)
	return func(ctx context.Context, req any, info *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (reply any,
		err error) {
		entity, cost, err := ask(ctx, req, info)
		lease, err := l.admit(ctx, entity, cost, err)
		if errors.Is(err, ErrUnlimited) {
			return handler(ctx, req)
		}
		if err != nil {
			return nil, err
		}
		c := newCall[C](ctx, &l.options)
		c.took(lease)
		err = c.serve(func() error {
			reply, err = handler(c.context(), req)
			return err
		})
		c.show(err == nil)
		return reply, err
	}
}

// Lease returns the lease of a call, to settle it: with StreamMessages, that of the message received last
// before ctx was asked for. It is nil where there is none, and where C is not its resource's cost.
func Lease[C any](ctx context.Context) *runtime.Lease[C] {
	lease, _ := ctx.Value(leaseKey[C]{}).(*runtime.Lease[C])
	return lease
}

// leaseKey is one for each cost, so that a handler behind two limits has both leases.
type leaseKey[C any] struct{}

// limited is what an interceptor acquires from, and how.
type limited[E runtime.Entity, C any] struct {
	options

	r runtime.Acquirer[E, C]
}

func newLimited[E runtime.Entity, C any](r runtime.Acquirer[E, C], opts []Option) *limited[E, C] {
	return &limited[E, C]{optionsOf(opts), r}
}

// admit acquires what ask has said, unless it has failed, with err. It fails with ErrUnlimited, or with what
// is for the client.
func (l *limited[E, C]) admit(ctx context.Context, entity E, cost C, err error) (*runtime.Lease[C], error) {
	if errors.Is(err, ErrUnlimited) {
		return nil, ErrUnlimited
	}
	if err != nil {
		return nil, l.answer(ctx, err, edge.Logger(l.r))
	}
	lease, err := l.r.Acquire(ctx, entity, cost)
	if err != nil {
		if l.metadata { // in the trailer: a client's retry policy repeats no call that has a header
			_ = grpc.SetTrailer(ctx, fields(edge.Refused(err, edge.Lookup(l.r, entity))))
		}
		return nil, l.answer(ctx, err, edge.Logger(l.r))
	}
	return lease, nil
}
