package otellimit

import (
	"context"
	"strings"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
	"go.opentelemetry.io/otel/trace"

	"github.com/sluice-go/sluice/runtime"
	"github.com/sluice-go/sluice/runtime/metrics"
)

// Attributes of spans beside those that metrics have for labels.
const (
	Coalesced     = "sluice.coalesced"      // acquires and settles that the write served together
	Generic       = "sluice.store.generic"  // the expression was built from the item
	CapacityRead  = "sluice.capacity.read"  // units that DynamoDB bills
	CapacityWrite = "sluice.capacity.write" // units that DynamoDB bills
)

// spans makes a span of each call to the store. The conventions are those for database clients.
type spans struct {
	tracer trace.Tracer
	own    []attribute.KeyValue
}

func (s *spans) store(ctx context.Context, e runtime.StoreEvent) {
	all := append(make([]attribute.KeyValue, 0, len(s.own)+13), s.own...)
	all = append(all,
		semconv.DBSystemNameKey.String(metrics.SystemOf(e)), semconv.DBOperationName(e.Call),
		attribute.String(metrics.Path, e.Path), attribute.String(metrics.Outcome, e.Outcome),
	)
	if e.Template != "" {
		name := strings.TrimPrefix(e.Resource, e.Template+"/")
		all = append(all, attribute.String(metrics.Resource, e.Template), attribute.String(metrics.Name, name))
	} else if e.Resource != "" {
		all = append(all, attribute.String(metrics.Resource, e.Resource))
	}
	if e.Buckets > 1 {
		all = append(all, semconv.DBOperationBatchSize(e.Buckets))
	}
	if e.Coalesced > 0 {
		all = append(all, attribute.Int(Coalesced, e.Coalesced))
	}
	if e.Generic {
		all = append(all, attribute.Bool(Generic, true))
	}
	if e.Read > 0 {
		all = append(all, attribute.Float64(CapacityRead, e.Read))
	}
	if e.Write > 0 {
		all = append(all, attribute.Float64(CapacityWrite, e.Write))
	}
	if unanswered(e.Outcome) {
		all = append(all, semconv.ErrorTypeKey.String(e.Outcome))
	}
	_, span := s.tracer.Start(ctx, e.Call,
		trace.WithSpanKind(trace.SpanKindClient), trace.WithTimestamp(e.Began), trace.WithAttributes(all...))
	if unanswered(e.Outcome) {
		span.SetStatus(codes.Error, e.Outcome)
	}
	span.End(trace.WithTimestamp(e.Began.Add(e.Took)))
}

// unanswered reports that a call ended without what it was made for. A refused condition and a lost race are
// answers.
func unanswered(outcome string) bool {
	switch outcome {
	case "throttled", "unapplied", "unknown", "failed":
		return true
	}
	return false
}
