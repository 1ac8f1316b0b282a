package otellimit_test

import (
	"context"
	"fmt"
	"log"

	"github.com/prometheus/client_golang/prometheus"
	promexporter "go.opentelemetry.io/otel/exporters/prometheus"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"

	limits "github.com/sluice-go/sluice/generated"
	"github.com/sluice-go/sluice/runtime"
	"github.com/sluice-go/sluice/runtime/dynamo"
	"github.com/sluice-go/sluice/runtime/dynamo/operator"
	"github.com/sluice-go/sluice/runtime/memdynamo"
	"github.com/sluice-go/sluice/runtime/otellimit"
)

// Metrics for Prometheus, beside an observer of one's own.
func Example() {
	ctx, client := context.Background(), memdynamo.New().Client()
	if _, err := operator.CreateTable(ctx, client, "rate_limits"); err != nil {
		log.Fatal(err)
	}
	registry := prometheus.NewRegistry()
	meters, err := newMeters(registry)
	if err != nil {
		log.Fatal(err)
	}
	// without the option: the global provider
	observer, err := otellimit.New(otellimit.WithMeterProvider(meters))
	if err != nil {
		log.Fatal(err)
	}
	denials := &runtime.Observer{Denied: func(_ context.Context, e runtime.Event) {
		fmt.Println(e.Entity, "was denied by", e.Limit, "of its", e.LimitKind)
	}}
	lim, err := limits.New(dynamo.New(client, "rate_limits"),
		runtime.WithObserver(runtime.Observers(observer, denials)))
	if err != nil {
		log.Fatal(err)
	}
	user := limits.User{ID: "123", Project: limits.Project{ID: "1"}}
	for range 2 {
		_, _ = lim.GPT4.Acquire(ctx, user, limits.GPT4Cost{TPM: 9_000})
	}
	families, err := registry.Gather()
	if err != nil {
		log.Fatal(err)
	}
	for _, family := range families {
		if family.GetName() == "sluice_decisions_total" {
			fmt.Println(family.GetName(), "has", len(family.GetMetric()), "series")
		}
	}
	// Output:
	// user-123 was denied by tpm of its user
	// sluice_decisions_total has 2 series
}

// newMeters returns a provider whose metrics a registry of Prometheus collects.
func newMeters(registry *prometheus.Registry) (*sdkmetric.MeterProvider, error) {
	exporter, err := promexporter.New(promexporter.WithRegisterer(registry))
	if err != nil {
		return nil, err
	}
	return sdkmetric.NewMeterProvider(sdkmetric.WithReader(exporter)), nil
}
