package lineage_test

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/sluice-go/sluice/runtime/bucket"
	"github.com/sluice-go/sluice/runtime/internal/lineage"
	"github.com/sluice-go/sluice/runtime/store"
)

// planned has plans for orgs, teams below them and keys below those. Addresses are apart.
func planned() *store.Spec {
	limits := []bucket.Limit{bucket.Per(1, time.Second)}
	return &store.Spec{
		Resource: "model", Limits: []string{"rps"}, Plans: &store.Plans{Kind: 2, Names: []string{"pro"}},
		Kinds: []store.Kind{
			{Name: "key", Prefix: "key-", Parent: 1, Limits: limits},
			{Name: "team", Prefix: "team-", Parent: 2},
			{Name: "org", Prefix: "org-", Parent: store.NoParent, Limits: limits},
			{Name: "ip", Prefix: "ip-", Parent: store.NoParent, Limits: limits},
		},
	}
}

// TestSetPlan: the plan is that of the org above an entity, whom the caller or stored parents name.
func TestSetPlan(t *testing.T) {
	members := map[string]store.Member{
		"key-1": {Parent: "team-2"}, "team-2": {Parent: "org-3"}, "org-3": {Plan: "pro", PlanVersion: 7},
		"org-4": {PlanVersion: 9},
	}
	pro := store.OnPlan{Of: "org-3", Name: "pro", Version: 7}
	from := func(entity string) store.OnPlan { // by whose stored parents the org was found
		found := pro
		found.From = entity
		return found
	}
	for name, test := range map[string]struct {
		chain   []string
		buckets []store.Bucket
		want    []store.OnPlan
		asked   []string
	}{
		"given": {
			[]string{"key-1", "team-2", "org-3"},
			[]store.Bucket{{Entity: "key-1", Kind: 0}, {Entity: "org-3", Kind: 2}},
			[]store.OnPlan{pro, pro}, []string{"org-3"},
		},
		"stored parents": {
			[]string{"key-1"}, []store.Bucket{{Entity: "key-1", Kind: 0}, {Entity: "org-3", Kind: 2}},
			[]store.OnPlan{from("key-1"), from("org-3")}, []string{"key-1", "team-2", "org-3"},
		},
		"a given parent, whose own is stored": {
			[]string{"key-9", "team-2"}, []store.Bucket{{Entity: "key-9", Kind: 0}},
			[]store.OnPlan{from("team-2")}, []string{"team-2", "org-3"},
		},
		"the entity itself": {
			[]string{"org-3"}, []store.Bucket{{Entity: "org-3", Kind: 2}}, []store.OnPlan{pro}, []string{"org-3"},
		},
		"none any more": {
			[]string{"org-4"}, []store.Bucket{{Entity: "org-4", Kind: 2}},
			[]store.OnPlan{{Of: "org-4", Version: 9}}, []string{"org-4"},
		},
		"never on one": {
			[]string{"key-1", "team-2", "org-5"}, []store.Bucket{{Entity: "key-1", Kind: 0}},
			[]store.OnPlan{{Of: "org-5"}}, []string{"org-5"},
		},
		"apart from plans": {
			[]string{"ip-1"}, []store.Bucket{{Entity: "ip-1", Kind: 3}}, []store.OnPlan{{}}, nil,
		},
	} {
		t.Run(name, func(t *testing.T) {
			from := &stored{members: members}
			if err := lineage.Set(t.Context(), planned(), test.buckets, test.chain, from.member); err != nil {
				t.Fatal(err)
			}
			var got []store.OnPlan
			for i := range test.buckets {
				got = append(got, test.buckets[i].Plan)
			}
			if !slices.Equal(got, test.want) || !slices.Equal(from.asked, test.asked) {
				t.Errorf("plans %+v after asking for %v\nwant  %+v, %v", got, from.asked, test.want, test.asked)
			}
		})
	}
}

// TestPlanUnknown: without an org there are no numbers: a slip must not take a customer's plan away.
func TestPlanUnknown(t *testing.T) {
	for name, test := range map[string]struct {
		members map[string]store.Member
		want    string // the entity whose parent is missing
	}{
		"an unknown key":        {nil, "key-1"},
		"a key without parent":  {map[string]store.Member{"key-1": {Entity: "key-1"}}, "key-1"},
		"a team without parent": {map[string]store.Member{"key-1": {Parent: "team-2"}}, "team-2"},
	} {
		t.Run(name, func(t *testing.T) {
			from := &stored{members: test.members}
			buckets := []store.Bucket{{Entity: "key-1", Kind: 0}}
			err := lineage.Set(t.Context(), planned(), buckets, []string{"key-1"}, from.member)
			invalid, ok := errors.AsType[*store.InvalidError](err)
			if !ok || invalid.Field != "entity" || invalid.Value != test.want {
				t.Errorf("got %v, want an InvalidError of entity %s", err, test.want)
			}
		})
	}
}
