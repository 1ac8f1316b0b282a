package limittest_test

import (
	"errors"
	"testing"
	"time"

	limits "github.com/sluice-go/sluice/generated"
	"github.com/sluice-go/sluice/runtime"
	"github.com/sluice-go/sluice/runtime/limittest"
)

// TestFakeMore: more is a call of its own, which Deny refuses, and joins the lease.
func TestFakeMore(t *testing.T) {
	fake := limittest.NewFake((*limits.GPT4Resource)(nil))
	lease, err := fake.Acquire(t.Context(), user, limits.GPT4Cost{RPM: 1, TPM: 500})
	if err != nil {
		t.Fatal(err)
	}
	if err := lease.More(t.Context(), limits.GPT4Cost{TPM: 20}); err != nil {
		t.Errorf("more: %v", err)
	}
	fake.Deny(limits.GPT4TPM, time.Minute)
	denied := lease.More(t.Context(), limits.GPT4Cost{TPM: 30})
	if _, ok := errors.AsType[*runtime.DeniedError](denied); !ok {
		t.Errorf("more after Deny: %v", denied)
	}
	if got, want := lease.Cost(), (limits.GPT4Cost{RPM: 1, TPM: 520}); got != want {
		t.Errorf("the lease is of %+v, want %+v", got, want)
	}
	fake.Admit()
	actual := limits.GPT4Cost{RPM: 1, TPM: 510}
	if err := lease.Settle(t.Context(), actual); err != nil {
		t.Errorf("settle: %v", err)
	}
	recorded(t, fake,
		call{Method: "Acquire", Entity: user, Cost: limits.GPT4Cost{RPM: 1, TPM: 500}, Settled: actual, Done: true},
		call{Method: "More", Entity: user, Cost: limits.GPT4Cost{TPM: 20}},
		call{Method: "More", Entity: user, Cost: limits.GPT4Cost{TPM: 30}, Err: denied})
}
