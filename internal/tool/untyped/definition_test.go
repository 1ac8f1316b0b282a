package untyped_test

import (
	"errors"
	"math"
	"reflect"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/sluice-go/sluice/gen"
	inflight "github.com/sluice-go/sluice/gen/testdata/golden/inflight/out"
	kinds "github.com/sluice-go/sluice/gen/testdata/golden/kinds/out"
	plans "github.com/sluice-go/sluice/gen/testdata/golden/plans/out"
	templates "github.com/sluice-go/sluice/gen/testdata/golden/templates/out"
	windows "github.com/sluice-go/sluice/gen/testdata/golden/windows/out"
	limits "github.com/sluice-go/sluice/generated"
	"github.com/sluice-go/sluice/internal/test/definitions"
	"github.com/sluice-go/sluice/internal/tool/untyped"
	"github.com/sluice-go/sluice/runtime"
	"github.com/sluice-go/sluice/runtime/bucket"
	"github.com/sluice-go/sluice/runtime/dynamo/codec"
	"github.com/sluice-go/sluice/runtime/store"
)

// pair is a generated resource and ours.
type pair struct {
	generated interface {
		codec.Resource
		Script(chain int) string
	}
	ours *untyped.Definition
}

func pairs(t testing.TB) (all []pair) {
	t.Helper()
	defs, err := definitions.Of(limits.New)
	if err != nil {
		t.Fatal(err)
	}
	statements, err := gen.LoadStatements("../../../limits.yaml")
	if err != nil || len(statements) != len(defs) {
		t.Fatal(err, len(statements))
	}
	for i, def := range defs {
		p := pair{ours: untyped.NewDefinition(def.Spec(), statements[i])}
		reflect.ValueOf(&p.generated).Elem().Set(reflect.ValueOf(def))
		all = append(all, p)
	}
	return all
}

// same holds what w and v send against each other.
func same(w, v codec.Write) string {
	return cmp.Diff(w, v, cmpopts.IgnoreUnexported(codec.Write{}, types.AttributeValueMemberS{},
		types.AttributeValueMemberN{}))
}

// drawn is some write of a resource of n limits.
func drawn(t *rapid.T, n int) codec.Write {
	number := rapid.Int64()
	vector := func(name string) []int64 { return rapid.SliceOfN(number, n, n).Draw(t, name) }
	w := codec.Write{
		Entity: rapid.StringMatching(`user-[a-z]{1,5}`).Draw(t, "entity"), Op: rapid.StringN(1, 9, -1).Draw(t,
			"op"),
		Image: &bucket.Image{Refilled: number.Draw(t, "seen"), Version: number.Draw(t, "version")},
		Cost:  vector("cost"), Fill: vector("fill"), Lo: vector("lo"), Hi: vector("hi"),
		RF: number.Draw(t, "rf"), CV: number.Draw(t, "cv"), TTL: number.Draw(t, "ttl"),
	}
	for range n {
		positive := rapid.Int64Range(1, 1e15)
		w.Limits = append(w.Limits, bucket.Limit{
			Capacity: positive.Draw(t, "cp"), Burst: positive.Draw(t, "bx"), Refill: positive.Draw(t,
				"ra"), Period: positive.Draw(t, "rp"),
		})
	}
	return w
}

// TestDefinitionIsTheGeneratedCode: what a load sends is what the generated package of the same limits.yaml
// would.
func TestDefinitionIsTheGeneratedCode(t *testing.T) {
	paths := map[string]func(codec.Resource, *codec.Write){
		"Create": codec.Resource.Create, "Normal": codec.Resource.Normal, "Retry": codec.Resource.Retry,
		"Adjust": codec.Resource.Adjust, "Reshape": codec.Resource.Reshape,
	}
	for _, p := range pairs(t) {
		spec := p.generated.Spec()
		for chain := range len(spec.Kinds) + 2 {
			if p.generated.Script(chain) != p.ours.Script(chain) {
				t.Errorf("%s: the scripts for chains of %d differ", spec.Resource, chain)
			}
		}
		for name, build := range paths {
			t.Run(spec.Resource+" "+name, func(t *testing.T) {
				rapid.Check(t, func(t *rapid.T) {
					w := drawn(t, len(spec.Limits))
					v := w
					build(p.generated, &w)
					build(p.ours, &v)
					if diff := same(w, v); diff != "" {
						t.Fatalf("- generated, + ours:\n%s", diff)
					}
					if diff := cmp.Diff(p.generated.Key(w.Entity), p.ours.Key(w.Entity),
						cmpopts.IgnoreUnexported(types.AttributeValueMemberS{})); diff != "" {
						t.Fatal(diff)
					}
				})
			})
		}
	}
}

