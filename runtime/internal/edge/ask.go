package edge

import (
	"context"
	"log/slog"

	"github.com/sluice-go/sluice/runtime"
	"github.com/sluice-go/sluice/runtime/store"
)

// Undetermined is the answer to a call whose entity and cost the service failed to find.
const Undetermined = "Internal error: the rate limit could not be determined."

// Logger returns the log of r's limiter: slog.Default() if r is a fake.
func Logger[E store.Entity, C any](r runtime.Acquirer[E, C]) *slog.Logger {
	if has, ok := r.(interface{ Logger() *slog.Logger }); ok {
		return has.Logger()
	}
	return slog.Default()
}

// LogAsk logs err, with which a service's ask failed for a call of name: the caller gets Undetermined in its
// place. key says what name is, such as path. The caller may have chosen it.
func LogAsk(ctx context.Context, logger *slog.Logger, key, name string, err error) {
	logger.LogAttrs(ctx, slog.LevelError, "sluice: ask failed: nothing was charged, and the call was not served",
		slog.String(key, store.Quote(name)), slog.Any("error", err))
}
