package runtime_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sluice-go/sluice/runtime"
	"github.com/sluice-go/sluice/runtime/bucket"
	"github.com/sluice-go/sluice/runtime/store"
)

func TestPeek(t *testing.T) {
	capacity := cost{60, 6000}
	for _, test := range []struct {
		name      string
		put       func(*fake)
		available cost
		full      time.Duration
		exists    bool
	}{
		{"no bucket is a full one", func(*fake) {}, cost{60, 6000}, 0, false},
		{"full", func(f *fake) { f.put(0, 60, 6000) }, cost{60, 6000}, 0, true},
		{"above its burst", func(f *fake) { f.put(0, 90, 6000) }, cost{60, 6000}, 0, true},
		{"the slowest limit counts", func(f *fake) { f.put(0, 50, 5999) }, cost{50, 5999}, 10 * time.Second, true},
		{"refill counts", func(f *fake) { f.put(4*time.Second, 50, 5999) }, cost{54, 6000}, 6 * time.Second, true},
		{"debt is 0", func(f *fake) { f.put(0, 60, -1000) }, cost{60, 0}, 70 * time.Second, true},
		{"a missing limit is full", func(f *fake) {
			f.put(0, 50, 0)
			img := f.buckets["user-1"]
			img.Missing[1], img.Balances[1] = true, bucket.Balance{}
		}, cost{50, 6000}, 10 * time.Second, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store := &fake{}
				_, r := open(t, store)
				test.put(store)
				got, err := r.Peek(t.Context(), user{"1"})
				check(t, err, "")
				want := &runtime.Snapshot[cost]{Available: test.available, Buckets: []runtime.BucketSnapshot[cost]{{
					Entity: "user-1", Available: test.available, Capacity: capacity, Burst: capacity, Full: test.full,
					Exists: test.exists,
				}}}
				if diff := cmp.Diff(want, got); diff != "" {
					t.Errorf("snapshot (-want +got):\n%s", diff)
				}
				equal(t, "calls to the store", store.count(), 1)
			})
		})
	}
}

// TestPeekShowsTheBucketsOwnNumbers: those in force, not the schema's.
func TestPeekShowsTheBucketsOwnNumbers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &fake{}
		_, r := open(t, store)
		store.put(0, 10, 0)
		store.buckets["user-1"].Balances[0].Limit = bucket.Per(20, time.Minute).WithBurst(30)
		got, err := r.Peek(t.Context(), user{"1"})
		check(t, err, "")
		equal(t, "capacity", got.Buckets[0].Capacity, cost{20, 6000})
		equal(t, "burst", got.Buckets[0].Burst, cost{30, 6000})
	})
}

func TestPeekFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		backend := &fake{before: func(ctx context.Context, _ string, _ *store.Call) error {
			<-ctx.Done()
			return &runtime.UnavailableError{Resource: "gpt-4", Attempts: 1, Err: ctx.Err()}
		}}
		_, r := open(t, backend)
		start := time.Now()
		snapshot, err := r.Peek(t.Context(), user{"1"})
		check(t, err, "unavailable gpt-4 1: context deadline exceeded")
		equal(t, "took the budget", time.Since(start), store.DefaultBudget)
		if _, ok := errors.AsType[*runtime.UnavailableError](err); !ok || snapshot != nil {
			t.Errorf("snapshot %v and a %T", snapshot, err)
		}
	})
}
