package lineage_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	_ "time/tzdata"

	"github.com/sluice-go/sluice/runtime/bucket"
	"github.com/sluice-go/sluice/runtime/internal/lineage"
	"github.com/sluice-go/sluice/runtime/store"
)

// spec has teams below orgs, and keys below teams. Teams have no windows of their own.
func spec() *store.Spec {
	limits := []bucket.Limit{bucket.Per(1, time.Second), bucket.InWindows(10, 30*24*time.Hour)}
	own := []*bucket.Calendar{nil, {Unit: bucket.Month, Date: 1, OwnStarts: true, OwnZone: true}}
	fixed := []*bucket.Calendar{nil, {Unit: bucket.Month, Date: 1}}
	return &store.Spec{Resource: "mail", Limits: []string{"rps", "month"}, Kinds: []store.Kind{
		{Name: "key", Prefix: "key-", Parent: 1, Limits: limits, Windows: own},
		{Name: "team", Prefix: "team-", Parent: 2, Limits: limits, Windows: fixed},
		{Name: "org", Prefix: "org-", Parent: store.NoParent, Limits: limits, Windows: own},
	}}
}

// stored is what is stored of entities, and which were asked for.
type stored struct {
	members map[string]store.Member
	asked   []string
	failure error
}

func (s *stored) member(_ context.Context, entity string) (store.Member, bool, error) {
	s.asked = append(s.asked, entity)
	m, ok := s.members[entity]
	return m, ok, s.failure
}

func since(day int) time.Time {
	return time.Date(2026, time.January, day, 9, 30, 0, 0, bucket.MustZone("Europe/Berlin"))
}

// TestSet: the calendar is the entity's own, else the nearest ancestor's, else the default. The chain goes on
// by stored parents. Nothing is asked twice.
func TestSet(t *testing.T) {
	chain := []string{"key-1", "team-2", "org-3"}
	buckets := func() []store.Bucket {
		return []store.Bucket{{Entity: "key-1", Kind: 0}, {Entity: "team-2", Kind: 1}, {Entity: "org-3", Kind: 2}}
	}
	for name, test := range map[string]struct {
		members map[string]store.Member
		chain   []string
		dates   [2]int // of the key's calendar, and of the org's
		asked   []string
	}{
		"default": {nil, chain, [2]int{1, 1}, chain},
		"own": {
			map[string]store.Member{"key-1": {Since: since(5)}, "org-3": {Since: since(20)}},
			chain, [2]int{5, 20}, []string{"key-1", "org-3"},
		},
		"nearest ancestor's": {
			map[string]store.Member{"team-2": {Since: since(7)}, "org-3": {Since: since(20)}},
			chain, [2]int{7, 20}, chain,
		},
		"stored parents": {
			map[string]store.Member{
				"key-1": {Parent: "team-2"}, "team-2": {Parent: "org-3"}, "org-3": {Since: since(9)},
			},
			[]string{"key-1"}, [2]int{9, 9}, chain,
		},
		"control: a stored parent of another kind": {
			map[string]store.Member{"key-1": {Parent: "org-3", Since: since(4)}, "org-3": {Since: since(9)}},
			[]string{"key-1"}, [2]int{4, 1}, []string{"key-1"},
		},
		"an ancestor's own, not its descendant's": {
			map[string]store.Member{
				"key-1": {Parent: "team-2", Since: since(4)}, "team-2": {Parent: "org-3"}, "org-3": {Since: since(9)},
			},
			[]string{"key-1"}, [2]int{4, 9}, chain,
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := &stored{members: test.members}
			got := buckets()
			if err := lineage.Set(t.Context(), spec(), got, test.chain, s.member); err != nil {
				t.Fatal(err)
			}
			for i, at := range []int{0, 2} {
				if at >= len(got) {
					continue
				}
				c := got[at].Windows[1]
				if c.Date != test.dates[i] || got[at].Windows[0] != nil {
					t.Errorf("%s starts on day %d, want %d", got[at].Entity, c.Date, test.dates[i])
				}
				if c.Date > 1 && (c.At != 9*time.Hour+30*time.Minute || c.Zone.String() != "Europe/Berlin") {
					t.Errorf("%s starts at %v in %v, want 09:30 in Europe/Berlin", got[at].Entity, c.At, c.Zone)
				}
			}
			if len(got) > 1 && got[1].Windows != nil {
				t.Error("a team, whose windows are fixed, has a calendar of its own")
			}
			if !slices.Equal(s.asked, test.asked) {
				t.Errorf("asked for %q, want %q", s.asked, test.asked)
			}
		})
	}
}

// TestSetFails: without an answer there is no calendar to go by.
func TestSetFails(t *testing.T) {
	s := &stored{failure: errors.New("no answer")}
	got := []store.Bucket{{Entity: "org-3", Kind: 2}}
	err := lineage.Set(t.Context(), spec(), got, []string{"org-3"}, s.member)
	if !errors.Is(err, s.failure) || got[0].Windows != nil {
		t.Errorf("%v with %v, want the error alone", err, got[0].Windows)
	}
}

// TestChain: it is what the caller gave, up to the first id that is missing, if any windows depend on it.
func TestChain(t *testing.T) {
	links := []store.Link{{Kind: 0, ID: "1"}, {Kind: 1, ID: ""}, {Kind: 2, ID: "3"}}
	if got := lineage.Chain(spec(), links); !slices.Equal(got, []string{"key-1"}) {
		t.Errorf("got %q, want the key alone", got)
	}
	links[1].ID = "2"
	if got := lineage.Chain(spec(), links); len(got) != 3 {
		t.Errorf("got %q, want all three", got)
	}
	fixed := spec()
	fixed.Kinds[0].Windows, fixed.Kinds[2].Windows = nil, nil
	if got := lineage.Chain(fixed, links); got != nil {
		t.Errorf("got %q, though no windows depend on an entity", got)
	}
}
