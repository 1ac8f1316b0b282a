package codec_test

import (
	"math"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	plans "github.com/sluice-go/sluice/gen/testdata/golden/plans/out"
	removed "github.com/sluice-go/sluice/gen/testdata/golden/removed/out"
	limits "github.com/sluice-go/sluice/generated"
	"github.com/sluice-go/sluice/internal/test/definitions"
	"github.com/sluice-go/sluice/runtime/bucket"
	"github.com/sluice-go/sluice/runtime/dynamo/codec"
)

// opened returns the resources of three packages, which have limits in common. Those of the last have plans.
func opened(t *testing.T) []codec.Resource {
	t.Helper()
	ours, err := definitions.Of(limits.New)
	if err != nil {
		t.Fatal(err)
	}
	others, err := definitions.Of(removed.New)
	if err != nil {
		t.Fatal(err)
	}
	planned, err := definitions.Of(plans.New)
	if err != nil {
		t.Fatal(err)
	}
	var all []codec.Resource
	for _, def := range append(ours, others...) {
		all = append(all, def.(codec.Resource))
	}
	for _, def := range planned {
		const team = 1 // whose buckets of model have no windows
		if r, ok := codec.For(def, team); ok && def.Spec().Resource == plans.Model {
			all = append(all, r)
		}
	}
	return all
}

// drawWrite draws what a store puts into a write of n limits.
func drawWrite(t *rapid.T, n int) *codec.Write {
	number := rapid.OneOf(rapid.SampledFrom([]int64{0, 1, -1, math.MinInt64, math.MaxInt64}), rapid.Int64())
	vector := rapid.SliceOfN(number, n, n)
	limit := rapid.Custom(func(t *rapid.T) bucket.Limit {
		return bucket.Limit{
			Capacity: number.Draw(t, "capacity"), Burst: number.Draw(t, "burst"),
			Refill: number.Draw(t, "refill"), Period: number.Draw(t, "period"),
		}
	})
	return &codec.Write{
		Entity: rapid.String().Draw(t, "entity"),
		Image:  &bucket.Image{Refilled: number.Draw(t, "rf0"), Version: number.Draw(t, "cv")},
		Limits: rapid.SliceOfN(limit, n, n).Draw(t, "limits"),
		Cost:   vector.Draw(t, "cost"),
		Fill:   vector.Draw(t, "fill"),
		Lo:     vector.Draw(t, "lo"),
		Hi:     vector.Draw(t, "hi"),
		RF:     number.Draw(t, "rf"),
		CV:     number.Draw(t, "cv1"),
		TTL:    number.Draw(t, "ttl"),
		Op:     rapid.String().Draw(t, "op"),
		PlanOf: rapid.String().Draw(t, "po"),
	}
}

// TestReuse builds all paths of several resources with one Write: each comes out as from a new one.
func TestReuse(t *testing.T) {
	all := opened(t)
	paths := map[string]func(codec.Resource, *codec.Write){
		"Create": codec.Resource.Create, "Normal": codec.Resource.Normal, "Retry": codec.Resource.Retry,
		"Adjust": codec.Resource.Adjust, "Reshape": codec.Resource.Reshape,
		"undo": func(r codec.Resource, w *codec.Write) { // as the store makes it of an Adjust
			r.Adjust(w)
			w.Cond = "op = :undo"
			w.S(":undo", "a charge")
		},
		"guarded": func(r codec.Resource, w *codec.Write) { // as the store makes it of a write that gives back
			r.Retry(w)
			w.Cond += " AND op = :op0"
			w.S(":op0", "the last write")
		},
	}
	rapid.Check(t, func(t *rapid.T) {
		var w codec.Write
		var r codec.Resource
		var path string
		for range rapid.IntRange(2, 8).Draw(t, "writes") {
			if r == nil || rapid.Bool().Draw(t, "another") {
				r = rapid.SampledFrom(all).Draw(t, "resource")
				path = rapid.SampledFrom([]string{"Create", "Normal", "Retry", "Adjust", "Reshape", "undo",
					"guarded"}).Draw(t, "path")
			}
			fresh := drawWrite(t, len(r.Spec().Limits))
			w.Entity, w.Image, w.Limits, w.Cost, w.Fill = fresh.Entity, fresh.Image, fresh.Limits, fresh.Cost,
				fresh.Fill
			w.Lo, w.Hi, w.RF, w.CV, w.TTL, w.Op = fresh.Lo, fresh.Hi, fresh.RF, fresh.CV, fresh.TTL, fresh.Op
			w.PlanOf = fresh.PlanOf
			paths[path](r, fresh)
			paths[path](r, &w)
			if err := w.Check(); err != nil {
				t.Fatalf("%s of %s: %v", path, r.Spec().Resource, err)
			}
			if diff := cmp.Diff(fresh, &w, cmpopts.IgnoreUnexported(codec.Write{},
				types.AttributeValueMemberN{}, types.AttributeValueMemberS{})); diff != "" {
				t.Fatalf("%s of %s: - from a new one, + from one used before\n%s", path, r.Spec().Resource, diff)
			}
		}
	})
}

// TestDecodeAgain decodes items of different limits into one image: nothing of an earlier one stays behind.
func TestDecodeAgain(t *testing.T) {
	gpt4 := opened(t)[0]
	whole := limits.GPT4Bucket{
		Entity: "user-1", Refilled: 1, Version: 2, Op: "op", TTL: 3,
		RPM: bucket.Balance{Limit: bucket.Limit{Capacity: 1, Burst: 2, Refill: 3, Period: 4}, Tokens: -5},
		TPM: bucket.Balance{Limit: bucket.Limit{Capacity: 6, Burst: 7, Refill: 8, Period: 9}, Consumed: 10},
	}
	partial := limits.GPT4Bucket{Entity: "user-2", TPM: whole.RPM}
	more := whole.MarshalItem()
	for _, field := range []string{"tk", "cp", "bx", "ra", "rp", "tc"} {
		more["b_ipm_"+field] = codec.N(7)
	}
	var again bucket.Image
	for _, item := range []codec.Item{whole.MarshalItem(), partial.MarshalItem(), more, partial.MarshalItem(),
		whole.MarshalItem()} {
		var fresh bucket.Image
		if err := gpt4.Decode(&fresh, item); err != nil {
			t.Fatal(err)
		}
		if err := gpt4.Decode(&again, item); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(fresh, again); diff != "" {
			t.Errorf("- into a new image, + into one used before\n%s", diff)
		}
	}
}
