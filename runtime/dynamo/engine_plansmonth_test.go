package dynamo

import (
	"slices"
	"testing"
	"time"

	windows "github.com/sluice-go/sluice/gen/testdata/golden/windows/out"
	"github.com/sluice-go/sluice/internal/test/definitions"
	"github.com/sluice-go/sluice/internal/test/dynamotest"
	"github.com/sluice-go/sluice/internal/test/storetest"
	"github.com/sluice-go/sluice/runtime/bucket"
	"github.com/sluice-go/sluice/runtime/dynamo/codec"
	"github.com/sluice-go/sluice/runtime/dynamo/internal/plan"
	"github.com/sluice-go/sluice/runtime/store"
)

// orgID is an org that has a bucket of its own.
type orgID string

// Chain implements store.Entity.
func (o orgID) Chain(dst []store.Link) []store.Link { return append(dst, store.Link{ID: string(o)}) }

// monthly is a resource of orgs with 9,000 mails a month, 100 on plan free and 500 on pro, and rpm of 60, 10
// and 120.
func monthly(t testing.TB) (def *onPlans, month, rpm int) {
	t.Helper()
	all, err := definitions.Of(windows.New)
	if err != nil {
		t.Fatal(err)
	}
	isMail := func(def store.Definition) bool { return def.Spec().Resource == windows.Mail }
	mail := all[slices.IndexFunc(all, isMail)].(codec.Resource)
	spec := *mail.Spec()
	month, rpm = slices.Index(spec.Limits, "monthly"), slices.Index(spec.Limits, "rpm")
	spec.Plans = &store.Plans{Kind: 0, Names: []string{"free", "pro"}}
	for _, n := range [][2]int64{{100, 10}, {500, 120}} {
		limits := make([]bucket.Limit, len(spec.Limits))
		limits[month] = spec.Kinds[0].Limits[month]
		limits[month].Capacity, limits[month].Burst = n[0]*bucket.Milli, n[0]*bucket.Milli
		limits[rpm] = bucket.Per(n[1], time.Minute)
		spec.Plans.Limits = append(spec.Plans.Limits, [][]bucket.Limit{limits, nil})
	}
	return &onPlans{mail, &spec}, month, rpm
}

// refills is a Choose whose Reshape fills the bucket.
func refills(d *plan.Demand, s plan.State, now int64) plan.Plan {
	if s.Image != nil && plan.Outdated(s.Image, d.Shape) {
		img := *s.Image
		img.Balances = slices.Clone(img.Balances)
		p := plan.Choose(d, s, now)
		for i := range img.Balances {
			if p.Path == plan.Reshape && p.Decision == plan.Write {
				p.Fill[i] = d.Shape.Limits[i].Burst - img.Balances[i].Tokens
			}
		}
		return p
	}
	return plan.Choose(d, s, now)
}

// TestUpAndDown: an org that goes from one plan to another and back, 100 times in a month, never gets more
// than the larger plan gives in a month. The difference of two plans is there at once. Its rate mints nothing
// either.
func TestUpAndDown(t *testing.T) {
	for name, test := range map[string]struct {
		choose  func(*plan.Demand, plan.State, int64) plan.Plan
		exceeds bool
	}{"as it is": {plan.Choose, false}, "a control whose Reshape refills": {refills, true}} {
		t.Run(name, func(t *testing.T) {
			if test.exceeds && dynamotest.OnLocal(t) {
				t.Skip("a control, on which the engine has no bearing: make test runs it")
			}
			e := newEngine(t)
			def, month, rpm := monthly(t)
			seen := &events{}
			s := &opened{Store: newStore(e.client, e.table, func(s *Store) { s.seams.Choose = test.choose })}
			_, resources := storetest.Open[orgID](t, s, e.options(seen), def)
			used := make([]int64, len(def.spec.Limits))
			takes := func(limit int, n int64) bool {
				cost := make(tokens, len(used))
				cost[limit] = n
				_, err := resources[0].Acquire(t.Context(), orgID("1"), cost)
				if err == nil {
					used[limit] += n
				} else if !isA[*store.DeniedError](err) && !isA[*store.CostTooLargeError](err) {
					t.Fatal(err)
				}
				return err == nil
			}
			moves := func(to string) {
				if err := s.session.Members().SetPlan(t.Context(), "org-1", to, nil); err != nil {
					t.Fatal(err)
				}
			}
			moves("free")
			for takes(month, 10) {
			}
			if used[month] != 100 {
				t.Errorf("on plan free the month has %d, want 100", used[month])
			}
			for i := range 100 {
				moves("pro")
				if i == 0 && !takes(month, 400) {
					t.Error("the difference to the larger plan is not there at once")
				}
				for n := range 20 {
					takes(month, int64(n+1))
					takes(rpm, 1)
				}
				moves("free")
				takes(month, 1)
				takes(rpm, 1)
			}
			if got := used[month] > 500 || used[rpm] > 120; got != test.exceeds {
				t.Errorf("%d in the month and %d in the minute, above 500 and 120: %t, want %t", used[month], used[rpm],
					got, test.exceeds)
			}
		})
	}
}
