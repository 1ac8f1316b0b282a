package override_test

import (
	"errors"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/sluice-go/sluice/runtime/bucket"
	"github.com/sluice-go/sluice/runtime/dynamo/codec"
	"github.com/sluice-go/sluice/runtime/dynamo/internal/override"
	"github.com/sluice-go/sluice/runtime/store"
)

func perMinute(n int64) bucket.Limit { return bucket.Per(n, time.Minute) }

// onPlans is a resource of keys below orgs, which are on plans.
func onPlans() *store.Spec {
	return &store.Spec{
		Resource: "model", Revision: 3, Limits: []string{"rpm", "tpm"},
		Kinds: []store.Kind{
			{Name: "org", Prefix: "org-", Parent: store.NoParent},
			{Name: "key", Prefix: "key-", Parent: 0, Limits: []bucket.Limit{perMinute(60), perMinute(1000)}},
		},
		Plans: &store.Plans{
			Names: []string{"free", "pro"},
			Limits: [][][]bucket.Limit{
				{nil, {{}, perMinute(2000)}},
				{nil, {perMinute(600), {}}},
			},
		},
	}
}

// overrides is what is stored at a level: rpm, then tpm; 0 inherits.
func overrides(version int64, numbers ...int64) *override.Override {
	o := &override.Override{Version: version, Stored: store.Stored{Limits: make([]*bucket.Limit, 2)}}
	for i, n := range numbers {
		if n != 0 {
			l := perMinute(n)
			o.Limits[i] = &l
		}
	}
	return o
}

// plansItem is the item of all plans, with limits by attribute: pro.key.rpm.
func plansItem(ver int64, limits map[string]int64) codec.Item {
	raw := codec.Item{"ver": codec.N(ver)}
	for name, n := range limits {
		l := perMinute(n)
		for field, v := range map[string]int64{"cp": l.Capacity, "bx": l.Burst, "ra": l.Refill, "rp": l.Period} {
			raw["l_"+name+"_"+field] = codec.N(v)
		}
	}
	return raw
}

// TestResolve: the first of five sources that has a limit decides it, and each adds its version.
func TestResolve(t *testing.T) {
	const unit = bucket.RevisionUnit
	spec := onPlans()
	for _, test := range []struct {
		name        string
		own, ofKind *override.Override
		plans       map[string]int64
		on          store.OnPlan
		rpm, tpm    int64
		sum         int64
		planOf      string
		unknown     bool
	}{
		{name: "schema", rpm: 60, tpm: 1000, sum: 100},
		{name: "kind", ofKind: overrides(7, 0, 900), rpm: 60, tpm: 900, sum: 107},
		{name: "never on a plan", on: store.OnPlan{Of: "org-1"}, rpm: 60, tpm: 1000, sum: 100},
		{name: "on none any more", on: store.OnPlan{Of: "org-1", Version: 5}, rpm: 60, tpm: 1000, sum: 105,
			planOf: "org-1"},
		{name: "plan of the schema before the kind", ofKind: overrides(7, 70, 900),
			on: store.OnPlan{Of: "org-1", Name: "pro", Version: 5}, rpm: 600, tpm: 900, sum: 112, planOf: "org-1"},
		{name: "plan of run time before that of the schema", on: store.OnPlan{Of: "org-1", Name: "pro", Version: 5},
			plans: map[string]int64{"pro.key.rpm": 700, "free.key.rpm": 1}, rpm: 700, tpm: 1000, sum: 105,
			planOf: "org-1"},
		{name: "entity before plans", own: overrides(9, 5, 0), plans: map[string]int64{"pro.key.rpm": 700},
			on: store.OnPlan{Of: "org-1", Name: "pro", Version: 5}, rpm: 5, tpm: 1000, sum: 114, planOf: "org-1"},
		{name: "unknown: the most of any plan", on: store.OnPlan{Of: "org-1", Name: "gold", Version: 5},
			rpm: 600, tpm: 2000, sum: 105, planOf: "org-1", unknown: true},
		{name: "unknown: also of what was changed, and of none", ofKind: overrides(7, 900, 0),
			on: store.OnPlan{Of: "org-1", Name: "gold", Version: 5}, plans: map[string]int64{"free.key.tpm": 3000},
			rpm: 900, tpm: 3000, sum: 112, planOf: "org-1", unknown: true},
		{name: "unknown: the entity's own", own: overrides(9, 5, 0),
			on: store.OnPlan{Of: "org-1", Name: "gold", Version: 5}, rpm: 5, tpm: 2000, sum: 114, planOf: "org-1",
			unknown: true},
	} {
		from := &override.Sources{Own: test.own, OfKind: test.ofKind, On: &test.on}
		for _, o := range []**override.Override{&from.Own, &from.OfKind} {
			if *o == nil {
				*o = overrides(0)
			}
		}
		var err error
		if from.Plans, err = override.DecodePlans(spec, plansItem(100, test.plans)); err != nil {
			t.Fatal(err)
		}
		got, err := override.Resolve(spec, 1, from, 0)
		if err != nil {
			t.Errorf("%s: %v", test.name, err)
			continue
		}
		if want := []bucket.Limit{perMinute(test.rpm), perMinute(test.tpm)}; !slices.Equal(got.Limits, want) {
			t.Errorf("%s: %v, want %v", test.name, got.Limits, want)
		}
		if got.Version != 3*unit+test.sum || got.PlanOf != test.planOf || got.UnknownPlan != test.unknown ||
			!got.HasPlans {
			t.Errorf("%s: version %d, plan of %q, unknown %t", test.name, got.Version-3*unit, got.PlanOf,
				got.UnknownPlan)
		}
	}
	spec.Plans = nil
	got, err := override.Resolve(spec, 1, &override.Sources{Own: overrides(9), OfKind: overrides(7)}, 0)
	if err != nil || got.HasPlans || got.Version != 3*unit+16 {
		t.Errorf("without plans: %+v, %v", got, err)
	}
}

func isSetup(err error) bool {
	_, ok := errors.AsType[*store.SetupError](err)
	return ok
}

// TestMalformedPlan: a malformed plan fails the buckets of entities that are on it, and of an unknown one. A
// malformed version fails all.
func TestMalformedPlan(t *testing.T) {
	spec, raw := onPlans(), plansItem(100, map[string]int64{"pro.key.rpm": 700})
	delete(raw, "l_pro.key.rpm_bx")
	plans, err := override.DecodePlans(spec, raw)
	if err != nil {
		t.Fatal(err)
	}
	for plan, fails := range map[string]bool{"": false, "free": false, "pro": true, "gold": true} {
		from := &override.Sources{
			Own: overrides(0), OfKind: overrides(0), Plans: plans,
			On: &store.OnPlan{Of: "org-1", Name: plan, Version: 1},
		}
		_, err := override.Resolve(spec, 1, from, 0)
		if isSetup(err) != fails {
			t.Errorf("on plan %q: %v, want an error: %t", plan, err, fails)
		}
	}
	for _, ver := range []int64{0, override.MaxVersion + 1} {
		if _, err := override.DecodePlans(spec, plansItem(ver, nil)); !isSetup(err) {
			t.Errorf("version %d: %v", ver, err)
		}
	}
	if five := int64(5 * override.MaxVersion); five >= bucket.RevisionUnit {
		t.Error("five versions add up to " + strconv.FormatInt(five, 10) + ", a revision or more")
	}
}
