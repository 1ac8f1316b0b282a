package dynamo

import (
	"context"
	"net/http"
	"testing"
	"time"

	"github.com/sluice-go/sluice/runtime"
	"github.com/sluice-go/sluice/runtime/bucket"
	"github.com/sluice-go/sluice/runtime/store"
)

// Callers who have their answer while the outcome of their write is unknown must not weigh on the others in
// it.

// TestAnsweredDoesNotHoldTheQueue: an acquire is refused for good, since its limit was lowered meanwhile. The
// settle that was in the same write is served, and does not wait for a decision on the acquire.
func TestAnsweredDoesNotHoldTheQueue(t *testing.T) {
	crowded(t, 40, []int64{10}, func(t *testing.T, c *crowd, held []*runtime.Lease[tokens]) {
		t.Helper()
		_, embeddings := generated(t)
		operators := c.manager(withNumbers(embeddings, 1, bucket.Per(100, time.Hour)), 0)
		c.wire.expect(pass, func(*network, func() (*http.Response, error)) (*http.Response, error) {
			operators.set(t, "user-1", per(20))
			c.clock.set(700_000)
			return nil, errWire
		})
		first, a, up := c.ask(5), c.ask(30), c.settle(held[0], 20)
		c.end()
		c.admitted(first, up)
		if !isA[*store.CostTooLargeError](a.err) {
			t.Errorf("%v, want a CostTooLargeError", a.err)
		}
	})
}

// TestAnsweredTakesNothing: an acquire is denied, and tokens come back. The next attempt gives them to the
// one who still waits.
func TestAnsweredTakesNothing(t *testing.T) {
	crowded(t, 55, nil, func(t *testing.T, c *crowd, _ []*runtime.Lease[tokens]) {
		t.Helper()
		_, embeddings := generated(t)
		other := c.engine.desk(t, c.client, withNumbers(embeddings, 1, bucket.Per(100, time.Hour)))
		var taken *runtime.Lease[tokens]
		c.wire.expect(pass, loseRequest, pass,
			func(w *network, apply func() (*http.Response, error)) (*http.Response, error) {
				if err := taken.Settle(context.WithoutCancel(t.Context()), tokens{10}); err != nil {
					t.Error(err)
				}
				return reject("ThrottlingException", "slow down")(w, apply)
			})
		first, a, b := c.ask(5), c.ask(30), c.ask(20)
		c.pass()
		var err error
		if taken, err = other.Acquire(t.Context(), "1", tokens{25}); err != nil {
			t.Fatal(err)
		}
		c.end()
		c.admitted(first, b)
		c.denied(a)
		c.left(55 - 5 - 10 - 20)
	})
}
