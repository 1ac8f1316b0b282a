package dynamo

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluice-go/sluice/internal/test/dynamotest"
	"github.com/sluice-go/sluice/runtime"
	"github.com/sluice-go/sluice/runtime/bucket"
	"github.com/sluice-go/sluice/runtime/dynamo/internal/scheduler"
	"github.com/sluice-go/sluice/runtime/dynamo/operator"
	"github.com/sluice-go/sluice/runtime/memdynamo"
	"github.com/sluice-go/sluice/runtime/store"
)

// TestLazyBehindABusyRoot: a chain takes the lazy settle of its child's bucket along, and is denied, while
// siblings keep the root's queue busy. The settle goes out in time all the same, even if such chains come
// again and again.
func TestLazyBehindABusyRoot(t *testing.T) {
	const trip = 10 * time.Millisecond
	for name, repeats := range map[string]bool{"denied once": false, "denied again and again": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				memory := memdynamo.New()
				memory.Faults().Latency(memdynamo.Uniform(trip, trip))
				e := &engine{client: memory.Client(), ttl: 24 * time.Hour}
				e.table = dynamotest.Table(t, e.client, dynamotest.Streamless(operator.Table))
				_, embeddings := generated(t)
				hour := func(n int64) []bucket.Limit { return []bucket.Limit{bucket.Per(n, time.Hour)} }
				h := e.onBubblesTime(t, e.client, family(embeddings, store.CascadeAtomic, hour(100_000), hour(1000)))
				lease := h.acquire(t, alicesHome, 900)
				ctx, cancel := context.WithCancel(t.Context())
				var calls sync.WaitGroup
				calls.Go(func() {
					for ctx.Err() == nil { // two calls in each write's round trip
						calls.Go(func() {
							_, err := h.at[0].Acquire(ctx, member{"2", "1"}, tokens{1}, runtime.LazySettle(false))
							if err != nil && !errors.Is(err, context.Canceled) {
								t.Error(err)
							}
						})
						time.Sleep(trip / 2) //nolint:forbidigo // in a bubble of testing/synctest
					}
				})
				elapse(5 * trip)
				if err := lease.Settle(t.Context(), tokens{500}); err != nil {
					t.Fatal(err)
				}
				began := time.Now()
				denied := func() {
					if _, err := h.at[0].Acquire(t.Context(), alicesHome, tokens{990}); !isA[*store.DeniedError](err) {
						t.Errorf("%v, want a denial", err)
					}
				}
				denied()
				for tc := int64(900); tc != 500 && time.Since(began) < time.Second; _, tc = e.held(t, "user-1") {
					if repeats {
						denied()
					}
					elapse(trip)
				}
				if took := time.Since(began); took > scheduler.DeferFor+10*trip {
					t.Errorf("settled after %v", took)
				}
				cancel()
				calls.Wait()
				if err := h.Close(t.Context()); err != nil {
					t.Error(err)
				}
			})
		})
	}
}
