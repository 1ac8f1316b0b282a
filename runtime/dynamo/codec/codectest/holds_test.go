package codectest

import (
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"

	inflight "github.com/sluice-go/sluice/gen/testdata/golden/inflight/out"
	"github.com/sluice-go/sluice/internal/test/definitions"
	"github.com/sluice-go/sluice/runtime/bucket"
	"github.com/sluice-go/sluice/runtime/dynamo/codec"
	"github.com/sluice-go/sluice/runtime/store"
)

// calls is a generated resource with a limit that refills, one with windows and holds, and one in flight.
func calls(t *testing.T) codec.Resource {
	t.Helper()
	all, err := definitions.ForDynamo(inflight.New)
	if err != nil || all[inflight.Calls] == nil {
		t.Fatalf("no calls among the resources: %v", err)
	}
	return all[inflight.Calls]
}

// faultsOfCalls returns the errors of each check.
func faultsOfCalls(r codec.Resource) map[string]error {
	found := make(map[string]error)
	kind := slices.IndexFunc(r.Spec().Kinds, func(k store.Kind) bool { return k.Name == "user" })
	var b inflight.CallsBucket
	for _, check := range newCase(r, kind, &b, []*bucket.Balance{&b.RPM, &b.Month, &b.Parallel}).checks() {
		if err := errors.Join(check.run()...); err != nil {
			found[check.name] = err
		}
	}
	return found
}

// TestHolds: a generated resource that counts holds has no fault, and each fault in what it counts is found.
func TestHolds(t *testing.T) {
	sound := calls(t)
	if found := faultsOfCalls(sound); len(found) > 0 {
		t.Error(found)
	}
	drop := func(clause string) func(*codec.Write) {
		return func(w *codec.Write) {
			if !strings.Contains(w.Cond+w.Update, clause) {
				t.Errorf("there is no %s to drop in %s and %s", clause, w.Update, w.Cond)
			}
			w.Cond, w.Update = strings.Replace(w.Cond, clause, "", 1), strings.Replace(w.Update, clause, "", 1)
		}
	}
	give := func(placeholder string, v int64) func(*codec.Write) {
		return func(w *codec.Write) { w.Values[placeholder] = codec.N(v) }
	}
	for name, tc := range map[string]struct {
		fault codec.Resource
		check string
	}{
		"a sweep by an old image": {
			altered{sound, "Normal", drop("\nAND b_parallel_e = :parallel_e0")}, "holds",
		},
		"a sweep of a cell that is not as seen": {
			altered{sound, "Normal", drop("\nAND b_parallel_h0 BETWEEN :parallel_h0lo AND :parallel_h0hi")}, "holds",
		},
		"a sweep that stores no epoch": {altered{sound, "Normal", drop(", b_month_e = :month_e")}, "holds"},
		"a take into any epoch": {
			altered{sound, "Retry", drop("\nAND b_parallel_e BETWEEN :parallel_e0 AND :parallel_e1")}, "holds",
		},
		"a return out of any epoch": {
			altered{sound, "Adjust", drop(" AND b_month_e BETWEEN :month_e0 AND :month_e1")}, "holds",
		},
		"a return that is not counted": {altered{sound, "Adjust", drop(", b_parallel_h1 :parallel_d1")}, "holds"},
		"a take that is not counted":   {altered{sound, "Retry", drop(", b_month_h0 :month_d0")}, "holds"},
		"a reshape by an old image": {
			altered{sound, "Reshape", drop(" OR b_parallel_e = :parallel_e0")}, "holds",
		},
		"a reshape that begins no cell": {
			altered{sound, "Reshape", drop(", b_parallel_h0 :parallel_d0")}, "holds",
		},
		"a retry that stores an epoch": {altered{sound, "Retry", func(w *codec.Write) {
			w.Update = strings.Replace(w.Update, "SET ", "SET b_month_e = :month_e, ", 1)
		}}, "holds"},
		"cells in the wrong order":       {altered{sound, "Normal", give(":month_d0", 31)}, "holds"},
		"bounds of another cell":         {altered{sound, "Normal", give(":parallel_h1lo", 42)}, "holds"},
		"the epoch to store as a guard":  {altered{sound, "Normal", give(":month_e0", 101)}, "holds"},
		"bounds of an epoch, swapped":    {altered{sound, "Adjust", give(":month_e1", 81)}, "holds"},
		"a return of the cost as such":   {altered{sound, "Adjust", give(":month_net", -1)}, "holds"},
		"an item without its epoch":      {broken{Resource: sound, create: without("b_month_e")}, "image"},
		"an item without a cell":         {broken{Resource: sound, create: without("b_parallel_h1")}, "image"},
		"balances without their holds":   {broken{Resource: sound, balances: clearHolds}, "balances"},
		"an image without what it holds": {broken{Resource: sound, decode: clearHolds}, "image"},
	} {
		if found := faultsOfCalls(tc.fault); found[tc.check] == nil {
			t.Errorf("%s: %s finds nothing; found by others: %v", name, tc.check, slices.Sorted(maps.Keys(found)))
		}
	}
}

// without takes an attribute out of an item.
func without(attr string) func(*codec.Write) {
	return func(w *codec.Write) { delete(w.Item, attr) }
}

// clearHolds makes the last balance hold nothing.
func clearHolds(i *bucket.Image, _ codec.Item) error {
	last := &i.Balances[len(i.Balances)-1]
	last.Cells, last.Epoch = [2]int64{}, 0
	return nil
}
