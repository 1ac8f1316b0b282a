package untyped

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sluice-go/sluice/gen"
	inflight "github.com/sluice-go/sluice/gen/testdata/golden/inflight/out"
	plans "github.com/sluice-go/sluice/gen/testdata/golden/plans/out"
	templates "github.com/sluice-go/sluice/gen/testdata/golden/templates/out"
	windows "github.com/sluice-go/sluice/gen/testdata/golden/windows/out"
	"github.com/sluice-go/sluice/internal/test/definitions"
	"github.com/sluice-go/sluice/runtime/bucket"
)

// TestCalendars: commands have the calendars that generated code has, and none for limits that refill.
func TestCalendars(t *testing.T) {
	loaded, err := gen.Load("../../../gen/testdata/golden/windows/limits.yaml")
	if err != nil {
		t.Fatal(err)
	}
	defs, err := definitions.Of(windows.New)
	if err != nil {
		t.Fatal(err)
	}
	compared := 0
	for i, def := range defs {
		spec := def.Spec()
		for _, kind := range spec.Kinds {
			for j, want := range kind.Windows {
				got := calendars(loaded.Resources[i].Windows)[j]
				if (got == nil) != (want == nil) {
					t.Fatalf("%s %s: %v, want %v", spec.Resource, spec.Limits[j], got, want)
				}
				if want != nil && !same(got, want) {
					t.Errorf("%s %s: %+v, want %+v", spec.Resource, spec.Limits[j], got, want)
				}
				if want != nil {
					compared++
				}
			}
		}
	}
	if compared < 9 {
		t.Errorf("%d calendars were compared", compared)
	}
	got := calendars(loaded.Resources[0].Windows)[1]
	if same(got, &bucket.Calendar{Unit: got.Unit, At: got.At}) {
		t.Error("control: a calendar without its zone is the same")
	}
}

// TestSpecInFlight: commands have the numbers of limits in flight that generated code has, and know of which
// limits buckets count holds.
func TestSpecInFlight(t *testing.T) {
	loaded, err := gen.Load("../../../gen/testdata/golden/inflight/limits.yaml")
	if err != nil {
		t.Fatal(err)
	}
	_, specs := Specs(loaded)
	defs, err := definitions.Of(inflight.New)
	if err != nil {
		t.Fatal(err)
	}
	held := 0
	for i, def := range defs {
		want, got := def.Spec(), specs[i]
		if !slices.Equal(got.Held, want.Held) {
			t.Errorf("%s: held %v, want %v", want.Resource, got.Held, want.Held)
		}
		for k := range want.Kinds {
			if !slices.Equal(got.Kinds[k].Limits, want.Kinds[k].Limits) {
				t.Errorf("%s: %v, want %v", want.Resource, got.Kinds[k].Limits, want.Kinds[k].Limits)
			}
			if want.HasHolds(k) {
				held++
			}
		}
	}
	if held != 3 {
		t.Errorf("%d kinds with holds were compared, want 3", held)
	}
}

// TestSpecOnPlans: tools have the numbers of plans that generated code has.
func TestSpecOnPlans(t *testing.T) {
	loaded, err := gen.Load("../../../gen/testdata/golden/plans/limits.yaml")
	if err != nil {
		t.Fatal(err)
	}
	_, specs := Specs(loaded)
	defs, err := definitions.Of(plans.New)
	if err != nil {
		t.Fatal(err)
	}
	restated := 0
	for i, def := range defs {
		want, got := def.Spec(), specs[i]
		if diff := cmp.Diff(want.Plans, got.Plans); diff != "" {
			t.Errorf("%s: - generated, + ours:\n%s", want.Resource, diff)
		}
		for _, kinds := range want.Plans.Limits {
			for _, limits := range kinds {
				for _, l := range limits {
					if !l.Absent() {
						restated++
					}
				}
			}
		}
	}
	if restated != 10 {
		t.Errorf("%d numbers of plans were compared, want 10", restated)
	}
}

// TestSpecOfTemplates: tools have the Specs of templates that generated code has.
func TestSpecOfTemplates(t *testing.T) {
	loaded, err := gen.Load("../../../gen/testdata/golden/templates/limits.yaml")
	if err != nil {
		t.Fatal(err)
	}
	_, specs := Specs(loaded)
	defs, err := definitions.Of(templates.New)
	if err != nil {
		t.Fatal(err)
	}
	allNames := 0
	for i, def := range defs {
		want, got := def.Spec(), specs[i]
		calendars := cmp.Comparer(func(a, b *bucket.Calendar) bool { return a == b || same(a, b) })
		if diff := cmp.Diff(want, got, calendars); diff != "" {
			t.Errorf("%s: - generated, + ours:\n%s", want.Resource, diff)
		}
		for kind := range want.Kinds {
			if want.Kinds[kind].AllNames {
				allNames++
			}
		}
	}
	if len(defs) != 3 || allNames != 3 {
		t.Errorf("%d templates with %d kinds of all names were compared, want 3 and 3", len(defs), allNames)
	}
}

// same reports whether windows of a and b end at the same times over some years, for entities that have a
// start of their own, too.
func same(a, b *bucket.Calendar) bool {
	since := time.Date(2024, 1, 31, 9, 30, 0, 0, bucket.MustZone("Asia/Tokyo"))
	if a.OwnStarts != b.OwnStarts || a.OwnZone != b.OwnZone || a.String() != b.String() {
		return false
	}
	for _, own := range []bool{false, true} {
		x, y := *a, *b
		if own {
			x, y = *a.Of(since), *b.Of(since)
		}
		for at := since; at.Year() < 2028; at = at.Add(31 * time.Hour) {
			now := at.UnixMilli()
			if x.End(now, 0) != y.End(now, 0) || x.Half() != y.Half() {
				return false
			}
		}
	}
	return true
}
