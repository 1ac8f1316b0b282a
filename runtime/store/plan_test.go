package store_test

import (
	"slices"
	"testing"
	"time"

	"github.com/sluice-go/sluice/runtime/bucket"
	"github.com/sluice-go/sluice/runtime/store"
)

// planned is a resource whose orgs are put on plans, and keys below them.
func planned() *store.Spec {
	perMinute := func(n int64) bucket.Limit { return bucket.Per(n, time.Minute) }
	return &store.Spec{
		Limits: []string{"rpm", "tpm"},
		Kinds: []store.Kind{
			{Name: "org", Parent: store.NoParent},
			{Name: "team", Parent: 0},
			{Name: "key", Parent: 1, Limits: []bucket.Limit{perMinute(60), perMinute(1000).WithBurst(5000)}},
			{Name: "ip", Parent: store.NoParent, Limits: []bucket.Limit{perMinute(1), {}}},
			{Name: "org", Parent: store.NoParent, AllNames: true},
			{Name: "key", Parent: 1, AllNames: true},
		},
		Plans: &store.Plans{
			Names: []string{"free", "pro"},
			Limits: [][][]bucket.Limit{
				{nil, nil, {{}, perMinute(2000)}, nil},
				{nil, nil, {perMinute(600), {}}, nil},
			},
		},
	}
}

func TestOnPlans(t *testing.T) {
	s, got := planned(), []bool(nil)
	for kind := range s.Kinds {
		got = append(got, s.OnPlans(kind))
	}
	if want := []bool{true, true, true, false, true, true}; !slices.Equal(got, want) {
		t.Errorf("plans concern kinds %v, want %v", got, want)
	}
	if s.Plans = nil; s.OnPlans(0) {
		t.Error("plans concern a resource without any")
	}
}

func TestNumbersOf(t *testing.T) {
	perMinute := func(n int64) bucket.Limit { return bucket.Per(n, time.Minute) }
	for _, test := range []struct {
		plan  string
		known bool
		want  []bucket.Limit // Absent for nil
	}{
		{"free", true, []bucket.Limit{{}, perMinute(2000)}},
		{"pro", true, []bucket.Limit{perMinute(600), {}}},
		// Of each number the most: the burst of kind key, and the rest of plan free.
		{"gold", false, []bucket.Limit{perMinute(600), perMinute(2000).WithBurst(5000)}},
	} {
		s := planned()
		numbers, known := s.Plans.NumbersOf(s, test.plan, 2)
		got := make([]bucket.Limit, len(numbers.Limits))
		for i, l := range numbers.Limits {
			if l != nil {
				got[i] = *l
			}
		}
		if known != test.known || !slices.Equal(got, test.want) {
			t.Errorf("plan %s is known: %v, with %v, want %v, with %v", test.plan, known, got, test.known, test.want)
		}
		if want := "schema." + test.plan + ".key"; numbers.At != want {
			t.Errorf("plan %s is at %s, want %s", test.plan, numbers.At, want)
		}
	}
}

// TestLarger: of each number the most, and of two rates the higher one, whatever their periods.
func TestLarger(t *testing.T) {
	hourly, perMinute := bucket.Per(600, time.Hour), bucket.Per(11, time.Minute)
	for _, order := range [][2]bucket.Limit{{hourly, perMinute}, {perMinute, hourly}} {
		want := bucket.Limit{
			Capacity: hourly.Capacity, Burst: hourly.Burst, Refill: perMinute.Refill, Period: perMinute.Period,
		}
		if got := store.Larger(order[0], order[1]); got != want {
			t.Errorf("the larger of %v is %v, want %v", order, got, want)
		}
	}
	day := bucket.Limit{Capacity: 5, Burst: 5, Period: 86_400_000} // with windows: no refill
	raised := day
	raised.Capacity, raised.Burst = 7, 7
	if got := store.Larger(day, raised); got != raised {
		t.Errorf("the larger of two allowances is %v, want %v", got, raised)
	}
}

func TestPlanAt(t *testing.T) {
	plan, kind, ok := store.SplitPlanAt(store.PlanAt("pro", "key"))
	if !ok || plan != "pro" || kind != "key" {
		t.Errorf("pro.key splits into %q and %q, %v", plan, kind, ok)
	}
	for _, at := range []string{"key-1.2", "key", "key-1"} {
		if _, _, ok := store.SplitPlanAt(at); ok {
			t.Errorf("%s is taken for a kind on a plan", at)
		}
	}
}
