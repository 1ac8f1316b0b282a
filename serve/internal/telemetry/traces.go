package telemetry

import (
	"context"
	"net/http"

	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
	"go.opentelemetry.io/otel/trace"
	"google.golang.org/genproto/googleapis/rpc/code"
	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
)

// Trace returns next with a span for each request, whose parent is the caller's span (traceparent). It is
// next itself if no spans are sent.
func (t *Telemetry) Trace(next http.Handler) http.Handler {
	if t.spans == nil {
		return next
	}
	tracer := t.spans.Tracer(scope)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ctx := propagation.TraceContext{}.Extract(r.Context(), propagation.HeaderCarrier(r.Header))
		ctx, span := tracer.Start(ctx, unrouted, trace.WithSpanKind(trace.SpanKindServer))
		defer span.End()
		next.ServeHTTP(w, r.WithContext(ctx))
	})
}

// unrouted is the name of a request's span before its route is known: a method may be any text.
const unrouted = "HTTP"

// TraceRPC is Trace for calls by gRPC. It is nil if no spans are sent.
func (t *Telemetry) TraceRPC() grpc.UnaryServerInterceptor {
	if t.spans == nil {
		return nil
	}
	tracer := t.spans.Tracer(scope)
	return func(
		ctx context.Context, request any, call *grpc.UnaryServerInfo, next grpc.UnaryHandler,
	) (any, error) {
		sent, _ := metadata.FromIncomingContext(ctx)
		ctx = propagation.TraceContext{}.Extract(ctx, carrier(sent))
		method := call.FullMethod[1:] // of the service's own, and behind a slash
		ctx, span := tracer.Start(ctx, method, trace.WithSpanKind(trace.SpanKindServer),
			trace.WithAttributes(semconv.RPCSystemNameGRPC, semconv.RPCMethod(method)))
		defer span.End()
		answer, err := next(ctx, request)
		of := code.Code(status.Code(err))
		span.SetAttributes(semconv.RPCResponseStatusCode(of.String()))
		switch of {
		case code.Code_UNKNOWN, code.Code_DEADLINE_EXCEEDED, code.Code_UNIMPLEMENTED, code.Code_INTERNAL,
			code.Code_UNAVAILABLE, code.Code_DATA_LOSS:
			span.SetStatus(codes.Error, of.String())
		}
		return answer, err
	}
}

// carrier has the fields of a call by gRPC.
type carrier metadata.MD

// Get implements propagation.TextMapCarrier.
func (c carrier) Get(key string) string {
	if values := metadata.MD(c).Get(key); len(values) > 0 {
		return values[0]
	}
	return ""
}

// Set implements propagation.TextMapCarrier.
func (c carrier) Set(key, value string) { metadata.MD(c).Set(key, value) }

// Keys implements propagation.TextMapCarrier.
func (c carrier) Keys() (all []string) {
	for key := range c {
		all = append(all, key)
	}
	return all
}
