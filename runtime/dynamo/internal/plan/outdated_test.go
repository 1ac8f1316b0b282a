package plan

import (
	"fmt"
	"math"
	"testing"

	"github.com/sluice-go/sluice/runtime/bucket"
)

// TestOutdated: a bucket gets a shape of a higher revision or sum, if neither is lower. Whose plan it has
// counts before the sum, and a plan that this binary does not know changes no bucket.
func TestOutdated(t *testing.T) {
	at := func(revision, sum int64) int64 { return revision*bucket.RevisionUnit + sum }
	plans := func(of string, version int64) *Shape {
		return &Shape{HasPlans: true, PlanOf: of, Version: version}
	}
	unknown := plans("org-2", at(3, 9))
	unknown.UnknownPlan = true
	for i, test := range []struct {
		planOf  string
		version int64
		missing bool
		shape   *Shape
		want    bool
	}{
		{"", at(2, 5), false, &Shape{Version: at(2, 5)}, false},
		{"", at(2, 5), true, &Shape{Version: at(2, 5)}, true},
		{"", at(2, 4), false, &Shape{Version: at(2, 5)}, true},
		{"", at(1, 5), false, &Shape{Version: at(2, 5)}, true},
		{"", at(1, 6), false, &Shape{Version: at(2, 5)}, false},
		{"", at(3, 4), false, &Shape{Version: at(2, 5)}, false},

		{"org-1", at(2, 5), false, plans("org-1", at(2, 5)), false},
		{"org-1", at(2, 4), false, plans("org-1", at(2, 5)), true},
		{"org-1", at(2, 6), false, plans("org-1", at(2, 5)), false},
		{"org-1", at(2, 6), false, plans("org-2", at(2, 5)), true},
		{"org-1", at(2, 5), false, plans("org-2", at(2, 5)), true},
		{"org-1", at(2, 6), false, plans("", at(2, 5)), true},
		{"", at(2, 6), false, plans("org-2", at(2, 5)), true},
		{"org-1", at(3, 4), false, plans("org-2", at(2, 5)), false},

		{"org-1", at(2, 4), true, unknown, false},
		{"org-2", at(2, 4), false, unknown, false},

		// The resource has no plans any more.
		{"org-1", at(2, 6), false, &Shape{Version: at(2, 5)}, false},
		{"org-1", at(1, 6), false, &Shape{Version: at(2, 5)}, true},
		{"org-1", at(3, 4), false, &Shape{Version: at(2, 5)}, false},
	} {
		img := &bucket.Image{PlanOf: test.planOf, Version: test.version, Missing: []bool{test.missing}}
		if got := Outdated(img, test.shape); got != test.want {
			t.Errorf("row %d: outdated %t, want %t", i, got, test.want)
		}
	}
}

// TestPlanOf: Create and Reshape store whose plan a bucket has, and other paths leave it. A bucket of an
// unknown plan is created older than any shape.
func TestPlanOf(t *testing.T) {
	const version = 3*bucket.RevisionUnit + 7
	limits := []bucket.Limit{bucket.Per(10, 60_000_000_000)}
	shape := &Shape{Limits: limits, Version: version, HasPlans: true, PlanOf: "org-2"}
	unknown := *shape
	unknown.UnknownPlan = true
	full := func(of string, version int64) *bucket.Image {
		return &bucket.Image{
			Refilled: 1, Version: version, PlanOf: of, Balances: bucket.Full(limits), Missing: make([]bool, 1),
		}
	}
	for _, test := range []struct {
		shape *Shape
		img   *bucket.Image
		want  string
	}{
		{shape, nil, "create org-2 300000000000007"},
		{&unknown, nil, "create org-2 300000000000000"},
		{shape, full("org-1", version+1), "reshape org-2 300000000000007"},
		{&unknown, full("org-1", version-1), "retry org-1 300000000000006"},
		{shape, full("org-2", version), "retry org-2 300000000000007"},
	} {
		d := &Demand{Take: []int64{1000}, Called: 1, Shape: test.shape}
		p := Choose(d, State{Image: test.img, Confirmed: true}, 1)
		after := p.Predict("op")
		if got := fmt.Sprint(p.Path, " ", after.PlanOf, " ", after.Version); got != test.want ||
			p.Decision != Write {
			t.Errorf("decision %d, %s, want %s", p.Decision, got, test.want)
		}
	}
}

// TestGenericWithoutPlans: a Reshape of a resource that has no plans any more is built from the image, so
// that it drops whose plan the bucket had.
func TestGenericWithoutPlans(t *testing.T) {
	limits := []bucket.Limit{bucket.Per(10, 60_000_000_000)}
	img := &bucket.Image{PlanOf: "org-1", Balances: bucket.Full(limits), Missing: make([]bool, 1)}
	for _, has := range []bool{true, false} {
		s := &Shape{Limits: limits, Version: bucket.RevisionUnit, HasPlans: has}
		if p := NewReshape([]int64{0}, img, s, nil, math.MaxInt32); p.Generic == has || p.PlanOf != "" {
			t.Errorf("with plans %t: generic %t, plan of %q", has, p.Generic, p.PlanOf)
		}
	}
}
