// Package otellimit records with OpenTelemetry what sluice does: the metrics that package metrics defines,
// and a span for every call to the store.
//
//	// without the option: the global provider
//	observer, err := otellimit.New(otellimit.WithMeterProvider(meters))
//	if err != nil {
//		log.Fatal(err)
//	}
//
//	lim, err := limits.New(dynamo.New(client, "rate_limits"),
//		runtime.WithObserver(runtime.Observers(observer, denials)))
//
// The metrics are recorded with the caller's context, so that they carry exemplars, and the spans have the
// caller's for a parent. runtime.Observers joins the observer with one of your own. It is a module of its
// own: without it nobody downloads OpenTelemetry.
package otellimit

import (
	"context"
	"errors"
	"fmt"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"

	"github.com/sluice-go/sluice/runtime"
	"github.com/sluice-go/sluice/runtime/internal/fewkeys"
	"github.com/sluice-go/sluice/runtime/metrics"
)

// Scope is the name of the meter and the tracer.
const Scope = "github.com/sluice-go/sluice/runtime/otellimit"

// Option changes what New returns.
type Option func(*options)

type options struct {
	meters  metric.MeterProvider
	tracers trace.TracerProvider
	own     []attribute.KeyValue
}

// WithMeterProvider has metrics recorded by p instead of the global provider.
func WithMeterProvider(p metric.MeterProvider) Option { return func(o *options) { o.meters = p } }

// WithTracerProvider has spans made by p instead of the global provider. The package
// go.opentelemetry.io/otel/trace/noop has one that makes none.
func WithTracerProvider(p trace.TracerProvider) Option { return func(o *options) { o.tracers = p } }

// WithAttributes adds attributes to all metrics and spans: which table, where a process has several. An
// entity is none of them.
func WithAttributes(own ...attribute.KeyValue) Option {
	return func(o *options) { o.own = append(o.own, own...) }
}

// New returns an observer that records. It fails where the meter provider refuses an instrument, or an option
// is nil.
func New(opts ...Option) (*runtime.Observer, error) {
	o := options{meters: otel.GetMeterProvider(), tracers: otel.GetTracerProvider()}
	for _, opt := range opts {
		if opt != nil {
			opt(&o)
		}
	}
	if o.meters == nil || o.tracers == nil {
		return nil, errors.New("sluice: otellimit.New: a provider is nil: leave the option out for the global one")
	}
	r := &recorder{instruments: map[*metrics.Metric]instrument{}, own: o.own}
	meter := o.meters.Meter(Scope)
	for _, m := range metrics.All() {
		i, err := newInstrument(meter, m)
		if err != nil {
			return nil, fmt.Errorf("sluice: otellimit.New: instrument %s: %w", m.Name, err)
		}
		r.instruments[m] = i
	}
	measures := metrics.Observer(r)
	if _, none := o.tracers.(noop.TracerProvider); none { // nobody would see the attributes of its spans
		return measures, nil
	}
	spans := &spans{o.tracers.Tracer(Scope), o.own}
	return runtime.Observers(measures, &runtime.Observer{Store: spans.store}), nil
}

// instrument takes a measurement of a series.
type instrument func(ctx context.Context, value float64, of recorded)

// recorded are a series' attributes, in the form that each kind of instrument takes them in.
type recorded struct {
	add    []metric.AddOption
	record []metric.RecordOption
}

func newInstrument(meter metric.Meter, m *metrics.Metric) (instrument, error) {
	switch m.Kind {
	case metrics.Counter:
		c, err := meter.Float64Counter(m.Name, metric.WithUnit(m.Unit), metric.WithDescription(m.Description))
		return func(ctx context.Context, value float64, of recorded) { c.Add(ctx, value, of.add...) }, err
	case metrics.Gauge:
		g, err := meter.Float64Gauge(m.Name, metric.WithUnit(m.Unit), metric.WithDescription(m.Description))
		return func(ctx context.Context, value float64, of recorded) { g.Record(ctx, value, of.record...) }, err
	case metrics.Histogram:
		h, err := meter.Float64Histogram(m.Name, metric.WithUnit(m.Unit), metric.WithDescription(m.Description),
			metric.WithExplicitBucketBoundaries(m.Buckets...))
		return func(ctx context.Context, value float64, of recorded) { h.Record(ctx, value, of.record...) }, err
	}
	return nil, fmt.Errorf("a %v is not known here", m.Kind)
}

// recorder is a metrics.Sink.
type recorder struct {
	instruments map[*metrics.Metric]instrument
	own         []attribute.KeyValue
	known       fewkeys.Map[series, recorded]
}

type series struct {
	metric *metrics.Metric
	values metrics.Values
}

// Measure implements metrics.Sink.
func (r *recorder) Measure(ctx context.Context, m *metrics.Metric, value float64, values metrics.Values) {
	r.instruments[m](ctx, value, r.known.Get(series{m, values}, r.attributes))
}

// attributes has no attribute for a label that is "".
func (r *recorder) attributes(of series) recorded {
	all := append([]attribute.KeyValue{}, r.own...)
	for i, name := range of.metric.Labels {
		if value := of.values[i]; value != "" {
			all = append(all, attribute.String(name, value))
		}
	}
	option := metric.WithAttributeSet(attribute.NewSet(all...))
	return recorded{[]metric.AddOption{option}, []metric.RecordOption{option}}
}
