package load

import (
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sluice-go/sluice/runtime/bucket"
	"github.com/sluice-go/sluice/runtime/store"
)

// family is a plan of users, who belong to teams, which belong to orgs; the resource charges users and orgs.
func family(keys Keys) *Plan {
	limits := []bucket.Limit{{Capacity: 1, Burst: 1, Refill: 1, Period: 1}}
	kinds := []store.Kind{
		{Name: "org", Prefix: "org-", Parent: store.NoParent, Limits: limits},
		{Name: "team", Prefix: "team-", Parent: 0},
		{Name: "user", Prefix: "user-", Parent: 1, Limits: limits},
	}
	alone := slices.Clone(kinds)
	return &Plan{
		Specs: []*store.Spec{
			{Resource: "a", Limits: []string{"rpm"}, Kinds: kinds},
			{Resource: "b", Limits: []string{"rpm"}, Kinds: alone, Cascade: store.CascadeNone},
		},
		Mix: []Portion{
			{Resource: 0, Kind: 2, Weight: 3, Cost: []Range{{2, 5}}, Settle: []Range{{0, 1}}},
			{Resource: 1, Kind: 2, Weight: 1, Cost: []Range{{7, 7}}, Settle: []Range{AsAcquired}},
		},
		Entities: 100, Children: 10, Keys: keys, Seed: 1,
	}
}

// TestCharged: an entity's chain is always the same, each parent has as many children as it should, and who
// is not charged is left out.
func TestCharged(t *testing.T) {
	p := family(Keys{})
	users := map[string]int{}
	for i := range p.Entities {
		chain := p.Charged(0, i)
		if len(chain) != 2 || !strings.HasPrefix(chain[0], "user-load-") {
			t.Fatalf("a call of the %dth charges %s", i, chain)
		}
		users[chain[1]]++
	}
	if len(users) != 1 || users["org-load-0"] != 100 {
		t.Errorf("100 users in 10 teams in 1 org: %v", users)
	}
	if got := p.Charged(1, 17); !slices.Equal(got, []string{"user-load-17"}) {
		t.Errorf("without a cascade %s are charged", got)
	}
	links := p.entity(p.Specs[0].Kinds, 2, 17).Chain(nil)
	if want := []store.Link{{Kind: 2, ID: "load-17"}, {Kind: 1, ID: "load-7"},
		{Kind: 0, ID: "load-0"}}; !slices.Equal(links, want) {
		t.Errorf("the chain is %v, want %v", links, want)
	}
}

// TestDraw: every Drawer draws the same nth call, costs are within their ranges, and portions follow their
// weights.
func TestDraw(t *testing.T) {
	p := family(Keys{})
	one, other := p.NewDrawer(), p.NewDrawer()
	const n = 20_000
	var portions [2]float64
	var costs [6]float64
	for i := range int64(n) {
		c := one.Draw(i)
		if i%100 == 0 {
			if diff := cmp.Diff(c, other.Draw(i), cmp.AllowUnexported(Entity{})); diff != "" {
				t.Fatalf("the %dth call differs:\n%s", i, diff)
			}
		}
		portions[c.Portion]++
		if c.Portion == 1 && (c.Cost[0] != 7 || c.Settle[0] != 7 || c.Resource != 1) || c.Portion == 0 &&
			(c.Settle[0] < 0 || c.Settle[0] > 1) {
			t.Fatalf("%+v", c)
		}
		if c.Portion == 0 {
			costs[c.Cost[0]]++
		}
	}
	within(t, "of the first portion", portions[0]/n, 0.75)
	for cost := 2; cost <= 5; cost++ {
		within(t, "of a cost", costs[cost]/portions[0], 0.25)
	}
}

// TestKeys: the hottest make the portion that they should.
func TestKeys(t *testing.T) {
	for name, test := range map[string]struct {
		keys Keys
		k    int     // entities
		want float64 // the portion of calls of the first k
	}{
		"alike":     {Keys{}, 10, 0.1},
		"hot":       {Keys{Hot: 3, HotPortion: 0.8}, 3, 0.8},
		"all hot":   {Keys{Hot: 100, HotPortion: 0.8}, 100, 1},
		"cold":      {Keys{Hot: 3, HotPortion: 0.8}, 50, 0.8 + 0.2*47/97},
		"zipf":      {Keys{Zipf: 2}, 1, 0.6116}, // of 100: 1 by the sum of 1/n^2
		"zipf of 2": {Keys{Zipf: 2}, 2, 0.6116 * 1.25},
	} {
		d := family(test.keys).NewDrawer()
		const n = 20_000
		hot := 0.0
		for i := range int64(n) {
			if d.Draw(i).Index < test.k {
				hot++
			}
		}
		within(t, name, hot/n, test.want)
	}
}

// within fails the test where a portion of many is not about what it should be.
func within(t *testing.T, what string, got, want float64) {
	t.Helper()
	if math.Abs(got-want) > 0.02 {
		t.Errorf("%s: %.3f, want %.3f", what, got, want)
	}
}
