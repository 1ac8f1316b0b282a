package runtime_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/sluice-go/sluice/runtime"
	"github.com/sluice-go/sluice/runtime/bucket"
	"github.com/sluice-go/sluice/runtime/store"
)

// plan is what generated code would define: pro, and free.
type plan uint8

const (
	pro plan = iota + 1
	free
)

// planned is gpt-4 for users of teams of projects of orgs, which are put on plans. Pro restates rpm.
func planned() definition {
	def := tree(together, ofUser)
	raised := make([]bucket.Limit, len(def.spec.Limits))
	raised[0] = *per(600)
	def.spec.Plans = &store.Plans{
		Kind: ofOrg, Names: []string{"pro", "free"},
		Limits: [][][]bucket.Limit{{ofUser: raised, ofOrg: nil}, make([][]bucket.Limit, 4)},
	}
	return def
}

type plannedLimiter struct {
	*resource

	plans  *runtime.Plans[links, plan]
	config *runtime.Config[links, cost, numbers]
}

func openPlanned(t *testing.T, backend *fake) plannedLimiter {
	t.Helper()
	b := runtime.NewBuilder(backend, quiet())
	l := plannedLimiter{
		resource: runtime.Bind[entity](b, planned(), toVector, fromVector),
		plans:    runtime.BindPlans[links, plan](b, "pro", "free"),
		config:   runtime.BindConfig[links](b, planned(), toVector, toLimits, fromLimits),
	}
	if _, err := b.Limiter(); err != nil {
		t.Fatal(err)
	}
	return l
}

// org4 is an entity that is put on plans.
func org4() links { return links{{Kind: ofOrg, ID: "4"}} }

func TestPlans(t *testing.T) {
	stored := &members{known: family()}
	l := openPlanned(t, &fake{members: stored})
	ctx := t.Context()
	for _, want := range []plan{0, free, pro, 0} {
		equal(t, "error", l.plans.Set(ctx, org4(), want), nil)
		got, err := l.plans.Of(ctx, org4())
		equal(t, "error", err, nil)
		equal(t, "plan", got, want)
	}
	asked := stored.asked
	err := l.plans.Set(ctx, org4(), 3)
	if invalid, ok := errors.AsType[*runtime.InvalidError](err); !ok || invalid.Field != "plan" {
		t.Errorf("plan 3 of 2: %v, want an InvalidError of the plan", err)
	}
	err = l.plans.Set(ctx, links{{Kind: ofOrg, ID: "#"}}, pro)
	if _, ok := errors.AsType[*runtime.InvalidError](err); !ok {
		t.Errorf("a bad id: %v, want an InvalidError", err)
	}
	equal(t, "calls of the store", stored.asked, asked)

	stored.known["org-4"] = store.Member{Plan: "gold", PlanVersion: 9}
	_, err = l.plans.Of(ctx, org4())
	unknown, ok := errors.AsType[*runtime.UnknownPlanError](err)
	if !ok || *unknown != (runtime.UnknownPlanError{Entity: "org-4", Plan: "gold"}) {
		t.Errorf("a plan of a newer program: %v", err)
	}
}

// TestPlanOfCall: each bucket of a call has the plan of the org above it, given or looked up.
func TestPlanOfCall(t *testing.T) {
	known := family()
	known["org-4"] = store.Member{Entity: "org-4", Plan: "pro", PlanVersion: 7}
	for name, entity := range map[string]links{
		"given": typed("1", "2", "3", "4"), "looked up": lookedUp(ofUser, "1"),
	} {
		backend := &fake{known: known}
		l := openPlanned(t, backend)
		if _, err := l.Acquire(t.Context(), entity, cost{RPM: 1}); err != nil {
			t.Fatal(name, err)
		}
		want := store.OnPlan{Of: "org-4", Name: "pro", Version: 7}
		if name == "looked up" {
			want.From = "user-1"
		}
		equal(t, name, backend.plans["user-1"], want)
	}
	l := openPlanned(t, &fake{known: known})
	_, err := l.Acquire(t.Context(), typed("1", "2", "3", ""), cost{RPM: 1})
	invalid, ok := errors.AsType[*runtime.InvalidError](err)
	if !ok || invalid.Field != "id of org" {
		t.Errorf("a user without an org: %v, want an InvalidError of the org's id", err)
	}
}

func TestPlanOverride(t *testing.T) {
	known := family()
	known["org-4"] = store.Member{Entity: "org-4", Plan: "pro", PlanVersion: 7}
	stored := &overrides{listed: []store.Stored{
		{At: "pro.user", Limits: []*bucket.Limit{nil, per(9)}},
		{At: "user", Limits: []*bucket.Limit{per(70), per(8)}},
	}}
	l := openPlanned(t, &fake{overrides: stored, members: &members{known: known}})
	explained, err := l.config.Explain(t.Context(), typed("1", "2", "3", "4"))
	equal(t, "error", err, nil)
	got := ""
	for _, e := range explained {
		got += fmt.Sprint(" ", e.At, e.Wins)
	}
	equal(t, "explained", got, " user-1[] pro.user[tpm] schema.pro.user[rpm] user[] schema[]")

	user := links{{Kind: ofUser}}
	rev, err := runtime.PlanOverride(l.config, "free", user).Set(t.Context(), numbers{RPM: rate(5)}, "")
	equal(t, "error", err, nil)
	limits, at, err := runtime.PlanOverride(l.config, "free", user).Get(t.Context())
	equal(t, "error", err, nil)
	equal(t, "limits", fmt.Sprint(*limits.RPM, limits.TPM, at), fmt.Sprint(*rate(5), nil, rev))

	_, _, err = runtime.PlanOverride(l.config, "gold", user).Get(t.Context())
	if invalid, ok := errors.AsType[*runtime.InvalidError](err); !ok || invalid.Field != "plan" {
		t.Errorf("plan gold: %v, want an InvalidError of the plan", err)
	}
}
