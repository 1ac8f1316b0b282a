package errtext_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/sluice-go/sluice/internal/test/errtext"
	"github.com/sluice-go/sluice/runtime"
	"github.com/sluice-go/sluice/runtime/dynamo/codec"
)

func TestOf(t *testing.T) {
	reset := errors.New("reset")
	denied := &runtime.DeniedError{
		Resource: "gpt-4", Entity: "user-1", Limit: "tpm", Requested: 10, Available: 3,
		RetryAfter: 90 * time.Second,
	}
	for _, test := range []struct {
		err  error
		want string
	}{
		{nil, ""},
		{reset, "reset"},
		{denied, "denied gpt-4 user-1 tpm 3/10 1m30s"},
		{&runtime.DeniedError{Resource: "gpt-4", Entity: "user-1", Limit: "tpm", Unsynced: true},
			"denied gpt-4 user-1 tpm 0/0 0s unsynced"},
		{fmt.Errorf("store: %w", denied), "store: denied gpt-4 user-1 tpm 3/10 1m30s"},
		{&runtime.CostTooLargeError{Resource: "gpt-4", Entity: "user-1", Limit: "tpm", Requested: 11,
			Burst: 10},
			"exceeds burst gpt-4 user-1 tpm 11/10"},
		{&runtime.InvalidError{Resource: "gpt-4", Field: "id of user", Value: "a\n", Reason: "is bad"},
			`invalid gpt-4 id user "a\n"`},
		{&runtime.InvalidError{Field: "entity", Reason: "is nil"}, "invalid entity"},
		{&runtime.UnavailableError{Resource: "gpt-4", Attempts: 2, Throttled: true, Err: reset},
			"unavailable gpt-4 2 throttled: reset"},
		{&runtime.UnavailableError{Err: reset}, "unavailable: reset"},
		{&runtime.ContendedError{Resource: "gpt-4", Entity: "user-1", Attempts: 8, Conflicts: 3},
			"contended gpt-4 user-1 8/3"},
		{&runtime.ConflictError{Resource: "gpt-4", At: "project-1"}, "conflict gpt-4 project-1"},
		{&runtime.QueueFullError{Resource: "gpt-4", Entity: "user-1", MaxWaiters: 9}, "queue full gpt-4 user-1 9"},
		{&runtime.SetupError{What: "no table", Do: "create it", Err: reset}, "setup: no table | reset | create it"},
		{&runtime.SetupError{What: "no table"}, "setup: no table"},
		{fmt.Errorf("sluice: embeddings for user-1: %w", context.Canceled), "context canceled embeddings user-1"},
		{context.Canceled, "context canceled"},
		{fmt.Errorf("item: %w", &codec.AttributeError{Attr: "rf", Got: "missing", Want: "a number"}),
			"item: attribute rf missing"},
		{errors.Join(denied, reset), "denied gpt-4 user-1 tpm 3/10 1m30s\nreset"},
	} {
		if got := errtext.Of(test.err); got != test.want {
			t.Errorf("%v is described as %q, want %q", test.err, got, test.want)
		}
	}
}

func TestReason(t *testing.T) {
	err := &runtime.InvalidError{Field: "entity", Reason: "is nil"}
	if got := errtext.Reason(err); got != "invalid entity is nil" {
		t.Error(got)
	}
}
