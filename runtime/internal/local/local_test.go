package local_test

import (
	"errors"
	"testing"
	"time"

	"github.com/sluice-go/sluice/runtime/bucket"
	"github.com/sluice-go/sluice/runtime/internal/local"
	"github.com/sluice-go/sluice/runtime/store"
)

// definition is a resource of one limit a month.
type definition struct{ spec store.Spec }

func (d *definition) Spec() *store.Spec { return &d.spec }

func monthly(tokens int64) bucket.Limit { return bucket.InWindows(tokens, 30*24*time.Hour) }

// TestUsageOfAWindowStays: a bucket starts from the usage of the open window that the store last showed, by
// the numbers that are in force since.
func TestUsageOfAWindowStays(t *testing.T) {
	def := &definition{store.Spec{Resource: "api", Limits: []string{"month"}, Kinds: []store.Kind{{
		Name: "user", Prefix: "user-", Parent: store.NoParent, Limits: []bucket.Limit{monthly(10_000)},
		PerCall: []int64{0}, Windows: []*bucket.Calendar{{Unit: bucket.Month, Date: 1}},
	}}}}
	ends := time.Now().Add(time.Hour).UnixMilli()
	for name, test := range map[string]struct{ used, capacity, left int64 }{
		"as it was": {1000, 10_000, 9000}, "lowered": {1000, 2000, 1000}, "raised": {8000, 20_000, 12_000},
	} {
		t.Run(name, func(t *testing.T) {
			buckets := local.New(store.SystemClock())
			take := func(tokens int64) error {
				seen := bucket.Balance{
					Limit: monthly(10_000), Tokens: (10_000 - test.used) * bucket.Milli, Ends: ends,
				}
				_, err := buckets.Acquire(&store.Call{Parts: []store.Part{{
					Def: def, Cost: []int64{tokens * bucket.Milli},
					Buckets: []store.Bucket{{
						Entity: "user-1", Limits: []bucket.Limit{monthly(test.capacity)},
						After: &bucket.Image{Balances: []bucket.Balance{seen}, Missing: []bool{false}},
					}},
				}}})
				return err
			}
			err := take(test.left + 1)
			denied, ok := errors.AsType[*store.DeniedError](err)
			if !ok || denied.Available != test.left || !denied.Resets.Equal(time.UnixMilli(ends)) {
				t.Errorf("%v, want a denial with %d left until the window's end", err, test.left)
			}
			if err := take(test.left); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestCreditsInAnOutage: a prepaid limit has what the store last showed, and what was taken here stays taken
// once it answers, also after a grant. Control: a window has the lower of both until it ends.
func TestCreditsInAnOutage(t *testing.T) {
	never := &bucket.Calendar{Unit: bucket.Never}
	credits := bucket.InWindows(0, time.Duration(bucket.Never.Nominal())*time.Millisecond)
	daily := bucket.InWindows(10, 24*time.Hour)
	for name, test := range map[string]struct {
		limit    bucket.Limit
		calendar *bucket.Calendar
		ends     int64
		left     int64 // of 100 that the store shows then
	}{
		"credits":         {credits, never, bucket.NeverEnds, 96},
		"control: window": {daily, &bucket.Calendar{Unit: bucket.Day}, time.Now().Add(time.Hour).UnixMilli(), 6},
	} {
		t.Run(name, func(t *testing.T) {
			def := &definition{store.Spec{Resource: "api", Limits: []string{"credits"}, Kinds: []store.Kind{{
				Name: "user", Prefix: "user-", Parent: store.NoParent, Limits: []bucket.Limit{test.limit},
				PerCall: []int64{0}, Windows: []*bucket.Calendar{test.calendar},
			}}}}
			buckets := local.New(store.SystemClock())
			call := func(stored, cost int64) *store.Call {
				seen := bucket.Balance{Limit: test.limit, Tokens: stored * bucket.Milli, Ends: test.ends}
				return &store.Call{Parts: []store.Part{{
					Def: def, Cost: []int64{cost * bucket.Milli},
					Buckets: []store.Bucket{{
						Entity: "user-1", Limits: []bucket.Limit{test.limit},
						After: &bucket.Image{Balances: []bucket.Balance{seen}, Missing: []bool{false}},
					}},
				}}}
			}
			if _, err := buckets.Acquire(call(10, 4)); err != nil {
				t.Fatal(err)
			}
			buckets.Answered(call(100, 0))
			_, err := buckets.Acquire(call(100, test.left+1))
			_, denied := errors.AsType[*store.DeniedError](err)
			_, tooLarge := errors.AsType[*store.CostTooLargeError](err)
			if !denied && !tooLarge {
				t.Errorf("%v, want that %d are left", err, test.left)
			}
			if _, err := buckets.Acquire(call(100, test.left)); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestResourceAndName: a resource, and the name of a template that goes on with its buckets and has other
// limits, each have buckets of their own here.
func TestResourceAndName(t *testing.T) {
	of := func(resource string, limits ...string) *definition {
		kind := store.Kind{Name: "user", Prefix: "user-", Parent: store.NoParent}
		for range limits {
			kind.Limits = append(kind.Limits, bucket.Per(10, time.Hour))
		}
		kind.PerCall = make([]int64, len(limits))
		return &definition{store.Spec{Resource: resource, Limits: limits, Kinds: []store.Kind{kind}}}
	}
	plain := of("gpt-4", "rpm")
	name := store.NewNamed(of("model", "tpm", "rpm"), &store.Entry{Name: "old", Buckets: "gpt-4"})
	buckets := local.New(store.SystemClock())
	call := func(def store.Definition, cost ...int64) *store.Call {
		for i := range cost {
			cost[i] *= bucket.Milli
		}
		return &store.Call{Parts: []store.Part{{
			Def: def, Cost: cost, Actual: make([]int64, len(cost)), Buckets: []store.Bucket{{Entity: "user-1"}},
		}}}
	}
	held, err := buckets.Acquire(call(name, 9, 1))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := buckets.Acquire(call(plain, 10)); err != nil {
		t.Fatal(err)
	}
	for _, more := range []*store.Call{call(plain, 1), call(name, 2, 0)} {
		_, err := buckets.Acquire(more)
		if _, denied := errors.AsType[*store.DeniedError](err); !denied {
			t.Errorf("%v, want a denial", err)
		}
	}
	if err := held.Settle(t.Context(), call(name, 9, 1)); err != nil {
		t.Fatal(err)
	}
	buckets.Answered(call(plain, 0))
	if _, err := buckets.Acquire(call(name, 10, 10)); err != nil {
		t.Error(err)
	}
}
