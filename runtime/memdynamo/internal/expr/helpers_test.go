package expr

import (
	"errors"
	"testing"

	"github.com/sluice-go/sluice/runtime/memdynamo/internal/exception"
	"github.com/sluice-go/sluice/runtime/memdynamo/internal/value"
)

// invalid returns the message of err, which must be a ValidationException.
func invalid(t testing.TB, err error) string {
	t.Helper()
	e, ok := errors.AsType[*exception.Error](err)
	if !ok || e.Code != exception.Validation || e.Message == "" {
		t.Fatalf("%#v is no ValidationException with a message", err)
	}
	return e.Message
}

func number(i int64) value.Value { return value.NumberOf(i) }

// newScope returns a scope of names and values for tests whose scopes are right.
func newScope(t testing.TB, names map[string]string, values value.Map) *Scope {
	t.Helper()
	s, err := NewScope(names, values)
	if err != nil {
		t.Fatal(err)
	}
	return s
}
