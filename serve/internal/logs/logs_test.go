package logs

import (
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/sluice-go/sluice/runtime"
)

// TestRedacted: no line names an entity, whichever way the library or the server logs it. The control is the
// same line in a log of package slog.
func TestRedacted(t *testing.T) {
	const secret = "user-alice"
	down := &runtime.UnavailableError{Err: fmt.Errorf("looking up the parent of %s: %w", secret,
		errors.New("connection refused"))}
	for _, test := range []struct {
		attr slog.Attr
		want string
	}{
		{slog.String("entity", secret), ""},
		{slog.String("id", secret), ""},
		{slog.Any("error", &runtime.DeniedError{Entity: secret}), `"error":"denied"`},
		{slog.Any("error", down), `"error":"unavailable: connection refused"`},
		{slog.Any("error", &runtime.SetupError{What: secret}), "sluice table check"},
		{slog.Any("error", fmt.Errorf("%s failed", secret)), `"error":"_OTHER"`},
		{slog.Any("error", OperatorError{errors.New("limits.yaml:1:1: wrong")}),
			`"error":"limits.yaml:1:1: wrong"`},
		{slog.String("resource", "api"), `"resource":"api"`},
	} {
		var ours, plain strings.Builder
		New(&ours).LogAttrs(t.Context(), slog.LevelWarn, "m", test.attr)
		slog.New(slog.NewJSONHandler(&plain, nil)).LogAttrs(t.Context(), slog.LevelWarn, "m", test.attr)
		if strings.Contains(ours.String(), secret) || !strings.Contains(ours.String(), test.want) {
			t.Errorf("%v: %s", test.attr, ours.String())
		}
		if test.want != `"resource":"api"` && !strings.Contains(test.want, "limits.yaml") &&
			!strings.Contains(plain.String(), secret) {
			t.Errorf("%v: the control does not name it: %s", test.attr, plain.String())
		}
	}
}
