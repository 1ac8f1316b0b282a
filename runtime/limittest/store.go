package limittest

import (
	"context"
	"testing"

	"github.com/sluice-go/sluice/runtime/dynamo"
	"github.com/sluice-go/sluice/runtime/dynamo/operator"
	"github.com/sluice-go/sluice/runtime/memdynamo"
)

// Table is the name of the table that Store and StoreOn create.
const Table = "rate_limits"

// Store returns a store on a fresh table, in an engine of its own, which goes with the test:
//
//	lim, err := limits.New(limittest.Store(t))
//
// There is nothing to close: the test's end waits for what Limiters on it still do in the background. But in
// a bubble of testing/synctest, a test ends its leases that hold slots, or closes their Limiter.
func Store(t testing.TB, opts ...memdynamo.Option) *dynamo.Store {
	t.Helper()
	return StoreOn(t, memdynamo.New(opts...))
}

// StoreOn returns a store on an engine of the test's, which can break it, and read its meter and its items:
//
//	engine := memdynamo.New()
//	lim, err := limits.New(limittest.StoreOn(t, engine))
//	…
//	engine.Faults().LoseReplies(0.1)
//
// The table is created if it is not there: a second store on one engine stands for a second process with the
// same limits. A test that gives the engine a clock gives its Limiter the same, by runtime.WithClock.
func StoreOn(t testing.TB, engine *memdynamo.Engine) *dynamo.Store {
	t.Helper()
	client := engine.Client()
	if _, err := operator.CreateTable(t.Context(), client, Table); err != nil {
		t.Fatalf("limittest: %v", err)
	}
	store := dynamo.New(client, Table)
	// in a bubble time stands still once this is over, and nothing may be left that waits for it
	t.Cleanup(func() {
		if err := store.Wait(context.WithoutCancel(t.Context())); err != nil {
			t.Errorf("limittest: %v", err)
		}
	})
	return store
}
