package docs_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	plans "github.com/sluice-go/sluice/gen/testdata/golden/plans/out"
	"github.com/sluice-go/sluice/runtime"
	"github.com/sluice-go/sluice/runtime/limittest"
	"github.com/sluice-go/sluice/runtime/money"
)

// buy is quoted in docs/how-to/plans.md.
func buy(ctx context.Context, lim *plans.Limiter, customer, bought string) error {
	plan, err := plans.ParsePlan(bought) // an *InvalidError for a plan that limits.yaml does not have
	if err != nil {
		return err
	}
	return lim.SetPlan(ctx, plans.Org{ID: customer}, plan)
}

// cancel is quoted in docs/how-to/plans.md.
func cancel(ctx context.Context, lim *plans.Limiter, customer string) (was plans.Plan, err error) {
	org := plans.Org{ID: customer}
	if was, err = lim.PlanOf(ctx, org); err != nil {
		return was, err
	}
	return was, lim.SetPlan(ctx, org, 0) // on no plan
}

// raise is quoted in docs/how-to/plans.md.
func raise(ctx context.Context, lim *plans.Limiter) error {
	pro := lim.Config.Model.Plan(plans.PlanPro, plans.Key{}) // all keys on pro
	_, revision, err := pro.Get(ctx)
	if err != nil {
		return err
	}
	_, err = pro.Set(ctx, plans.ModelLimits{RPM: &runtime.Rate{Capacity: 900}}, revision)
	return err
}

// TestPlans: docs/how-to/plans.md says what a plan changes, and when.
func TestPlans(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := limittest.Store(t)
		lim, err := plans.New(store)
		if err != nil {
			t.Fatal(err)
		}
		other, err := plans.New(store)
		if err != nil {
			t.Fatal(err)
		}
		acme := plans.Org{ID: "acme"}
		key := plans.Key{ID: "1", Team: plans.Team{ID: "a", Org: acme}}
		take := func(of *plans.Limiter, who plans.ModelEntity, cost plans.ModelCost) error {
			lease, err := of.Model.Acquire(t.Context(), who, cost)
			if err == nil {
				lease.Keep(t.Context())
			}
			return err
		}
		spend := func(of *plans.Limiter, amount money.Amount) error {
			return take(of, acme, plans.ModelCost{Month: amount})
		}
		denied := func(err error) bool {
			_, is := errors.AsType[*plans.DeniedError](err)
			return is
		}
		if err := errors.Join(spend(lim, 4*money.Unit), spend(other, money.Unit)); err != nil {
			t.Fatal(err)
		}
		if err := spend(lim, money.Unit); !denied(err) {
			t.Errorf("a month of 5 USD that are spent: %v", err)
		}
		if err := buy(t.Context(), lim, "acme", "pro"); err != nil {
			t.Fatal(err)
		}
		if err := spend(lim, 195*money.Unit); err != nil {
			t.Errorf("the rest of 200 USD, at once: %v", err)
		}
		if err := spend(lim, money.Unit); !denied(err) {
			t.Errorf("a month of 200 USD that are spent: %v", err)
		}
		if err := take(lim, key, plans.ModelCost{RPM: 900}); err != nil {
			t.Errorf("a key follows its org: %v", err)
		}
		time.Sleep(time.Minute + time.Second) //nolint:forbidigo // in a bubble of testing/synctest
		if err := spend(other, money.Unit); !denied(err) {
			t.Errorf("in another process: %v", err)
		}
		b := plans.Team{ID: "b", Org: acme}
		if _, err := other.API.Acquire(t.Context(), b, plans.APICost{Day: 5_000, RPS: 1}); err != nil {
			t.Errorf("in another process, a minute later: %v", err)
		}

		if err := raise(t.Context(), lim); err != nil {
			t.Fatal(err)
		}
		fresh := plans.Key{ID: "2", Team: key.Team}
		if err := take(lim, fresh, plans.ModelCost{RPM: 900}); err != nil {
			t.Errorf("a key on pro, whose numbers are raised: %v", err)
		}

		if was, err := cancel(t.Context(), lim, "acme"); was != plans.PlanPro || err != nil {
			t.Errorf("it was on %v, %v", was, err)
		}
		if plan, err := lim.PlanOf(t.Context(), acme); plan != 0 || err != nil {
			t.Errorf("it is on %v, %v", plan, err)
		}
		if _, is := errors.AsType[*plans.InvalidError](buy(t.Context(), lim, "acme", "gold")); !is {
			t.Error("a plan that limits.yaml does not have can be bought")
		}
		if err := take(lim, plans.Key{ID: "1"}, plans.ModelCost{TPM: 1}); err == nil {
			t.Error("a key without its org is served")
		}
	})
}
