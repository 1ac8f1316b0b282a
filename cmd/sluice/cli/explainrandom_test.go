package cli_test

import (
	"encoding/json"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/sluice-go/sluice/internal/test/conformance/named"
	"github.com/sluice-go/sluice/internal/test/longform"
	"github.com/sluice-go/sluice/runtime"
	"github.com/sluice-go/sluice/runtime/dynamo"
	"github.com/sluice-go/sluice/runtime/money"
	"github.com/sluice-go/sluice/runtime/redisstore"
	"github.com/sluice-go/sluice/runtime/store"
)

// restate puts random numbers, of some limits or of none, into one of these places.
func restate(
	t *testing.T, dice *rand.Rand, random func(*rand.Rand) named.ModelLimits,
	places ...*runtime.Override[named.ModelLimits],
) {
	t.Helper()
	o := places[dice.IntN(len(places))]
	_, rev, err := o.Get(t.Context())
	if err == nil {
		_, err = o.Set(t.Context(), random(dice), rev)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// rates are random numbers of a key.
func rates(dice *rand.Rand) (numbers named.ModelLimits) {
	rate := func() *runtime.Rate { return &runtime.Rate{Capacity: 2 + dice.Int64N(3_000), Refill: 1} }
	if dice.IntN(2) == 0 {
		numbers.RPM = rate()
	}
	if dice.IntN(2) == 0 {
		numbers.TPM = rate()
	}
	return numbers
}

// budget has a random number of an org.
func budget(dice *rand.Rand) (numbers named.ModelLimits) {
	if dice.IntN(3) > 0 {
		numbers.Month = new(money.Amount(1+dice.IntN(900)) * money.Unit)
	}
	return numbers
}

// idDigits are the ids of entities, each of which has a number.
var idDigits = regexp.MustCompile(`[0-9]+`)

// TestExplainIsWhatCallsGet: whatever is set where, explain says the numbers that the next call's buckets
// have. Control: many places decide them, not the schema alone.
func TestExplainIsWhatCallsGet(t *testing.T) {
	sequential(t)
	s, table := newSession(t, templates)
	r := newRedis(t, templates)
	file := filepath.Join(t.TempDir(), "catalog.yaml")
	const names = "model: {gpt-5: {aliases: [dated]}, old: {buckets: gpt-4}}\n"
	if err := os.WriteFile(file, []byte(names), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, at := range map[string]struct {
		store func() store.Store
		run   func(args ...string) (int, string, string)
	}{
		"table": {func() store.Store { return dynamo.New(s.client, table) },
			func(args ...string) (int, string, string) {
				return sluice(t, start, slices.Concat(args, s.flags)...)
			}},
		"redis": {func() store.Store { return redisstore.New(r.client) },
			func(args ...string) (int, string, string) {
				return command(t.Context(), slices.Concat(args, r.flags)...)
			}},
	} {
		t.Run(name, func(t *testing.T) {
			seed := rand.Uint64()
			t.Logf("seed %d", seed)
			dice, decided := rand.New(rand.NewPCG(seed, 0)), map[string]int{}
			lim := func() *named.Limiter {
				lim, err := named.New(at.store())
				if err != nil {
					t.Fatal(err)
				}
				return lim
			}
			first := lim()
			defer func() { _ = first.Close(t.Context()) }()
			if code, _, errs := at.run("catalog", "apply", file); code != 0 {
				t.Fatal(errs)
			}
			for i := range longform.Count(t, "edits", 200, 30) {
				key := named.Key{ID: strconv.Itoa(i), Org: named.Org{ID: strconv.Itoa(i)}}
				name := []string{"gpt-5", "dated", "old"}[dice.IntN(3)]
				if err := first.Entities().Put(t.Context(), key); err != nil {
					t.Fatal(err)
				}
				plan := named.Plan(dice.IntN(3))
				if err := first.SetPlan(t.Context(), key.Org, plan); err != nil {
					t.Fatal(err)
				}
				of, pro, enterprise := first.Config.Model, named.PlanPro, named.PlanEnterprise
				for range 4 {
					restate(t, dice, rates, of.Named(name).Entity(key), of.Entity(key), of.Named(name).Kind(key),
						of.Named(name).Plan(pro, key), of.Named(name).Plan(enterprise, key), of.Plan(pro, key),
						of.Plan(enterprise, key), of.Kind(key))
					restate(t, dice, budget, of.Entity(key.Org), of.Plan(pro, key.Org), of.Plan(enterprise, key.Org),
						of.Kind(key.Org))
				}
				next := lim() // remembers nothing of before the edit
				model, err := next.Model.Named(t.Context(), name)
				if err != nil {
					t.Fatal(err)
				}
				lease, err := model.Acquire(t.Context(), key, named.ModelCost{TPM: 1, Month: 1})
				if err != nil {
					t.Fatal(err)
				}
				_ = next.Close(t.Context())
				said := map[string]explained{} // by entity: one explanation has all of its limits
				for _, b := range lease.Balances() {
					e, known := said[b.Entity]
					if !known {
						resource := "model/" + name
						if strings.HasPrefix(b.Entity, "org-") {
							resource = "model"
						}
						code, out, errs := at.run("override", "explain", b.Entity, resource, "--json")
						if err := json.Unmarshal([]byte(out), &e); code != 0 || err != nil {
							t.Fatalf("exit code %d, %v: %s%s", code, err, out, errs)
						}
						said[b.Entity] = e
					}
					origins, inForce := e.origins(b.Limit)
					if inForce != b.Params.Capacity || len(e.Buckets) != 1 || !e.Buckets[0].InForce {
						t.Fatalf("seed %d, edit %d: %s of %s on %s is %d of %v, and the call's bucket has %d", seed, i,
							b.Limit, b.Entity, name, inForce, origins, b.Params.Capacity)
					}
					at := slices.IndexFunc(origins, func(at string) bool { return strings.HasPrefix(at, "[") })
					decided[idDigits.ReplaceAllString(origins[at], "")]++
				}
			}
			t.Logf("limits decided by each place: %v", decided)
			if len(decided) < 8 { // of 17; all, and each at least five times, in the long form
				t.Errorf("%d places decided all limits: this test tests too little", len(decided))
			}
		})
	}
}
