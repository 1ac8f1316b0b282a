package otellimit_test

import (
	"context"
	"testing"
	"time"

	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/trace/noop"

	"github.com/sluice-go/sluice/runtime"
	"github.com/sluice-go/sluice/runtime/otellimit"
	"github.com/sluice-go/sluice/runtime/store"
)

// BenchmarkObserver is what an acquire and its call to the store cost to record, without spans.
func BenchmarkObserver(b *testing.B) {
	provider := sdkmetric.NewMeterProvider(sdkmetric.WithReader(sdkmetric.NewManualReader()))
	o, err := otellimit.New(
		otellimit.WithMeterProvider(provider), otellimit.WithTracerProvider(noop.NewTracerProvider()))
	if err != nil {
		b.Fatal(err)
	}
	ctx := context.Background()
	b.ReportAllocs()
	for b.Loop() {
		o.Store(ctx, runtime.StoreEvent{
			System: "dynamodb", Call: "UpdateItem", Resource: "gpt-4", Path: "retry", Outcome: "applied", Write: 1,
			Coalesced: 1, Took: time.Millisecond,
		})
		o.Acquired(ctx, runtime.Event{Operation: store.OperationAcquire, Resource: "gpt-4", Kind: "user",
			Took: time.Millisecond})
	}
}
