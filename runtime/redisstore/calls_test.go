package redisstore

import (
	"errors"
	"testing"
	"time"

	"github.com/sluice-go/sluice/runtime/store"
)

// TestAcquire: acquired tokens are taken, a denial names limit and time, and a settle or release gives
// tokens back.
func TestAcquire(t *testing.T) {
	s := simulated(t)
	d := s.process(t, s.client(t), gpt4())
	alice := caller{"1", "1"}
	lease, err := d.Acquire(t.Context(), alice, tokens2{50, 1000})
	if err != nil {
		t.Fatal(err)
	}
	if got := lease.Remaining(); got != (tokens2{10, 5000}) {
		t.Errorf("%v remaining", got)
	}
	_, err = d.Acquire(t.Context(), alice, tokens2{12, 5100})
	denied, ok := errors.AsType[*store.DeniedError](err)
	if !ok {
		t.Fatal(err)
	}
	want := []store.Refusal{
		{Resource: "gpt-4", Entity: "user-1", Limit: "rpm", Requested: 12, Available: 10,
			RetryAfter: 2 * time.Second},
		{Resource: "gpt-4", Entity: "user-1", Limit: "tpm", Requested: 5100, Available: 5000,
			RetryAfter: time.Second},
		{Resource: "gpt-4", Entity: "project-1", Limit: "rpm", Requested: 12, Available: 10,
			RetryAfter: 2 * time.Second},
		{Resource: "gpt-4", Entity: "project-1", Limit: "tpm", Requested: 5100, Available: 5000,
			RetryAfter: time.Second},
	}
	if len(denied.Refusals) != len(want) {
		t.Fatalf("%+v", denied.Refusals)
	}
	for i := range want {
		if denied.Refusals[i] != want[i] {
			t.Errorf("refusal %+v, want %+v", denied.Refusals[i], want[i])
		}
	}
	if denied.Limit != "rpm" || denied.Entity != "user-1" || denied.RetryAfter != 2*time.Second ||
		denied.Requested != 12 {
		t.Errorf("%v", denied)
	}
	if err := lease.Settle(t.Context(), tokens2{40, 1500}); err != nil {
		t.Fatal(err)
	}
	if got := lease.Remaining(); got != (tokens2{20, 4500}) {
		t.Errorf("%v remaining", got)
	}
	s.at(1000)
	d.left(t, alice, tokens2{21, 4600})
	d.left(t, caller{"1", ""}, tokens2{21, 4600}) // with any project it is the same bucket
	other, err := d.Acquire(t.Context(), alice, tokens2{21, 4600})
	if err != nil {
		t.Fatal(err)
	}
	other.Release(t.Context())
	d.left(t, alice, tokens2{21, 4600})
	d.calls(t, "levels missing", "acquire applied", "acquire refused", "settle applied",
		"peek found", "peek found", "acquire applied", "settle applied", "peek found")
}