// TestDefinitionReadsAsTheGeneratedCode: an item is the same image to both, levels too, and so is a malformed
// one's error.
func TestDefinitionReadsAsTheGeneratedCode(t *testing.T) {
	for _, p := range pairs(t) {
		rapid.Check(t, func(t *rapid.T) {
			w := drawn(t, len(p.generated.Spec().Limits))
			p.generated.Create(&w)
			item := w.Item
			if drop := rapid.SampledFrom([]string{"", "rf", "cv", "b_rpm_tk", "b_rpm_cp", "b_rps_tc"}).Draw(t,
				"drop"); drop != "" {
				delete(item, drop)
			}
			if rapid.Bool().Draw(t, "another limit") {
				codec.PutBalance(item, &bucket.Balance{Limit: bucket.Limit{Capacity: 1, Burst: 2, Refill: 3, Period: 4}},
					"b_x_tk", "b_x_cp", "b_x_bx", "b_x_ra", "b_x_rp", "b_x_tc")
			}
			var a, b bucket.Image
			for _, read := range []func(codec.Resource, *bucket.Image) error{
				func(r codec.Resource, i *bucket.Image) error { return r.Decode(i, item) },
				func(r codec.Resource, i *bucket.Image) error { return r.DecodeBalances(i, item) },
			} {
				errA, errB := read(p.generated, &a), read(p.ours, &b)
				if (errA == nil) != (errB == nil) || errA != nil && errA.Error() != errB.Error() {
					t.Fatalf("generated code says %v, ours %v", errA, errB)
				}
				if diff := cmp.Diff(a, b); errA == nil && diff != "" {
					t.Fatalf("- generated, + ours:\n%s", diff)
				}
			}
		})
	}
}

// TestDefinitionByKind: where kinds differ in their limits, a load writes and reads what the generated
// package does for each kind.
func TestDefinitionByKind(t *testing.T) {
	if checked := sameByKind(t, kinds.New, "kinds"); checked != 8 {
		t.Errorf("%d kinds with a bucket, want 8", checked)
	}
}

// TestDefinitionOfWindows: so it is with limits that have windows.
func TestDefinitionOfWindows(t *testing.T) {
	if checked := sameByKind(t, windows.New, "windows"); checked != 3 {
		t.Errorf("%d kinds with a bucket, want 3", checked)
	}
}

// TestDefinitionOfHolds: so it is with limits of which open leases hold tokens.
func TestDefinitionOfHolds(t *testing.T) {
	if checked := sameByKind(t, inflight.New, "inflight"); checked != 3 {
		t.Errorf("%d kinds with a bucket, want 3", checked)
	}
}

// TestDefinitionOnPlans: so it is with plans.
func TestDefinitionOnPlans(t *testing.T) {
	if checked := sameByKind(t, plans.New, "plans"); checked != 4 {
		t.Errorf("%d kinds with a bucket, want 4", checked)
	}
}

// TestDefinitionOfTemplates: so it is with buckets by name and of all names.
func TestDefinitionOfTemplates(t *testing.T) {
	if checked := sameByKind(t, templates.New, "templates"); checked != 7 {
		t.Errorf("%d kinds with a bucket, want 7", checked)
	}
}

// withHolds gives w, which is of a kind of spec, what it does to cells.
func withHolds(t *rapid.T, w *codec.Write, spec *store.Spec, kind int) {
	number := func(name string) int64 { return rapid.Int64Range(0, math.MaxInt64/4).Draw(t, name) }
	pair := func(name string) [2]int64 { return [2]int64{number(name + "0"), number(name + "1")} }
	w.Holds = make([]bucket.Hold, len(w.Limits))
	for i, limit := range spec.Kinds[kind].Limits {
		if spec.Held == nil || !spec.Held[i] {
			continue
		}
		if limit.InFlight() {
			w.Limits[i].Refill, w.Limits[i].Period = 0, limit.Period
		}
		w.Image.Balances[i].Epoch = number("e0")
		w.Holds[i] = bucket.Hold{Change: pair("d"), Lo: pair("lo"), Hi: pair("hi"), First: number("first"),
			Last: number("last"), Epoch: 1 + number("e")}
	}
}

