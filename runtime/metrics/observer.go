package metrics

import (
	"cmp"
	"context"
	"errors"
	"sync"
	"time"

	"github.com/sluice-go/sluice/runtime"
	"github.com/sluice-go/sluice/runtime/bucket"
	"github.com/sluice-go/sluice/runtime/store"
)

// Sink takes measurements, concurrently.
type Sink interface {
	// Measure adds value to what m has for values or, of a Gauge, puts it in place of that. The context is as
	// runtime.Observer says.
	Measure(ctx context.Context, m *Metric, value float64, values Values)
}

// Observer returns an observer that has sink measure all that this package defines. runtime.Observers joins
// it with others.
func Observer(sink Sink) *runtime.Observer {
	var mu sync.Mutex // so that the newest number is the last that is told
	open := 0.0
	breaker := func(more float64) {
		mu.Lock()
		defer mu.Unlock()
		open += more
		sink.Measure(context.Background(), BreakersOpen, open, Values{})
	}
	of := &names{}
	breaker(0) // so that there is something to see of what is well
	decided := func(outcome string) func(context.Context, runtime.Event) {
		return func(ctx context.Context, e runtime.Event) { decision(ctx, sink, of, outcome, e) }
	}
	closed := func(outcome string) func(context.Context, runtime.Event) {
		return func(ctx context.Context, e runtime.Event) { settlement(ctx, sink, of, outcome, e) }
	}
	return &runtime.Observer{
		Acquired: decided("acquired"), Denied: decided("denied"), Degraded: decided("degraded"),
		Shadowed: decided("shadowed"),
		Settled:  closed("settled"), Released: closed("released"),
		Failed: func(ctx context.Context, e runtime.Event) {
			if e.Operation == store.OperationSettle || e.Operation == store.OperationRelease {
				settlement(ctx, sink, of, lost(e.Err), e)
			} else {
				decision(ctx, sink, of, "failed", e)
			}
		},
		LeaseLost: func(ctx context.Context, e runtime.Event) {
			resource, name := of.labels(e.Resource, e.Template)
			sink.Measure(ctx, LeasesLost, 1, Values{resource, e.Kind, name})
		},
		Prefetched: func(ctx context.Context, e runtime.Event) {
			m, tokens := PrefetchTaken, float64(e.Millitokens)
			if e.Operation == store.OperationReturn {
				m = PrefetchReturned
			}
			if e.Currency == "" {
				tokens /= bucket.Milli
			}
			resource, name := of.labels(e.Resource, e.Template)
			sink.Measure(ctx, m, tokens, Values{resource, e.Kind, e.Limit, name})
		},
		Store: func(ctx context.Context, e runtime.StoreEvent) { call(ctx, sink, e) },
		Breaker: func(opens bool, _ error) {
			if opens {
				breaker(1)
			} else {
				breaker(-1)
			}
		},
		Skew: func(ahead time.Duration) {
			clock := "ahead"
			if ahead < 0 {
				clock = "behind"
			}
			sink.Measure(context.Background(), ClockSkew, ahead.Abs().Seconds(), Values{clock})
		},
	}
}

func decision(ctx context.Context, sink Sink, of *names, outcome string, e runtime.Event) {
	resource, name := of.labels(e.Resource, e.Template)
	sink.Measure(ctx, Decisions, 1, Values{resource, e.Kind, e.Operation, outcome, e.Limit, e.LimitKind,
		TypeOf(e.Err), name})
	sink.Measure(ctx, DecisionDuration, e.Took.Seconds(), Values{resource, e.Operation, outcome})
	if e.Pooled {
		sink.Measure(ctx, PrefetchAdmitted, 1, Values{resource, e.Kind, name})
	}
	if e.Uncharged > 0 {
		sink.Measure(ctx, DegradedNano, float64(e.Uncharged), Values{resource, e.Currency, name})
	}
}

func settlement(ctx context.Context, sink Sink, of *names, outcome string, e runtime.Event) {
	resource, name := of.labels(e.Resource, e.Template)
	sink.Measure(ctx, Settlements, 1, Values{resource, e.Kind, e.Operation, outcome, TypeOf(e.Err), name})
}

// lost says how a settle or a release has ended for err. After a mistake of its caller's, the lease is as it
// was.
func lost(err error) string {
	if isA[*runtime.InvalidError](err) {
		return "invalid"
	}
	return "failed"
}

func call(ctx context.Context, sink Sink, e runtime.StoreEvent) {
	system, resource := SystemOf(e), cmp.Or(e.Template, e.Resource)
	sink.Measure(ctx, StoreCalls, 1, Values{resource, system, e.Call, e.Path, e.Outcome})
	sink.Measure(ctx, StoreCallDuration, e.Took.Seconds(), Values{system, e.Call, e.Outcome})
	if e.Read > 0 {
		sink.Measure(ctx, StoreCapacity, e.Read, Values{resource, e.Path, "read"})
	}
	if e.Write > 0 {
		sink.Measure(ctx, StoreCapacity, e.Write, Values{resource, e.Path, "write"})
	}
	if e.Coalesced > 0 {
		sink.Measure(ctx, StoreCoalesced, float64(e.Coalesced), Values{resource, system})
	}
	if e.Swept > 0 {
		sink.Measure(ctx, SlotsSwept, float64(e.Swept), Values{resource, system})
	}
}

// SystemOf returns the store of e as OpenTelemetry names it.
func SystemOf(e runtime.StoreEvent) string {
	if e.System == "dynamodb" {
		return "aws.dynamodb"
	}
	return e.System
}

// TypeOf returns what kind of error err is, which is one of few: denied, exceeds_burst, invalid, setup,
// contended, queue_full, breaker_open, throttled, unavailable, cancelled, deadline or _OTHER. It is "" for
// nil.
func TypeOf(err error) string {
	if err == nil {
		return ""
	}
	down, _ := errors.AsType[*runtime.UnavailableError](err)
	switch {
	case isA[*runtime.DeniedError](err):
		return "denied"
	case isA[*runtime.CostTooLargeError](err):
		return "exceeds_burst"
	case isA[*runtime.InvalidError](err):
		return "invalid"
	case isA[*runtime.SetupError](err): // an outage may be a symptom of it
		return "setup"
	case isA[*runtime.ContendedError](err):
		return "contended"
	case isA[*runtime.QueueFullError](err):
		return "queue_full"
	case errors.Is(err, runtime.ErrBreakerOpen):
		return "breaker_open"
	case down != nil && down.Throttled:
		return "throttled"
	case down != nil:
		return "unavailable"
	case errors.Is(err, context.Canceled):
		return "cancelled"
	case errors.Is(err, context.DeadlineExceeded):
		return "deadline"
	}
	return "_OTHER" // OpenTelemetry's word
}

func isA[E error](err error) bool {
	_, ok := errors.AsType[E](err)
	return ok
}
