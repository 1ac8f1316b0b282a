package runtime_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/sluice-go/sluice/runtime"
	"github.com/sluice-go/sluice/runtime/store"
)

func TestAcquireTakesTheCost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &fake{}
		_, r := open(t, store)
		lease := acquire(t, r, user{"1"}, cost{TPM: 10})
		equal(t, "cost", lease.Cost(), cost{RPM: 1, TPM: 10})
		equal(t, "remaining", lease.Remaining(), cost{RPM: 59, TPM: 5990})
		equal(t, "level", store.level("user-1"), cost{RPM: 59, TPM: 5990})
		lease = acquire(t, r, user{"1"}, cost{RPM: 3})
		equal(t, "cost", lease.Cost(), cost{RPM: 3})
		elapse(time.Second)
		equal(t, "remaining does not move by itself", lease.Remaining(), cost{RPM: 56, TPM: 5990})
		equal(t, "level", store.level("user-1"), cost{RPM: 57, TPM: 6000})
		equal(t, "name", r.Name(), "gpt-4")
	})
}

func TestKindsHaveBucketsOfTheirOwn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &fake{}
		_, r := open(t, store)
		equal(t, "project", acquire(t, r, project{"1"}, cost{RPM: 5}).Remaining(), cost{RPM: 115, TPM: 6000})
		equal(t, "user", acquire(t, r, user{"1"}, cost{RPM: 5}).Remaining(), cost{RPM: 55, TPM: 6000})
		if want := []string{"acquire project-1", "acquire user-1"}; !slices.Equal(store.calls, want) {
			t.Errorf("calls %q, want %q", store.calls, want)
		}
	})
}

func TestAcquireDenied(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &fake{}
		_, r := open(t, store)
		acquire(t, r, user{"1"}, cost{RPM: 58, TPM: 5990})
		lease, err := r.Acquire(t.Context(), user{"1"}, cost{RPM: 3, TPM: 500})
		denied, ok := errors.AsType[*runtime.DeniedError](err)
		if !ok || lease != nil {
			t.Fatalf("lease %v, error %v", lease, err)
		}
		want := &runtime.DeniedError{
			Resource: "gpt-4", Entity: "user-1", Limit: "tpm", Requested: 500, Available: 10,
			RetryAfter: 4900 * time.Millisecond,
			Refusals: []runtime.Refusal{
				{Resource: "gpt-4", Entity: "user-1", Limit: "rpm", Requested: 3, Available: 2, RetryAfter: time.Second},
				{Resource: "gpt-4", Entity: "user-1", Limit: "tpm", Requested: 500, Available: 10,
					RetryAfter: 4900 * time.Millisecond},
			},
		}
		if diff := cmp.Diff(want, denied, cmpopts.IgnoreUnexported(runtime.DeniedError{})); diff != "" {
			t.Errorf("denial (-want +got):\n%s", diff)
		}
		check(t, err, "denied gpt-4 user-1 tpm 10/500 4.9s")
		if errors.Is(err, context.DeadlineExceeded) {
			t.Error("a denial of Acquire is no deadline")
		}
		equal(t, "level", store.level("user-1"), cost{RPM: 2, TPM: 10})
		elapse(denied.RetryAfter - time.Millisecond)
		if _, err := r.Acquire(t.Context(), user{"1"}, cost{RPM: 3, TPM: 500}); err == nil {
			t.Error("admitted a millisecond before retry after")
		}
		elapse(time.Millisecond)
		acquire(t, r, user{"1"}, cost{RPM: 3, TPM: 500})
	})
}

func TestAcquireAboveBurst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &fake{}
		_, r := open(t, store)
		for _, call := range []func() (*runtime.Lease[cost], error){
			func() (*runtime.Lease[cost], error) { return r.Acquire(t.Context(), user{"1"}, cost{TPM: 6001}) },
			func() (*runtime.Lease[cost], error) { return r.Wait(t.Context(), user{"1"}, cost{TPM: 6001}) },
		} {
			_, err := call()
			exceeds, ok := errors.AsType[*runtime.CostTooLargeError](err)
			if !ok || *exceeds != (runtime.CostTooLargeError{
				Resource: "gpt-4", Entity: "user-1", Limit: "tpm", Requested: 6001, Burst: 6000,
			}) {
				t.Errorf("got %+v", exceeds)
			}
			check(t, err, "exceeds burst gpt-4 user-1 tpm 6001/6000")
		}
	})
}

func TestAbandonedCallIsNotCharged(t *testing.T) {
	store := &fake{}
	_, r := open(t, store)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := r.Acquire(ctx, user{"1"}, cost{TPM: 1})
	check(t, err, "context canceled gpt-4 user-1")
	if !errors.Is(err, context.Canceled) {
		t.Error("not context.Canceled")
	}
	_, err = r.Wait(ctx, user{"1"}, cost{TPM: 1})
	check(t, err, "context canceled gpt-4 user-1")
	_, err = r.Peek(ctx, user{"1"})
	check(t, err, "context canceled gpt-4 user-1")
	equal(t, "calls to the store", store.count(), 0)
}

func TestConcurrentAcquires(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, r := open(t, &fake{})
		var wg sync.WaitGroup
		var admitted, denied atomic.Int64
		for range 100 {
			wg.Go(func() {
				_, err := r.Acquire(t.Context(), user{"1"}, cost{})
				if err == nil {
					admitted.Add(1)
				} else if _, ok := errors.AsType[*runtime.DeniedError](err); ok {
					denied.Add(1)
				}
			})
		}
		wg.Wait()
		equal(t, "admitted", admitted.Load(), 60)
		equal(t, "denied", denied.Load(), 40)
	})
}

// TestCallAsTheStoreSeesIt: vectors in millitokens and schema order, and the instant of the call.
func TestCallAsTheStoreSeesIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		type seen struct {
			Op           string
			Cost, Actual []int64
			Kind         int
			Called       time.Time
		}
		var got []seen
		backend := &fake{before: func(_ context.Context, op string, call *store.Call) error {
			p := call.Parts[0]
			got = append(got, seen{op, p.Cost, p.Actual, p.Buckets[0].Kind, call.Called})
			return nil
		}}
		_, r := open(t, backend)
		start := time.Now()
		lease := acquire(t, r, project{"1"}, cost{RPM: 2, TPM: 7})
		elapse(time.Second)
		check(t, lease.Settle(t.Context(), cost{RPM: 1, TPM: 9}), "")
		lease = acquire(t, r, project{"1"}, cost{RPM: 2})
		lease.Release(t.Context())
		later := start.Add(time.Second)
		want := []seen{
			{"acquire", []int64{2000, 7000}, nil, 1, start},
			{"settle", []int64{2000, 7000}, []int64{1000, 9000}, 1, later},
			{"acquire", []int64{2000, 0}, nil, 1, later},
			{"settle", []int64{2000, 0}, []int64{0, 0}, 1, later},
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("calls (-want +got):\n%s", diff)
		}
	})
}
