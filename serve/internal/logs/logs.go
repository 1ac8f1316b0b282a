// Package logs makes the server's log: JSON, one line each. Lines have no id of an entity, and no text that a
// client has chosen.
package logs

import (
	"errors"
	"io"
	"log/slog"

	"github.com/sluice-go/sluice/runtime"
	"github.com/sluice-go/sluice/runtime/metrics"
)

// New returns a log that writes to w.
func New(w io.Writer) *slog.Logger {
	return slog.New(slog.NewJSONHandler(w, &slog.HandlerOptions{ReplaceAttr: redact}))
}

// redact drops what names entities: the library's attributes, and texts of errors.
func redact(_ []string, a slog.Attr) slog.Attr {
	switch a.Key {
	case "entity", "id":
		return slog.Attr{}
	}
	err, ok := a.Value.Any().(error)
	if !ok {
		return a
	}
	return slog.Attr{Key: a.Key, Value: slog.StringValue(textOf(err))}
}

// OperatorError is an error whose text is for operators: of the configuration, not of a call.
type OperatorError struct{ Err error }

// Error returns the error's text.
func (o OperatorError) Error() string { return o.Err.Error() }

// textOf returns what a line may say of an error. Those of calls name entities, but for the cause of an
// outage.
func textOf(err error) string {
	if own, ok := errors.AsType[OperatorError](err); ok {
		return own.Error()
	}
	kind := metrics.TypeOf(err)
	if down, ok := errors.AsType[*runtime.UnavailableError](err); ok {
		return kind + ": " + cause(down).Error()
	}
	if _, ok := errors.AsType[*runtime.SetupError](err); ok {
		return kind + ": run `sluice table check`"
	}
	return kind
}

// cause returns the error at the end of err's chain.
func cause(err error) error {
	for {
		next := errors.Unwrap(err)
		if next == nil {
			return err
		}
		err = next
	}
}
