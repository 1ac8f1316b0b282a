package docs_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	templates "github.com/sluice-go/sluice/gen/testdata/golden/templates/out"
	"github.com/sluice-go/sluice/runtime"
	"github.com/sluice-go/sluice/runtime/bucket"
	"github.com/sluice-go/sluice/runtime/limittest"
	"github.com/sluice-go/sluice/runtime/memdynamo"
	"github.com/sluice-go/sluice/runtime/money"
	"github.com/sluice-go/sluice/runtime/store"
)

// answer is quoted in docs/how-to/models.md.
func answer(ctx context.Context, lim *templates.Limiter, key templates.Key, name string, input int64) error {
	model, err := lim.Model.Named(ctx, name) // of each request: it does no I/O while the catalog is remembered
	if err != nil {
		return err // an *UnknownNameError: answer 404
	}
	const most = 2_000
	lease, err := model.Acquire(ctx, key, templates.ModelUsage{Input: input, Output: most}.Cost(model.Prices))
	if err != nil {
		return err
	}
	defer lease.Release(ctx)
	used := templates.ModelUsage{Input: input, Output: replied(name)}
	return lease.Settle(ctx, used.Cost(model.Prices))
}

// replied stands for a model.
func replied(string) int64 { return 500 }

// cheaper is quoted in docs/how-to/models.md.
func cheaper(ctx context.Context, lim *templates.Limiter) error {
	gpt5 := lim.Config.Model.Named("gpt-5")
	keys := gpt5.Kind(templates.Key{}) // all keys, on all plans
	_, revision, err := keys.Get(ctx)
	if err != nil {
		return err
	}
	_, err = keys.Set(ctx, templates.ModelLimits{RPM: &runtime.Rate{Capacity: 10}}, revision)
	return err
}

// TestModels: docs/how-to/models.md says what a call on a name charges, and when a change of the catalog is
// in force.
func TestModels(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := memdynamo.New()
		lim, err := templates.New(limittest.StoreOn(t, engine))
		if err != nil {
			t.Fatal(err)
		}
		limittest.Names(t, engine, lim, templates.Model,
			limittest.Entry{Name: "gpt-5", Prices: []int64{1_000_000, -1, -1, -1}}, limittest.Entry{Name: "mini"},
			limittest.Entry{Name: "gpt-5-2026-08-07", Alias: "gpt-5"},
			limittest.Entry{Name: "big", Numbers: []store.Stored{{At: "key", Limits: rpm(2)}}})
		key := templates.Key{ID: "1", Org: templates.Org{ID: "7"}}
		if err := answer(t.Context(), lim, key, "gpt-5-2026-08-07", 1_000); err != nil {
			t.Fatal(err)
		}
		left := func(name string) templates.ModelCost {
			model, err := lim.Model.Named(t.Context(), name)
			if err != nil {
				t.Fatal(err)
			}
			snap, err := model.Peek(t.Context(), key)
			if err != nil {
				t.Fatal(err)
			}
			return snap.Available
		}
		if got := left("gpt-5"); got.RPM != 59 || got.TPM != 48_500 || got.Month != 4_994*money.Unit/1000 {
			t.Errorf("gpt-5 has %v left", got)
		}
		if got := left("mini"); got.RPM != 60 || got.TPM != 50_000 || got.Month != 4_994*money.Unit/1000 {
			t.Errorf("mini has %v left, want its own rpm and tpm, and what gpt-5 has left of the month", got)
		}
		if got := left("big"); got.RPM != 2 {
			t.Errorf("big has %v left, want the catalog's rpm", got)
		}
		err = answer(t.Context(), lim, key, "invented", 1)
		unknown, ok := errors.AsType[*templates.UnknownNameError](err)
		if !ok || unknown.Name != "invented" {
			t.Errorf("a name that the catalog lacks: %v", err)
		}
		if err := cheaper(t.Context(), lim); err != nil {
			t.Fatal(err)
		}
		fresh := templates.Key{ID: "2", Org: key.Org}
		model, err := lim.Model.Named(t.Context(), "gpt-5")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := model.Acquire(t.Context(), fresh, templates.ModelCost{RPM: 11}); err == nil {
			t.Error("what the catalog has is not in force at once where it was set")
		}
		if _, err := model.Acquire(t.Context(), fresh, templates.ModelCost{RPM: 10}); err != nil {
			t.Error(err)
		}
		if err := lim.Close(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

// rpm returns a limit of rpm alone.
func rpm(n int64) []*bucket.Limit {
	l := bucket.Per(n, time.Minute)
	return []*bucket.Limit{&l, nil, nil, nil}
}

// TestFakeOfName: docs/how-to/models.md says how a handler gets a fake in place of a name.
func TestFakeOfName(t *testing.T) {
	fake := limittest.NewFake(templates.ModelResource{}.Resource)
	var model templates.ModelAcquirer = fake
	fake.Deny(templates.ModelMonth, time.Hour)
	_, err := model.Acquire(t.Context(), templates.Key{ID: "1"}, templates.ModelCost{})
	denied, ok := errors.AsType[*templates.DeniedError](err)
	if !ok || !denied.By(templates.ModelMonth) || denied.By(templates.ModelRPM) {
		t.Errorf("the fake returns %v, want a denial by month", err)
	}
}
