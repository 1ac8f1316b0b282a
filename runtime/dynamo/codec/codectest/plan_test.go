package codectest

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/sluice-go/sluice/generated"
	"github.com/sluice-go/sluice/runtime/bucket"
	"github.com/sluice-go/sluice/runtime/dynamo/codec"
	"github.com/sluice-go/sluice/runtime/store"
)

// planned is a resource that has plans, as generated for one.
type planned struct{ codec.Resource }

func (p planned) Spec() *store.Spec {
	spec := *p.Resource.Spec()
	spec.Plans = new(store.Plans)
	return &spec
}

func (planned) Create(w *codec.Write) {
	codec.CreateOnPlan(w, generated.GPT4, "attribute_not_exists(PK)", "rpm", "tpm")
}

func (p planned) Reshape(w *codec.Write) {
	p.Resource.Reshape(w)
	codec.ReshapeOnPlan(w, strings.Replace(w.Update, "SET ", "SET po = :po, ", 1), w.Cond, "rpm", "tpm")
}

func (p planned) Decode(dst *bucket.Image, stored codec.Item) error {
	d := codec.Decoder{Item: stored}
	if err := p.Resource.Decode(dst, stored); err != nil {
		return err
	}
	d.PlanOf(dst)
	return d.Err()
}

// plannedBucket is the bucket of planned.
type plannedBucket struct {
	generated.GPT4Bucket
	planOf string
}

func (b *plannedBucket) MarshalItem() codec.Item {
	i := bucket.Image{
		Refilled: b.Refilled, Version: b.Version, Op: b.Op, TTL: b.TTL, PlanOf: b.planOf,
		Balances: []bucket.Balance{b.RPM, b.TPM},
	}
	return codec.MarshalOnPlan(b.Entity, generated.GPT4, &i, "rpm", "tpm")
}

func (b *plannedBucket) UnmarshalItem(stored codec.Item) error {
	var i bucket.Image
	d := codec.Decoder{Item: stored}
	d.PlanOf(&i)
	b.planOf = i.PlanOf
	if err := d.Err(); err != nil {
		return err
	}
	return b.GPT4Bucket.UnmarshalItem(stored)
}

// TestPlan: a resource with plans has no fault, and each fault in what it says of them is found.
func TestPlan(t *testing.T) {
	sound := planned{gpt4(t)}
	var b plannedBucket
	if found := faults(sound, &b, &b.RPM, &b.TPM); len(found) > 0 {
		t.Error(found)
	}
	for name, tc := range map[string]struct {
		fault codec.Resource
		check string
	}{
		"an item without po": {broken{Resource: sound, create: func(w *codec.Write) {
			delete(w.Item, "po")
		}}, "image"},
		"an item of another's plan": {broken{Resource: sound, create: func(w *codec.Write) {
			w.Item["po"] = codec.S("org-2")
		}}, "image"},
		"a reshape that keeps po": {altered{sound, "Reshape", func(w *codec.Write) {
			w.Update = strings.Replace(w.Update, "po = :po, ", "", 1)
			delete(w.Values, ":po")
		}}, "plan"},
		"a reshape that stores another po": {altered{sound, "Reshape", func(w *codec.Write) {
			w.Values[":po"] = codec.S("org-2")
		}}, "plan"},
		"a charge that stores po": {altered{sound, "Normal", func(w *codec.Write) {
			w.Update = strings.Replace(w.Update, "SET ", "SET po = :po, ", 1)
			w.S(":po", w.PlanOf)
		}}, "plan"},
		"an image without po": {broken{Resource: sound, decode: func(i *bucket.Image, _ codec.Item) error {
			i.PlanOf = ""
			return nil
		}}, "plan"},
		"an image that keeps the po of another": {broken{
			Resource: sound, decode: func(i *bucket.Image, stored codec.Item) error {
				if stored["po"] == nil {
					i.PlanOf = "org-2"
				}
				return nil
			},
		}, "plan"},
	} {
		if found := faults(tc.fault, &b, &b.RPM, &b.TPM); found[tc.check] == nil {
			t.Errorf("%s: %s finds nothing; found by others: %v", name, tc.check, slices.Sorted(maps.Keys(found)))
		}
	}
}
