package otellimit_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"

	limits "github.com/sluice-go/sluice/generated"
	"github.com/sluice-go/sluice/runtime"
	"github.com/sluice-go/sluice/runtime/metrics"
	"github.com/sluice-go/sluice/runtime/otellimit"
	"github.com/sluice-go/sluice/runtime/store"
)

// collect returns the data points of a metric: those of a counter.
func collect(t *testing.T, reader *sdkmetric.ManualReader,
	m *metrics.Metric) []metricdata.DataPoint[float64] {
	t.Helper()
	var all metricdata.ResourceMetrics
	if err := reader.Collect(t.Context(), &all); err != nil {
		t.Fatal(err)
	}
	for _, scope := range all.ScopeMetrics {
		if scope.Scope.Name != otellimit.Scope {
			t.Errorf("scope %s", scope.Scope.Name)
		}
		for _, one := range scope.Metrics {
			if one.Name != m.Name {
				continue
			}
			if one.Unit != m.Unit || one.Description != m.Description {
				t.Errorf("%+v", one)
			}
			return one.Data.(metricdata.Sum[float64]).DataPoints
		}
	}
	return nil
}

// TestMetrics: of calls through the front door; with the trace they belong to, and without the entity.
func TestMetrics(t *testing.T) {
	reader := sdkmetric.NewManualReader()
	reported := 0
	s := newService(t, reader, &runtime.Observer{Acquired: func(context.Context, runtime.Event) { reported++ }})
	ctx, span := s.tracer.Tracer("test").Start(t.Context(), "caller")
	if _, err := s.GPT4.Acquire(ctx, alice, limits.GPT4Cost{TPM: 10_000}); err != nil {
		t.Fatal(err)
	}
	if _, err := s.GPT4.Acquire(ctx, alice, limits.GPT4Cost{TPM: 10_000}); err == nil {
		t.Fatal("not denied")
	}
	span.End()
	if reported != 1 {
		t.Errorf("the other observer got %d times", reported)
	}
	points := collect(t, reader, metrics.Decisions)
	var got []string
	for _, p := range points {
		if p.Value != 1 || len(p.Exemplars) != 1 || !slices.Equal(p.Exemplars[0].TraceID, traceID(span)) {
			t.Errorf("%+v", p)
		}
		got = append(got, p.Attributes.Encoded(attribute.DefaultEncoder()))
	}
	slices.Sort(got)
	want := []string{
		"db.collection.name=rate_limits,error.type=denied,sluice.entity.kind=user,sluice.limit.kind=user," +
			"sluice.limit.name=tpm,sluice.operation=acquire,sluice.outcome=denied,sluice.resource=gpt-4",
		"db.collection.name=rate_limits,sluice.entity.kind=user,sluice.operation=acquire," +
			"sluice.outcome=acquired,sluice.resource=gpt-4",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	units := 0.0
	for _, p := range collect(t, reader, metrics.StoreCapacity) {
		units += p.Value
	}
	if billed := s.engine.Consumed().Total().Total(); units != billed.Read+billed.Write {
		t.Errorf("%v units, %+v billed", units, billed)
	}
}

func traceID(span trace.Span) []byte {
	id := span.SpanContext().TraceID()
	return id[:]
}

// TestSpans: each call to the store has one below its caller's, a settle after the caller has gone too.
func TestSpans(t *testing.T) {
	s := newService(t, sdkmetric.NewManualReader())
	ctx, span := s.tracer.Tracer("test").Start(t.Context(), "caller")
	ctx, cancel := context.WithCancel(ctx)
	lease, err := s.Embeddings.Acquire(ctx, alice.Project, limits.EmbeddingsCost{RPS: 5},
		runtime.LazySettle(true))
	if err != nil {
		t.Fatal(err)
	}
	cancel()
	if err := lease.Settle(ctx, limits.EmbeddingsCost{RPS: 1}); err != nil {
		t.Fatal(err)
	}
	span.End()
	if err := s.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, one := range s.spans.GetSpans() {
		if one.Name == "caller" {
			continue
		}
		if one.Parent.SpanID() != span.SpanContext().SpanID() || one.SpanKind != trace.SpanKindClient {
			t.Errorf("%s: parent %s, %v", one.Name, one.Parent.SpanID(), one.SpanKind)
		}
		if one.EndTime.Before(one.StartTime) || one.StartTime.IsZero() {
			t.Errorf("%s: from %v to %v", one.Name, one.StartTime, one.EndTime)
		}
		set := attribute.NewSet(one.Attributes...)
		path, _ := set.Value(metrics.Path)
		system, _ := set.Value(metrics.System)
		got = append(got, one.Name+" "+path.AsString()+" "+system.AsString())
	}
	want := []string{"BatchGetItem read aws.dynamodb", "PutItem create aws.dynamodb",
		"UpdateItem adjust aws.dynamodb"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// TestSpanOfEvent: the event's times, and what failed.
func TestSpanOfEvent(t *testing.T) {
	s := newService(t, sdkmetric.NewManualReader())
	observer, err := otellimit.New(otellimit.WithTracerProvider(s.tracer), nil)
	if err != nil {
		t.Fatal(err)
	}
	began := time.Unix(1_800_000_000, 0)
	observer.Store(t.Context(), runtime.StoreEvent{
		System: "dynamodb", Call: "TransactWriteItems", Resource: "model/gpt-5", Template: "model",
		Path: "transact", Buckets: 2, Generic: true, Outcome: "throttled",
		Coalesced: 3, Read: 1, Write: 4, Began: began, Took: time.Second,
	})
	all := s.spans.GetSpans()
	one := all[len(all)-1]
	if !one.StartTime.Equal(began) || !one.EndTime.Equal(began.Add(time.Second)) ||
		one.Status.Code != codes.Error || one.Name != "TransactWriteItems" {
		t.Errorf("%+v", one)
	}
	const want = "db.operation.batch.size=2,db.operation.name=TransactWriteItems,db.system.name=aws.dynamodb," +
		"error.type=throttled,sluice.capacity.read=1,sluice.capacity.write=4,sluice.coalesced=3," +
		"sluice.name=gpt-5,sluice.outcome=throttled,sluice.resource=model,sluice.store.generic=true," +
		"sluice.store.path=transact"
	set := attribute.NewSet(one.Attributes...)
	if diff := cmp.Diff(want, set.Encoded(attribute.DefaultEncoder())); diff != "" {
		t.Error(diff)
	}
}

// TestNoProvider: what is nil is said when the observer is made, not when it is told something.
func TestNoProvider(t *testing.T) {
	for _, opt := range []otellimit.Option{otellimit.WithMeterProvider(nil), otellimit.WithTracerProvider(nil)} {
		if _, err := otellimit.New(opt); err == nil {
			t.Error("no error")
		}
	}
}

// TestNames: ten thousand names of a template make no more series than the most used of them.
func TestNames(t *testing.T) {
	reader := sdkmetric.NewManualReader()
	provider := sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader))
	o, err := otellimit.New(otellimit.WithMeterProvider(provider),
		otellimit.WithTracerProvider(noop.NewTracerProvider()))
	if err != nil {
		t.Fatal(err)
	}
	const names = 10_000
	for i := range names {
		resource := fmt.Sprint("model/gpt-", i)
		o.Acquired(t.Context(), runtime.Event{
			Operation: store.OperationAcquire, Resource: resource, Template: "model", Kind: "key",
		})
		o.Store(t.Context(), runtime.StoreEvent{
			System: "redis", Call: "EVALSHA", Resource: resource, Template: "model", Path: "acquire",
			Outcome: "applied",
		})
	}
	for m, most := range map[*metrics.Metric]int{metrics.Decisions: 201, metrics.StoreCalls: 1} {
		sum := 0.0
		points := collect(t, reader, m)
		for _, p := range points {
			sum += p.Value
		}
		if len(points) != most || sum != names {
			t.Errorf("%s: %v in %d series, want %d in %d", m.Name, sum, len(points), names, most)
		}
	}
}
