package runtime_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluice-go/sluice/internal/test/longform"
	"github.com/sluice-go/sluice/runtime"
	"github.com/sluice-go/sluice/runtime/bucket"
	"github.com/sluice-go/sluice/runtime/store"
)

// slots is a resource whose first limit counts calls in flight: 20 of a user, 50 of a project. Each call has
// one. The second refills.
func slots() definition {
	spec := *gpt4().spec
	spec.Resource, spec.Limits, spec.Held = "jobs", []string{"parallel", "tpm"}, []bool{true, false}
	spec.Kinds = slices.Clone(spec.Kinds)
	for i, n := range []int64{20, 50} {
		spec.Kinds[i].Limits = []bucket.Limit{bucket.InFlight(n), bucket.Per(6000, time.Minute)}
		spec.Kinds[i].PerCall = []int64{1, 0}
	}
	return definition{&spec}
}

// openSlots returns a Limiter on slots, which the end of the test closes.
func openSlots(t *testing.T, backend *fake, opts ...runtime.Option) (*runtime.Limiter, *resource) {
	t.Helper()
	lim, r := openAs(t, backend, slots(), append([]runtime.Option{quiet()}, opts...)...)
	return lim, r
}

// free returns how many slots a user or a project has left, by what is stored.
func (f *fake) free(entity string) int64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	img := f.buckets["jobs "+entity]
	if img == nil {
		return -1
	}
	return bucket.Available(img.Balances[0], img.Refilled, f.now()) / bucket.Milli
}

// addUp fails the test if slots were made or lost.
func (f *fake) addUp(t *testing.T) {
	t.Helper()
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, wrong := range f.wrong {
		t.Error(wrong)
	}
}

// TestSlots: each way to end a lease gives its slot back, and does with its tokens what it always does.
func TestSlots(t *testing.T) {
	for name, test := range map[string]struct {
		end    func(context.Context, *runtime.Lease[cost])
		tokens int64
		writes int
	}{
		"settle": {func(ctx context.Context, l *runtime.Lease[cost]) { _ = l.Settle(ctx, cost{TPM: 40}) }, 5960, 2},
		"settle ignores slots": {func(ctx context.Context, l *runtime.Lease[cost]) {
			_ = l.Settle(ctx, cost{RPM: -7, TPM: 100})
		}, 5900, 2},
		"keep":    {func(ctx context.Context, l *runtime.Lease[cost]) { l.Keep(ctx) }, 5900, 2},
		"release": {func(ctx context.Context, l *runtime.Lease[cost]) { l.Release(ctx) }, 6000, 2},
		"more": {func(ctx context.Context, l *runtime.Lease[cost]) {
			_ = l.More(ctx, cost{TPM: 50})
			l.Keep(ctx)
		}, 5850, 3},
		"more slots": {func(ctx context.Context, l *runtime.Lease[cost]) {
			_ = l.More(ctx, cost{RPM: 2})
			_ = l.Settle(ctx, cost{TPM: 100})
		}, 5900, 3},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				backend := &fake{}
				_, r := openSlots(t, backend)
				lease := acquire(t, r, user{"1"}, cost{TPM: 100})
				equal(t, "free", backend.free("user-1"), 19)
				test.end(t.Context(), lease)
				test.end(t.Context(), lease) // has no effect
				equal(t, "free at the end", backend.free("user-1"), 20)
				equal(t, "tokens", backend.buckets["jobs user-1"].Balances[1].Tokens/bucket.Milli, test.tokens)
				equal(t, "writes", backend.count(), test.writes)
				backend.addUp(t)
			})
		})
	}
}

// TestMoreTakesNoSecondSlot: a 0 is 0, not the slot of a call.
func TestMoreTakesNoSecondSlot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		backend := &fake{}
		_, r := openSlots(t, backend)
		lease := acquire(t, r, user{"1"}, cost{})
		defer lease.Keep(t.Context())
		check(t, lease.More(t.Context(), cost{TPM: 50}), "")
		equal(t, "free", backend.free("user-1"), 19)
		check(t, lease.More(t.Context(), cost{RPM: 2}), "")
		equal(t, "free with more", backend.free("user-1"), 17)
		equal(t, "cost", lease.Cost(), cost{3, 50})
	})
}

