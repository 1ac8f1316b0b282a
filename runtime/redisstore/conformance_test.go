package redisstore_test

import (
	"context"
	"testing"

	"github.com/sluice-go/sluice/internal/test/conformance"
	"github.com/sluice-go/sluice/internal/test/redistest"
	"github.com/sluice-go/sluice/runtime/bucket"
	"github.com/sluice-go/sluice/runtime/redisstore"
)

// TestConformance runs the suite of all stores.
func TestConformance(t *testing.T) {
	conformance.Run(t, func(t testing.TB) conformance.Store {
		t.Helper()
		return conformant(t, redistest.New(t))
	})
}

// TestConformanceOnCluster runs it where keys are on several nodes.
func TestConformanceOnCluster(t *testing.T) {
	cluster := redistest.StartCluster(t)
	conformance.Run(t, func(t testing.TB) conformance.Store {
		t.Helper()
		store := conformant(t, cluster.New(t))
		store.Rooted = true
		return store
	})
}

// TestFailOver runs it where a server crashes, and another one takes its place.
func TestFailOver(t *testing.T) {
	server := redistest.StartServer(t)
	conformance.FailOver(t, conformant(t, server.New()), server.Restart)
}

// conformant is a store on r.
func conformant(t testing.TB, r *redistest.Redis) conformance.Store {
	t.Helper()
	return conformance.Store{
		Store: redisstore.New(r.Client, redisstore.Prefix(r.Prefix)),
		Clock: r, Host: r, Advance: r.Advance, Server: redistest.OnServer(t),
		Decided:   func() int64 { return r.Now().UnixMilli() },
		Available: func(b bucket.Balance, _ int64) int64 { return b.Tokens },
		Slack:     1,
		Break:     r.Break, Repair: r.Repair,
		Disturb: func() { r.Client.ScriptFlush(context.Background()) }, // as a fail-over does
	}
}
