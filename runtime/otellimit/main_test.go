package otellimit_test

import (
	"errors"
	"testing"
	"time"

	"go.opentelemetry.io/otel/attribute"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	limits "github.com/sluice-go/sluice/generated"
	"github.com/sluice-go/sluice/runtime"
	"github.com/sluice-go/sluice/runtime/dynamo"
	"github.com/sluice-go/sluice/runtime/dynamo/operator"
	"github.com/sluice-go/sluice/runtime/memdynamo"
	"github.com/sluice-go/sluice/runtime/otellimit"
	"github.com/sluice-go/sluice/runtime/store"
)

const table = "rate_limits"

// service has limits on the engine in the process, and what it records.
type service struct {
	*limits.Limiter
	engine *memdynamo.Engine
	spans  *tracetest.InMemoryExporter
	tracer *sdktrace.TracerProvider
}

// newService records to reader. Others are told as well.
func newService(t *testing.T, reader sdkmetric.Reader, others ...*runtime.Observer) *service {
	t.Helper()
	s := &service{engine: memdynamo.New(), spans: tracetest.NewInMemoryExporter()}
	s.tracer = sdktrace.NewTracerProvider(sdktrace.WithSyncer(s.spans))
	observer, err := otellimit.New(
		otellimit.WithMeterProvider(sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader))),
		otellimit.WithTracerProvider(s.tracer),
		otellimit.WithAttributes(attribute.String("db.collection.name", table)))
	if err != nil {
		t.Fatal(err)
	}
	client := s.engine.Client()
	if _, err := operator.CreateTable(t.Context(), client, table); err != nil {
		t.Fatal(err)
	}
	s.engine.ResetConsumed()
	all := runtime.Observers(append([]*runtime.Observer{observer}, others...)...)
	if s.Limiter, err = limits.New(dynamo.New(client, table), runtime.WithObserver(all)); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close(t.Context()) })
	return s
}

var alice = limits.User{ID: "1", Project: limits.Project{ID: "2"}}

// play makes a call of each kind that is reported to this package: the last is what no service should see.
func play(t *testing.T, o *runtime.Observer) {
	t.Helper()
	ctx := t.Context()
	for _, f := range []struct {
		tell      func(e runtime.Event)
		operation string
		err       error
	}{
		{func(e runtime.Event) {
			e.Pooled = true
			o.Acquired(ctx, e)
		}, store.OperationAcquire, nil},
		{func(e runtime.Event) { o.Denied(ctx, e) }, store.OperationWait, &runtime.DeniedError{}},
		{func(e runtime.Event) {
			e.Uncharged, e.Currency = 5, "USD"
			o.Degraded(ctx, e)
		}, store.OperationAcquire, &runtime.UnavailableError{Err: errors.New("down")}},
		{func(e runtime.Event) { o.Shadowed(ctx, e) }, store.OperationAcquire, &runtime.DeniedError{}},
		{func(e runtime.Event) { o.Failed(ctx, e) }, store.OperationAcquire, &runtime.ContendedError{}},
		{func(e runtime.Event) { o.Failed(ctx, e) }, store.OperationSettle, &runtime.SetupError{}},
		{func(e runtime.Event) { o.Settled(ctx, e) }, store.OperationSettle, nil},
		{func(e runtime.Event) { o.Released(ctx, e) }, store.OperationRelease, nil},
	} {
		f.tell(runtime.Event{
			Operation: f.operation, Resource: "model/gpt-5", Template: "model", Kind: "user", Entity: "user-1",
			Limit: "tpm", LimitKind: "project", Took: 3 * time.Millisecond, Err: f.err,
		})
	}
	began := time.Unix(1_800_000_000, 0)
	o.Store(ctx, runtime.StoreEvent{
		System: "dynamodb", Call: "UpdateItem", Resource: "gpt-4", Path: "normal", Outcome: "applied", Coalesced: 3,
		Read: 0.5, Write: 1, Swept: 2, Began: began, Took: 2 * time.Millisecond,
	})
	o.Store(ctx, runtime.StoreEvent{System: "redis", Call: "EVALSHA", Path: "acquire", Outcome: "unknown",
		Began: began, Took: time.Second})
	o.Breaker(true, errors.New("down"))
	o.Skew(-2 * time.Second)
	for _, operation := range []string{store.OperationTake, store.OperationReturn} {
		o.Prefetched(ctx, runtime.Event{
			Operation: operation, Resource: "model/gpt-5", Template: "model", Kind: "user", Limit: "tpm",
			Millitokens: 40_000,
		})
	}
	o.LeaseLost(ctx, runtime.Event{
		Operation: store.OperationExtend, Resource: "model/gpt-5", Template: "model", Kind: "org",
	})
}