// TestExtension: over ten minutes, 50 leases of three users and their project are extended by one write for
// each bucket and minute, whatever the second of their acquires. Nothing is lost.
func TestExtension(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		backend := &fake{}
		lost := 0
		lim, r := openSlots(t, backend, runtime.WithObserver(&runtime.Observer{
			LeaseLost: func(context.Context, runtime.Event) { lost++ },
		}))
		writes := backend.countExtensions()
		var leases []*runtime.Lease[cost]
		for i := range 50 {
			ctx, cancel := context.WithCancel(t.Context())
			lease, err := r.Acquire(ctx, member{fmt.Sprint(i % 3), "p"}, cost{})
			check(t, err, "")
			cancel() // extension does not end with it
			leases = append(leases, lease)
			elapse(time.Second)
		}
		elapse(10*time.Minute - 50*time.Second)
		synctest.Wait()
		for bucket, n := range writes {
			equal(t, "writes of "+bucket, n, 1)
		}
		equal(t, "buckets and minutes", len(writes), 4*9) // the first minute's end in the second
		equal(t, "lost", lost, 0)
		equal(t, "free", backend.free("project-p"), 0)
		for _, lease := range leases {
			lease.Keep(t.Context())
		}
		equal(t, "free at the end", backend.free("project-p"), 50)
		check(t, lim.Close(t.Context()), "")
		backend.addUp(t)
	})
}

// countExtensions counts extensions by bucket and minute from now on.
func (f *fake) countExtensions() map[string]int {
	writes := map[string]int{}
	f.hook(func(_ context.Context, op string, call *store.Call) error {
		if op == "extend" {
			f.mu.Lock()
			defer f.mu.Unlock()
			writes[fmt.Sprint(call.Parts[0].Buckets[0].Entity, " ", time.Now().Minute())]++
		}
		return nil
	})
	return writes
}

// TestExtensionsAreSeen: of two processes on one bucket, the count of TestExtension sees two writes a minute.
func TestExtensionsAreSeen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		backend := &fake{}
		_, one := openSlots(t, backend)
		lease := acquire(t, one, user{"1"}, cost{})
		stored := backend.buckets
		_, two := openSlots(t, backend)
		backend.buckets = stored
		other := acquire(t, two, user{"1"}, cost{})
		writes := backend.countExtensions()
		elapse(101 * time.Second)
		synctest.Wait()
		equal(t, "writes", writes["user-1 1"], 2)
		lease.Keep(t.Context())
		other.Keep(t.Context())
		equal(t, "free", backend.free("user-1"), 20)
	})
}

// TestForgedSlotsAreSeen: addUp sees what a lease does that is in two writes, or that returns a hold of which
// it does not know the epoch.
func TestForgedSlotsAreSeen(t *testing.T) {
	longform.NoRace(t, "controls, whose broken variants ship nowhere")
	for name, forge := range map[string]func(context.Context, *fake, *store.Call){
		"returned twice": func(ctx context.Context, f *fake, call *store.Call) { _ = f.Settle(ctx, call) },
		"in doubt, taken as failed": func(ctx context.Context, f *fake, call *store.Call) {
			part := call.Parts[0]
			extend := &store.Call{Parts: []store.Part{{Def: part.Def, Buckets: slices.Clone(part.Buckets)}}}
			elapse(101 * time.Second)
			_ = f.Extend(ctx, extend)
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				backend := &fake{}
				_, r := openSlots(t, backend)
				lease := acquire(t, r, user{"1"}, cost{})
				backend.hook(func(ctx context.Context, _ string, call *store.Call) error {
					backend.hook(nil)
					forge(ctx, backend, call)
					return nil
				})
				lease.Keep(t.Context())
				if len(backend.wrong) == 0 {
					t.Errorf("nothing is wrong with %+v", backend.buckets["jobs user-1"].Balances[0])
				}
			})
		})
	}
}

// TestShortCallsAreNotExtended: a call under half a minute costs its acquire and its end, whenever it begins.
func TestShortCallsAreNotExtended(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		backend := &fake{}
		_, r := openSlots(t, backend)
		for range 60 {
			lease := acquire(t, r, user{"1"}, cost{})
			elapse(30*time.Second - time.Millisecond)
			lease.Keep(t.Context())
			elapse(1001 * time.Millisecond)
		}
		equal(t, "extensions", backend.of("extend"), 0)
		lease := acquire(t, r, user{"1"}, cost{})
		elapse(101 * time.Second)
		lease.Keep(t.Context())
		equal(t, "extensions of a long call", backend.of("extend") > 0, true)
	})
}
