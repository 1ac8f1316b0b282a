package migrating

import (
	"fmt"
	"testing"
	"time"

	"github.com/sluice-go/sluice/internal/test/storetest"
	"github.com/sluice-go/sluice/runtime/bucket"
	"github.com/sluice-go/sluice/runtime/dynamo/codec"
	"github.com/sluice-go/sluice/runtime/dynamo/operator"
	"github.com/sluice-go/sluice/runtime/internal/item"
	"github.com/sluice-go/sluice/runtime/store"
)

// onPlans is a resource whose code reads whose plan a bucket has.
type onPlans struct{ *storetest.Variant }

// Decode implements codec.Resource.
func (r onPlans) Decode(dst *bucket.Image, stored codec.Item) error {
	if err := r.Variant.Decode(dst, stored); err != nil {
		return err
	}
	d := codec.Decoder{Item: stored}
	d.PlanOf(dst)
	return d.Err()
}

// TestCarryOverOnPlan: a bucket that is carried over has the numbers of its entity's plan. If the plan is
// unknown, they are the most that any plan gives, and the bucket is older than any shape.
func TestCarryOverOnPlan(t *testing.T) {
	for plan, want := range map[string]string{"pro": "200 of user-1 later", "gold": "300 of user-1 0"} {
		t.Run(plan, func(t *testing.T) {
			e := newEngine(t)
			e.putOld(t)
			def := onPlans{rates(t)}
			def.Numbers.Kinds[0].Parent = store.NoParent
			def.Numbers.Plans = &store.Plans{Names: []string{"pro", "team"}, Limits: [][][]bucket.Limit{
				{{bucket.Per(200, time.Minute), {}}}, {{bucket.Per(300, time.Minute), {}}},
			}}
			members := operator.NewMembers(e.Client, e.Name, e.clock.Now)
			if err := members.SetPlan(t.Context(), "user-1", plan, nil); err != nil {
				t.Fatal(err)
			}
			d := start[user](t, e, New(e.Client, e.Name), def)
			if _, err := d.Acquire(t.Context(), "1", tokens{5, 100}); err != nil {
				t.Fatal(err)
			}
			if n := d.Count("reshape applied"); n != 0 {
				t.Errorf("%d reshapes after the carry", n)
			}
			stored := e.Get(t, item.BucketKey("user-1", "gpt-4"))
			version := "0"
			if storetest.Number(stored["cv"]) > bucket.RevisionUnit {
				version = "later"
			}
			got := fmt.Sprint(storetest.Number(stored["b_rpm_cp"])/bucket.Milli, " of ",
				storetest.Plain(stored)[item.PlanOf][len("S "):], " ", version)
			if got != want {
				t.Errorf("%s, want %s", got, want)
			}
		})
	}
}
