package limittest_test

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	budgets "github.com/sluice-go/sluice/gen/testdata/golden/money/out"
	limits "github.com/sluice-go/sluice/generated"
	"github.com/sluice-go/sluice/runtime"
	"github.com/sluice-go/sluice/runtime/limittest"
)

// TestDenyNil: Deny without a limit fails at the call, not at a later acquire.
func TestDenyNil(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("Deny(nil) returned")
		}
	}()
	limittest.NewFake((*limits.GPT4Resource)(nil)).Deny(nil, time.Second)
}

// TestDenyUntil: a denial until the end of a window says when that is, a Wait comes back then, and one that
// Deny makes has no such time.
func TestDenyUntil(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fake := limittest.NewFake((*limits.GPT4Resource)(nil))
		user, resets := limits.User{ID: "1"}, time.Now().Add(30*time.Second)
		deny := func() *runtime.DeniedError {
			t.Helper()
			_, err := fake.Acquire(t.Context(), user, limits.GPT4Cost{TPM: 1})
			denied, ok := errors.AsType[*runtime.DeniedError](err)
			if !ok || !denied.By(limits.GPT4TPM) || !denied.Refusals[0].Resets.Equal(denied.Resets) {
				t.Fatal(err)
			}
			return denied
		}
		fake.DenyUntil(limits.GPT4TPM, resets)
		time.Sleep(10 * time.Second)
		if d := deny(); !d.Resets.Equal(resets) || d.RetryAfter != 20*time.Second {
			t.Errorf("%v until %v", d.RetryAfter, d.Resets)
		}
		_, err := fake.Wait(t.Context(), user, limits.GPT4Cost{TPM: 1})
		if now := time.Now(); err != nil || now.Before(resets) {
			t.Errorf("at %v: %v", now, err)
		}
		if d := deny(); d.RetryAfter != 0 {
			t.Errorf("a window that is over: %v", d.RetryAfter)
		}
		fake.Deny(limits.GPT4TPM, time.Second)
		if d := deny(); !d.Resets.IsZero() {
			t.Errorf("Deny until %v", d.Resets)
		}
		own := &runtime.DeniedError{Limit: "tpm", RetryAfter: time.Second, Resets: resets}
		fake.Fail(own)
		_, err = fake.Acquire(t.Context(), user, limits.GPT4Cost{TPM: 1})
		if denied, ok := errors.AsType[*runtime.DeniedError](err); !ok || !denied.Resets.Equal(resets) {
			t.Errorf("Fail: %v", err)
		}
	})
}

// TestDenyUntilNil: DenyUntil without a limit, or without a time, fails at the call.
func TestDenyUntilNil(t *testing.T) {
	fake := limittest.NewFake((*limits.GPT4Resource)(nil))
	for name, call := range map[string]func(){
		"limit": func() { fake.DenyUntil(nil, time.Unix(1, 0)) },
		"time":  func() { fake.DenyUntil(limits.GPT4TPM, time.Time{}) },
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("without a %s, DenyUntil returned", name)
				}
			}()
			call()
		}()
	}
}

// TestDenyMoney: a denial by a limit of money has its currency, as that of a Resource has.
func TestDenyMoney(t *testing.T) {
	fake := limittest.NewFake((*budgets.GPT4Resource)(nil))
	for limit, want := range map[budgets.GPT4Limit]string{budgets.GPT4Month: "USD", budgets.GPT4TPM: ""} {
		fake.Deny(limit, time.Second)
		_, err := fake.Acquire(t.Context(), budgets.User{ID: "1"}, budgets.GPT4Cost{Day: 1})
		denied, ok := errors.AsType[*runtime.DeniedError](err)
		if !ok || denied.Unit != want || denied.Refusals[0].Unit != want {
			t.Errorf("%v: %v, want unit %q", limit, err, want)
		}
	}
	if got := budgets.GPT4Limit(0).Unit(); got != "" {
		t.Errorf("the unit of no limit is %q", got)
	}
}
