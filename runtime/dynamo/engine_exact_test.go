package dynamo

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	limits "github.com/sluice-go/sluice/generated"
	"github.com/sluice-go/sluice/runtime/bucket"
	"github.com/sluice-go/sluice/runtime/store"
)

// TestRetryAfterIsExact drains a bucket and asks for several costs, one between its capacity and its burst.
// Each is admitted at the instant that the denial names, and not a millisecond earlier. Numbers are such that
// the rate has no whole millitokens in a millisecond.
func TestRetryAfterIsExact(t *testing.T) {
	_, embeddings := generated(t)
	for _, limit := range []bucket.Limit{
		bucket.Per(100, time.Minute).WithBurst(150),
		bucket.Per(7, 11*time.Second).WithBurst(100),
		bucket.Per(10, time.Hour).WithBurst(15),
		bucket.Per(1000, time.Second).WithBurst(1500),
	} {
		for _, cost := range []int64{1, limit.Capacity / bucket.Milli,
			(limit.Capacity/bucket.Milli + limit.Burst/bucket.Milli) / 2, limit.Burst / bucket.Milli} {
			t.Run(fmt.Sprintf("%d of %d per %dms", cost, limit.Burst/bucket.Milli, limit.Period), func(t *testing.T) {
				e := newEngine(t)
				def := withNumbers(embeddings, 1, limit)
				d := e.desk(t, e.client, def)
				const start = 12_345_679 // somewhere within a period
				e.clock.set(start)
				if _, err := d.Acquire(t.Context(), "1", tokens{limit.Burst / bucket.Milli}); err != nil {
					t.Fatalf("the whole burst, on a missing bucket: %v", err)
				}
				for _, wait := range []int64{0, 1, 17} { // the same instant, whenever one asks
					e.clock.set(start + wait)
					_, err := d.Acquire(t.Context(), "1", tokens{cost})
					denied, ok := errors.AsType[*store.DeniedError](err)
					if !ok {
						if cost > 1 || limit.Period > 1000 {
							t.Fatalf("on a drained bucket: %v", err)
						}
						return // 1 of 1000 a second is there after 1 ms
					}
					if wait < 17 {
						continue
					}
					at := start + wait + denied.RetryAfter.Milliseconds()
					e.clock.set(at - 1)
					_, err = d.Acquire(t.Context(), "1", tokens{cost})
					if again, ok := errors.AsType[*store.DeniedError](err); !ok || again.RetryAfter != time.Millisecond {
						t.Errorf("1 ms early: %v, want a denial for 1 ms", err)
					}
					e.clock.set(at)
					if _, err := d.Acquire(t.Context(), "1", tokens{cost}); err != nil {
						t.Errorf("at its retry after: %v", err)
					}
				}
			})
		}
	}
}

// TestDenied holds the whole of a denial to what the stored bucket says.
func TestDenied(t *testing.T) {
	e := newEngine(t)
	e.put(t, row{CV: 1, Op: "before", Limits: holds(-1000, 101_000, 10_999_999, 0)}.Item(t))
	process := e.demo(t, e.client)
	_, err := process.GPT4.Acquire(t.Context(), alice, limits.GPT4Cost{RPM: 2, TPM: 14_000})
	denied, ok := errors.AsType[*store.DeniedError](err)
	if !ok {
		t.Fatalf("got %v, want a denial", err)
	}
	wantErr(t, err, "denied gpt-4 user-1 tpm 10999/14000 18.001s")
	both := []store.Refusal{
		{
			Resource: "gpt-4", Entity: "user-1", Limit: "rpm", Requested: 2, Available: 0,
			RetryAfter: 1800 * time.Millisecond,
		},
		{
			Resource: "gpt-4", Entity: "user-1", Limit: "tpm", Requested: 14000, Available: 10999,
			RetryAfter: 18_001 * time.Millisecond,
		},
	}
	if !slices.Equal(denied.Refusals, both) {
		t.Errorf("got  %+v\nwant %+v", denied.Refusals, both)
	}
	process.calls(t, "read found")
	_, err = process.GPT4.Acquire(t.Context(), alice, limits.GPT4Cost{RPM: 101})
	wantErr(t, err, "exceeds burst gpt-4 user-1 rpm 101/100")
	e.stored(t, row{CV: 1, Op: "before", Limits: holds(-1000, 101_000, 10_999_999, 0)})
}
