package limittest_test

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluice-go/sluice/internal/test/conformance/named"
	"github.com/sluice-go/sluice/runtime/limittest"
	"github.com/sluice-go/sluice/runtime/memdynamo"
)

// TestNames: names of a test's catalog are served, with their prices. Others are unknown.
func TestNames(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := memdynamo.New()
		lim, err := named.New(limittest.StoreOn(t, engine))
		if err != nil {
			t.Fatal(err)
		}
		limittest.Names(t, engine, lim, named.Model, limittest.Entry{Name: "gpt-5", Prices: []int64{-1, -1, 0}},
			limittest.Entry{Name: "latest", Alias: "gpt-5"})
		model, err := lim.Model.Named(t.Context(), "latest")
		if err != nil {
			t.Fatal(err)
		}
		if want := "input 0.001, cached 100/1M, output 0 USD"; model.Prices.String() != want {
			t.Errorf("prices %v, want %s", model.Prices, want)
		}
		key := named.Key{ID: "1", Org: named.Org{ID: "7"}}
		lease, err := model.Acquire(t.Context(), key, named.ModelUsage{Input: 5}.Cost(model.Prices))
		if err != nil {
			t.Fatal(err)
		}
		lease.Keep(t.Context())

		_, err = lim.Model.Named(t.Context(), "gpt-6")
		if _, unknown := errors.AsType[*named.UnknownNameError](err); !unknown {
			t.Errorf("a name that the catalog lacks: %v", err)
		}
		limittest.Names(t, engine, lim, named.Model, limittest.Entry{Name: "gpt-6"}, limittest.Entry{Name: "gpt-5"})
		time.Sleep(time.Minute + time.Second)
		if _, err := lim.Model.Named(t.Context(), "gpt-6"); err != nil {
			t.Errorf("a name that was added: %v", err)
		}
		if model, err = lim.Model.Named(t.Context(), "gpt-5"); err != nil || model.Prices.String() !=
			"input 0.001, cached 100/1M, output 0.004 USD" {
			t.Errorf("an entry that was replaced has prices %v, %v", model.Prices, err)
		}
	})
}