// inWindows gives w, which is of a kind, the ends of windows.
func inWindows(t *rapid.T, w *codec.Write, kind *store.Kind) {
	ends := func(name string) int64 { return rapid.Int64Range(0, math.MaxInt64).Draw(t, name) }
	w.Ends, w.Image.Balances = make([]int64, len(w.Limits)), make([]bucket.Balance, len(w.Limits))
	for i, limit := range kind.Limits {
		if limit.Windowed() {
			w.Limits[i].Refill, w.Limits[i].Period = 0, limit.Period
			w.Ends[i], w.Image.Balances[i].Ends = ends("we"), ends("we0")
		}
	}
}

// sameByKind holds a load's writes and reads against those of a golden package. It returns how many kinds
// with a bucket its resources have.
func sameByKind[L any](
	t *testing.T, open func(store.Store, ...runtime.Option) (L, error), golden string,
) (checked int) {
	t.Helper()
	defs, err := definitions.Of(open)
	if err != nil {
		t.Fatal(err)
	}
	statements, err := gen.LoadStatements("../../../gen/testdata/golden/" + golden + "/limits.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for i, def := range defs {
		ours, spec := untyped.Define(def.Spec(), statements[i]), def.Spec()
		for kind := range spec.Kinds {
			generated, ok := codec.For(def, kind)
			if !ok || spec.Kinds[kind].Limits == nil {
				continue
			}
			mine, _ := codec.For(ours, kind)
			checked++
			rapid.Check(t, func(t *rapid.T) {
				w := drawn(t, len(spec.Limits))
				inWindows(t, &w, &spec.Kinds[kind])
				withHolds(t, &w, spec, kind)
				if spec.Plans != nil {
					w.PlanOf = rapid.SampledFrom([]string{"", "org-1"}).Draw(t, "po")
				}
				if spec.Names {
					w.Resource = rapid.SampledFrom([]string{"", spec.Resource + "/gpt-5"}).Draw(t, "resource")
				}
				v := w
				for _, build := range []func(codec.Resource, *codec.Write){codec.Resource.Create, codec.Resource.Normal,
					codec.Resource.Retry, codec.Resource.Adjust, codec.Resource.Reshape} {
					build(generated, &w)
					build(mine, &v)
					if diff := same(w, v); diff != "" {
						t.Fatalf("- generated, + ours:\n%s", diff)
					}
				}
				w.Cost = make([]int64, len(w.Cost)) // the largest numbers leave balances that are refused
				generated.Create(&w)
				var a, b bucket.Image
				if err := errors.Join(generated.Decode(&a, w.Item), mine.Decode(&b, w.Item)); err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(a, b); diff != "" {
					t.Fatalf("- generated, + ours:\n%s", diff)
				}
				clear(a.Balances)
				clear(b.Balances)
				if err := errors.Join(generated.DecodeBalances(&a, w.Item), mine.DecodeBalances(&b, w.Item)); err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(a, b); diff != "" {
					t.Fatalf("- generated, + ours, balances:\n%s", diff)
				}
			})
		}
	}
	return checked
}

// TestComparisonSees: an operand that is another's is seen.
func TestComparisonSees(t *testing.T) {
	statements, err := gen.LoadStatements("../../../limits.yaml")
	if err != nil {
		t.Fatal(err)
	}
	p := pairs(t)[0]
	operands := statements[0].Retry.Operands
	for i, o := range operands {
		if o.Value == gen.OperandLo {
			operands[i].Value = gen.OperandHi
			break
		}
	}
	ours := untyped.NewDefinition(p.generated.Spec(), statements[0])
	w := codec.Write{
		Image: &bucket.Image{}, Cost: []int64{1, 2}, Fill: []int64{0, 0}, Lo: []int64{1, 2}, Hi: []int64{3, 4},
	}
	v := w
	p.generated.Retry(&w)
	ours.Retry(&v)
	if same(w, v) == "" {
		t.Error("a bound that is the other one is not seen")
	}
}
