package grpclimit

import (
	"context"
	"errors"
	"io"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"

	"github.com/sluice-go/sluice/runtime"
)

// Stream acquires before a handler of streams: one lease for all of a stream, which knows of no message yet.
// ask and all else is as with Unary.
func Stream[E runtime.Entity, C any](
	r runtime.Acquirer[E, C], ask func(ctx context.Context, info *grpc.StreamServerInfo) (E, C, error),
	opts ...Option,
) grpc.StreamServerInterceptor {
	l := newLimited(r, opts)
	return func(srv any, stream grpc.ServerStream, info *grpc.StreamServerInfo,
		handler grpc.StreamHandler) error {
		ctx := stream.Context()
		entity, cost, err := ask(ctx, info)
		lease, err := l.admit(ctx, entity, cost, err)
		if errors.Is(err, ErrUnlimited) {
			return handler(srv, stream)
		}
		if err != nil {
			return err
		}
		s := &serverStream[C]{stream, newCall[C](ctx, &l.options), nil}
		s.call.took(lease)
		return s.serve(srv, handler)
	}
}

// StreamMessages acquires for each message that a handler of streams receives: of a stream of replies, for
// the one request. ask is told the message, and all else is as with Unary. A handler that receives a message
// which is refused receives its error instead, and returns that; the messages before were served. The lease
// of a message is in the context that the stream has once the message was received. It is kept, if
// it was not ended, when the next one is received; a panic, and ReleaseOn, give back that of the last one.
//
// A client whose policy repeats a stream sends all its messages again, and each is charged again.
func StreamMessages[E runtime.Entity, C any](
	r runtime.Acquirer[E, C], ask func(ctx context.Context, msg any, info *grpc.StreamServerInfo) (E, C, error),
	opts ...Option,
) grpc.StreamServerInterceptor {
	l := newLimited(r, opts)
	return func(srv any, stream grpc.ServerStream, info *grpc.StreamServerInfo,
		handler grpc.StreamHandler) error {
		ctx := stream.Context()
		s := &serverStream[C]{stream, newCall[C](ctx, &l.options), nil}
		s.received = func(msg any) error {
			s.call.keep()
			entity, cost, err := ask(ctx, msg, info)
			lease, err := l.admit(ctx, entity, cost, err)
			s.call.took(lease)
			if errors.Is(err, ErrUnlimited) {
				return nil
			}
			return err
		}
		return s.serve(srv, handler)
	}
}

// serverStream is what the handler of a limited stream has.
type serverStream[C any] struct {
	grpc.ServerStream

	call     *call[C]
	received func(msg any) error // nil: messages cost nothing
}

func (s *serverStream[C]) serve(srv any, handler grpc.StreamHandler) error {
	err := s.call.serve(func() error { return handler(srv, s) })
	s.call.show(false)
	return err
}

// Context implements grpc.ServerStream.
func (s *serverStream[C]) Context() context.Context { return s.call.context() }

// SendHeader implements grpc.ServerStream.
func (s *serverStream[C]) SendHeader(md metadata.MD) error {
	s.call.show(true)
	return s.ServerStream.SendHeader(md)
}

// SendMsg implements grpc.ServerStream. The first message takes the header with it.
func (s *serverStream[C]) SendMsg(m any) error {
	s.call.show(true)
	err := s.ServerStream.SendMsg(m)
	if err != nil {
		s.call.broke()
	}
	return err
}

// RecvMsg implements grpc.ServerStream.
func (s *serverStream[C]) RecvMsg(m any) error {
	if err := s.ServerStream.RecvMsg(m); err != nil {
		if !errors.Is(err, io.EOF) {
			s.call.broke()
		}
		return err
	}
	if s.received == nil {
		return nil
	}
	return s.received(m)
}
