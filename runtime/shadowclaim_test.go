package runtime_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"

	"github.com/sluice-go/sluice/runtime"
	"github.com/sluice-go/sluice/runtime/store"
)

// which returns the names of events, and their limits.
func which(got []report) (all []string) {
	for _, one := range got {
		all = append(all, strings.TrimSpace(one.Which+" "+one.Event.Entity+" "+one.Event.Limit))
	}
	return all
}

// TestClaimsInShadow: those that can be refused are taken first, all or none, and the others each by itself.
func TestClaimsInShadow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var got []report
		store := &fake{}
		lim, gpt, emb := openTwo(t, store, runtime.WithObserver(watch(&got)))
		one, two := typed("1", "", "3", ""), typed("2", "", "4", "")
		shadow := gpt.With(runtime.Shadow(true))
		a, b := shadow.Claim(one, cost{TPM: 100}), shadow.Claim(two, cost{TPM: 6001})
		c, d := gpt.Claim(one, cost{TPM: 5950}), emb.Claim(one[ofProject:], batches{20})
		check(t, lim.AcquireAll(t.Context(), a, b, c, d), "")
		want := []string{
			"acquire user-1,project-3,embeddings project-3", "acquire user-1,project-3", "acquire user-2,project-4",
		}
		if !slices.Equal(store.calls, want) {
			t.Errorf("calls\n\t%q\nwant\n\t%q", store.calls, want)
		}
		check(t, a.Lease().Shadowed(), "denied gpt-4 user-1 tpm 50/100 500ms")
		if _, ok := errors.AsType[*runtime.CostTooLargeError](b.Lease().Shadowed()); !ok {
			t.Error(b.Lease().Shadowed())
		}
		equal(t, "shadowed", c.Lease().Shadowed(), nil)
		equal(t, "shadowed", d.Lease().Shadowed(), nil)
		events := []string{"acquired user-1", "acquired project-3", "shadowed user-1 tpm", "shadowed user-2 tpm"}
		if diff := cmp.Diff(events, which(got)); diff != "" {
			t.Errorf("observer (-want +got):\n%s", diff)
		}

		// A refused claim refuses all, and no claim in shadow is tried.
		store.calls, got = nil, nil
		e, f := shadow.Claim(two, cost{TPM: 1}), gpt.Claim(one, cost{TPM: 51})
		check(t, lim.AcquireAll(t.Context(), e, f), "denied gpt-4 user-1 tpm 50/51 10ms")
		if len(store.calls) != 1 || e.Lease() != nil || f.Lease() != nil {
			t.Errorf("calls %q, leases %v and %v", store.calls, e.Lease(), f.Lease())
		}
		if diff := cmp.Diff([]string{"denied user-1 tpm", "denied user-2"}, which(got)); diff != "" {
			t.Errorf("observer (-want +got):\n%s", diff)
		}
	})
}

// TestClaimsAllInShadow: they are taken together, as without: one that would be refused leaves all uncharged.
func TestClaimsAllInShadow(t *testing.T) {
	var got []report
	store := &fake{}
	lim, gpt, emb := openTwo(t, store, runtime.WithObserver(watch(&got)),
		runtime.WithCallDefaults(runtime.Shadow(true)))
	one := typed("1", "", "3", "")
	a, b := gpt.Claim(one, cost{TPM: 5000}), emb.Claim(one[ofProject:], batches{21})
	check(t, lim.AcquireAll(t.Context(), a, b), "")
	const never = "exceeds burst embeddings project-3 rps 21/20"
	check(t, a.Lease().Shadowed(), never)
	check(t, b.Lease().Shadowed(), never)
	equal(t, "level", store.level("user-1").TPM, 6000)
	equal(t, "calls to the store", store.count(), 1)
	if diff := cmp.Diff([]string{"shadowed user-1", "shadowed project-3 rps"}, which(got)); diff != "" {
		t.Errorf("observer (-want +got):\n%s", diff)
	}
	if err := lim.AcquireAll(t.Context(), a); err == nil {
		t.Error("a claim that shadow mode has admitted was admitted again")
	}
}

// TestClaimInShadowFails: for a reason that is no limit. The charges made before are given back, and the
// claims may be used again.
func TestClaimInShadowFails(t *testing.T) {
	for name, failure := range map[string]error{"setup": &runtime.SetupError{What: "no table"},
		"gone": context.Canceled} {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		var got []report
		backend := &fake{}
		lim, gpt, _ := openTwo(t, backend, runtime.WithObserver(watch(&got)))
		user := typed("1", "", "3", "")
		enforced := gpt.Claim(user, cost{TPM: 100})
		shadow := gpt.With(runtime.Shadow(true)).Claim(user, cost{TPM: 10})
		tries := 0
		backend.hook(func(context.Context, string, *store.Call) error {
			switch tries++; {
			case tries == 1 && name == "gone":
				cancel()
			case tries == 2 && name == "setup":
				return failure
			}
			return nil
		})
		err := lim.AcquireAll(ctx, shadow, enforced)
		if !errors.Is(err, failure) {
			t.Errorf("%s: %v", name, err)
		}
		equal(t, name+": level", backend.level("user-1"), cost{60, 6000})
		if enforced.Lease() != nil || shadow.Lease() != nil {
			t.Error("leases in spite of the error")
		}
		if diff := cmp.Diff([]string{"acquired user-1", "failed user-1", "released user-1"},
			which(got)); diff != "" {
			t.Errorf("%s: observer (-want +got):\n%s", name, diff)
		}
		backend.hook(nil)
		check(t, lim.AcquireAll(t.Context(), shadow, enforced), "")
		equal(t, name+": remaining", fmt.Sprint(enforced.Lease().Remaining(), shadow.Lease().Remaining()),
			"{60 5900} {60 5890}")
	}
}

// TestBadClaimInShadow: what is wrong with it is found before anything is charged.
func TestBadClaimInShadow(t *testing.T) {
	store := &fake{}
	lim, gpt, _ := openTwo(t, store)
	user := typed("1", "", "3", "")
	err := lim.AcquireAll(t.Context(), gpt.Claim(user, cost{TPM: 1}), gpt.With(runtime.Shadow(true)).Claim(user,
		cost{TPM: -1}))
	if _, ok := errors.AsType[*runtime.InvalidError](err); !ok || store.count() != 0 {
		t.Errorf("%v after %d calls to the store", err, store.count())
	}
}
