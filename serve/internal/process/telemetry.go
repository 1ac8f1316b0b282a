package process

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"go.opentelemetry.io/otel"

	"github.com/sluice-go/sluice/internal/tool/secrets"
	"github.com/sluice-go/sluice/serve/internal/logs"
	"github.com/sluice-go/sluice/serve/internal/telemetry"
)

// lastMetrics is the time to send what was measured last.
const lastMetrics = 5 * time.Second

// newTelemetry returns what measures the process. It logs what cannot be sent.
func newTelemetry(ctx context.Context, log *slog.Logger) (*telemetry.Telemetry, error) {
	otel.SetErrorHandler(otel.ErrorHandlerFunc(func(err error) { warnUnsent(log, err) }))
	return telemetry.New(ctx, version())
}

// endTelemetry sends what was measured last.
func endTelemetry(ctx context.Context, t *telemetry.Telemetry, log *slog.Logger) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), lastMetrics)
	defer cancel()
	if err := t.Close(ctx); err != nil {
		warnUnsent(log, err)
	}
}

// warnUnsent logs an error of sending, which has the collector's URL.
func warnUnsent(log *slog.Logger, err error) {
	log.Warn("metrics or spans are not sent: check the variables OTEL_*", slog.Any("error",
		logs.OperatorError{Err: errors.New(secrets.Web(err.Error()))}))
}
