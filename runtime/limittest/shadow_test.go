package limittest_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	limits "github.com/sluice-go/sluice/generated"
	"github.com/sluice-go/sluice/runtime"
	"github.com/sluice-go/sluice/runtime/store"
)

// TestFakeInShadow: handlers are shown what would have refused them, and what they do with the lease is
// recorded.
func TestFakeInShadow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fake, gpt4 := newFake()
		fake.Shadow(true)
		fake.Deny(limits.GPT4TPM, time.Second)
		began := time.Now()
		lease, err := gpt4.Wait(t.Context(), user, cost)
		if err != nil {
			t.Fatal(err)
		}
		denied, ok := errors.AsType[*limits.DeniedError](lease.Shadowed())
		if !ok || denied.RetryAfter != time.Second || time.Since(began) != 0 {
			t.Errorf("%v after %v", lease.Shadowed(), time.Since(began))
		}
		if err := lease.Settle(t.Context(), actual); err != nil {
			t.Error(err)
		}
		fake.Fail(&store.UnavailableError{Resource: "fake", Err: errors.New("down")})
		acquire(t, gpt4, user, cost).Release(t.Context())
		fake.Shadow(false)
		fake.Deny(limits.GPT4TPM, time.Second)
		if lease, err = gpt4.Acquire(t.Context(), user, cost, runtime.Shadow(true)); err != nil ||
			lease.Shadowed() == nil {
			t.Errorf("by its own option: %v", err)
		}
		if _, err := gpt4.Acquire(t.Context(), user, cost); err == nil {
			t.Error("no longer in shadow, it was admitted")
		}
		var got []string
		for _, c := range fake.Calls() {
			got = append(got, fmt.Sprint(c.Shadowed != nil, c.Err != nil, c.Settled.TPM, c.Done, c.Released))
		}
		want := []string{
			fmt.Sprint(true, false, actual.TPM, true, false), "true false 0 true true", "true false 0 false false",
			"false true 0 false false",
		}
		if !slices.Equal(got, want) {
			t.Errorf("recorded %q\nwant     %q", got, want)
		}
	})
}
