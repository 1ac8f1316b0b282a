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
