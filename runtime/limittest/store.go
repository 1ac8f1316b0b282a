package limittest

import (
	"testing"

	"github.com/sluice-go/sluice/runtime/dynamo"
	"github.com/sluice-go/sluice/runtime/memdynamo"
)

// Table is the name of the table that Store and StoreOn create.
const Table = "rate_limits"

// Store returns a store on a fresh table, in an engine of its own, which goes with the test:
//
//	lim, err := limits.New(limittest.Store(t))
//
// There is nothing to close. Background work of a Limiter, if there is any, ends within its SettleTimeout.
func Store(t testing.TB, opts ...memdynamo.Option) *dynamo.Store {
	t.Helper()
	return StoreOn(t, memdynamo.New(opts...))
}

// StoreOn returns a store on an engine of the test's, which can break it, and read its meter and its items. The table is
// created if it is not there: a second store on one engine stands for a second process with the same limits.
func StoreOn(t testing.TB, engine *memdynamo.Engine) *dynamo.Store {
	t.Helper()
	client := engine.Client()
	if _, err := dynamo.CreateTable(t.Context(), client, Table); err != nil {
		t.Fatalf("limittest: %v", err)
	}
	return dynamo.New(client, Table)
}
