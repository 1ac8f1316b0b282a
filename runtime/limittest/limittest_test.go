package limittest_test

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	limits "github.com/sluice-go/sluice/generated"
	"github.com/sluice-go/sluice/runtime"
	"github.com/sluice-go/sluice/runtime/limittest"
	"github.com/sluice-go/sluice/runtime/memdynamo"
	"github.com/sluice-go/sluice/runtime/store"
)

var user = limits.User{ID: "1", Project: limits.Project{ID: "1", Org: limits.Org{ID: "1"}}}

// open returns a limiter on a store.
func open(t testing.TB, backend store.Store) *limits.Limiter {
	t.Helper()
	lim, err := limits.New(backend)
	if err != nil {
		t.Fatal(err)
	}
	return lim
}

// acquire fails the test if it is not admitted.
func acquire(t testing.TB, gpt4 limits.GPT4Acquirer, entity limits.GPT4Entity,
	cost limits.GPT4Cost) *limits.GPT4Lease {
	t.Helper()
	lease, err := gpt4.Acquire(t.Context(), entity, cost)
	if err != nil {
		t.Fatal(err)
	}
	return lease
}

// The real thing, in the process, on virtual time.
func TestDeniedThenRefilled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lim, err := limits.New(limittest.Store(t))
		if err != nil {
			t.Fatal(err)
		}
		if err := lim.Check(t.Context()); err != nil {
			t.Error(err)
		}
		cost := limits.GPT4Cost{TPM: 10_000}
		if _, err := lim.GPT4.Acquire(t.Context(), user, cost); err != nil {
			t.Fatal(err)
		}
		_, err = lim.GPT4.Acquire(t.Context(), user, cost)
		denied, ok := errors.AsType[*limits.DeniedError](err)
		if !ok || !denied.By(limits.GPT4TPM) {
			t.Fatal(err)
		}
		time.Sleep(denied.RetryAfter)
		if _, err := lim.GPT4.Acquire(t.Context(), user, cost); err != nil {
			t.Fatal(err)
		}
	})
}

// TestStoreTakesNoTime: creating the table sleeps nowhere.
func TestStoreTakesNoTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		limittest.Store(t)
		if took := time.Since(began); took != 0 {
			t.Errorf("it took %v of virtual time", took)
		}
	})
}

// TestStoresAreApart: each Store has an engine of its own; two of StoreOn share one.
func TestStoresAreApart(t *testing.T) {
	engine := memdynamo.New()
	shared, again, apart := open(t, limittest.StoreOn(t, engine)), open(t, limittest.StoreOn(t, engine)),
		open(t, limittest.Store(t))
	acquire(t, shared.GPT4, user, limits.GPT4Cost{TPM: 15_000})
	_, err := again.GPT4.Acquire(t.Context(), user, limits.GPT4Cost{TPM: 5_000})
	if _, denied := errors.AsType[*limits.DeniedError](err); !denied {
		t.Errorf("the second process on one engine: %v, want it denied", err)
	}
	acquire(t, apart.GPT4, user, limits.GPT4Cost{TPM: 15_000})
	if engine.Consumed().Table(limittest.Table).Applied.Write == 0 {
		t.Error("the engine's meter shows nothing")
	}
}

// TestFaultsReachTheStore: an engine that is down is an unavailable store, and no charge.
func TestFaultsReachTheStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := memdynamo.New()
		lim := open(t, limittest.StoreOn(t, engine))
		engine.Faults().Down(true)
		_, err := lim.GPT4.Acquire(t.Context(), user, limits.GPT4Cost{TPM: 15_000},
			runtime.OnUnavailable(store.Deny))
		if _, ok := errors.AsType[*limits.UnavailableError](err); !ok {
			t.Errorf("down: %v", err)
		}
		engine.Faults().Clear()
		acquire(t, lim.GPT4, user, limits.GPT4Cost{TPM: 15_000})
	})
}

// The reply to the third transaction is lost. The limiter sends it again under its token, learns that it was
// applied, and has charged once. The bill is four transactions of two items, and the keys of two new buckets
// in an index.
func TestLostReply(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := memdynamo.New()
		engine.Faults().Script(func(r memdynamo.Request) memdynamo.Fault {
			if r.Operation == "TransactWriteItems" && r.Number == 3 {
				return memdynamo.LoseReply
			}
			return memdynamo.None
		})
		lim, err := limits.New(limittest.StoreOn(t, engine))
		var lease *limits.GPT4Lease
		for n := 0; err == nil && n < 4; n++ {
			lease, err = lim.GPT4.Acquire(t.Context(), user, limits.GPT4Cost{TPM: 500})
		}
		billed := engine.Consumed().Tables[limittest.Table]["TransactWriteItems"]
		if err != nil || lease.Remaining().TPM < 13_000 || billed.Applied.Write != 4*2*2+2*2 ||
			billed.Applied.Read == 0 {
			t.Errorf("%v; of 15,000 tokens %d are left; billed %+v", err, lease.Remaining().TPM, billed)
		}
	})
}

// TestBubbleEndsWithWorkInTheBackground: a charge of unknown outcome is given back while the test ends.
func TestBubbleEndsWithWorkInTheBackground(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := memdynamo.New()
		lim := open(t, limittest.StoreOn(t, engine))
		acquire(t, lim.GPT4, user, limits.GPT4Cost{TPM: 1_000})
		engine.Faults().Latency(memdynamo.Constant(2 * time.Second))
		_, err := lim.GPT4.Acquire(t.Context(), user, limits.GPT4Cost{TPM: 1_000},
			runtime.OnUnavailable(store.Deny))
		if _, ok := errors.AsType[*limits.UnavailableError](err); !ok {
			t.Errorf("it takes four seconds, which is too long: %v", err)
		}
	})
}
