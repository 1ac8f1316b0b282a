package codectest

import (
	"errors"
	"maps"
	"slices"
	"testing"

	"github.com/sluice-go/sluice/generated"
	"github.com/sluice-go/sluice/internal/test/definitions"
	"github.com/sluice-go/sluice/runtime/bucket"
	"github.com/sluice-go/sluice/runtime/dynamo/codec"
	"github.com/sluice-go/sluice/runtime/store"
)

// gpt4 is a generated resource of two limits.
func gpt4(t *testing.T) codec.Resource {
	t.Helper()
	all, err := definitions.ForDynamo(generated.New)
	if err != nil || all[generated.GPT4] == nil {
		t.Fatalf("no gpt-4 among the resources: %v", err)
	}
	return all[generated.GPT4]
}

// faults returns the errors of each check of a resource, and of a bucket whose balances are given in an
// order.
func faults(r codec.Resource, b Bucket, balances ...*bucket.Balance) map[string]error {
	found := make(map[string]error)
	kind := slices.IndexFunc(r.Spec().Kinds, func(k store.Kind) bool { return k.Name == "user" })
	c := newCase(r, kind, b, balances)
	for _, check := range c.checks() {
		if err := errors.Join(check.run()...); err != nil {
			found[check.name] = err
		}
	}
	return found
}

// broken is a resource with one fault.
type broken struct {
	codec.Resource
	create   func(*codec.Write)
	normal   func(*codec.Write)
	decode   func(*bucket.Image, codec.Item) error
	balances func(*bucket.Image, codec.Item) error
}

func (b broken) Create(w *codec.Write) {
	b.Resource.Create(w)
	if b.create != nil {
		b.create(w)
	}
}

func (b broken) Normal(w *codec.Write) {
	b.Resource.Normal(w)
	if b.normal != nil {
		b.normal(w)
	}
}

func (b broken) Decode(dst *bucket.Image, item codec.Item) error {
	err := b.Resource.Decode(dst, item)
	if b.decode != nil {
		return b.decode(dst, item)
	}
	return err
}

func (b broken) DecodeBalances(dst *bucket.Image, item codec.Item) error {
	err := b.Resource.DecodeBalances(dst, item)
	if b.balances != nil {
		return b.balances(dst, item)
	}
	return err
}

// TestSound: a generated resource has no fault.
func TestSound(t *testing.T) {
	var b generated.GPT4Bucket
	if found := faults(gpt4(t), &b, &b.RPM, &b.TPM); len(found) > 0 {
		t.Error(found)
	}
}

// TestFaults: each fault of a resource is found, by the check that is there for it.
func TestFaults(t *testing.T) {
	var kept []byte // what a fault allocates
	for name, tc := range map[string]struct {
		fault broken
		check string
	}{
		"an expression with a placeholder too many": {
			broken{normal: func(w *codec.Write) { w.Cond += " AND :unknown" }}, "expressions",
		},
		"an operand too many": {broken{normal: func(w *codec.Write) {
			w.Values[":unknown"] = codec.N(1)
		}}, "expressions"},
		"a builder that allocates": {
			broken{normal: func(*codec.Write) {
				kept = append([]byte(nil), make([]byte, 64)...)
				kept = append([]byte(nil), kept...)
			}},
			"allocations",
		},
		"an item of other tokens": {broken{create: func(w *codec.Write) {
			w.Item["b_rpm_tk"] = codec.N(7)
		}}, "image"},
		"an item of another time": {broken{create: func(w *codec.Write) { w.Item["rf"] = codec.N(7) }}, "image"},
		"an item without a limit": {broken{create: func(w *codec.Write) { delete(w.Item, "b_rpm_tk") }}, "image"},
		"a reader that swaps limits": {
			broken{decode: func(i *bucket.Image, _ codec.Item) error {
				slices.Reverse(i.Balances)
				return nil
			}}, "image",
		},
		"a reader that accepts anything": {broken{decode: func(*bucket.Image, codec.Item) error {
			return nil
		}}, "malformed"},
		"a reader that sees no gap": {
			broken{decode: func(i *bucket.Image, _ codec.Item) error { clear(i.Missing); return nil }}, "image",
		},
		"balances of other limits": {
			broken{balances: func(i *bucket.Image, _ codec.Item) error {
				slices.Reverse(i.Balances)
				return nil
			}}, "balances",
		},
		"balances with more than tokens": {
			broken{balances: func(i *bucket.Image, _ codec.Item) error {
				i.Balances[0].Consumed = 1
				return nil
			}}, "balances",
		},
		"balances that need not be there": {
			broken{balances: func(*bucket.Image, codec.Item) error { return nil }}, "balances",
		},
	} {
		t.Run(name, func(t *testing.T) {
			fault := tc.fault
			fault.Resource = gpt4(t)
			var b generated.GPT4Bucket
			if found := faults(fault, &b, &b.RPM, &b.TPM); found[tc.check] == nil {
				t.Errorf("%s finds nothing; found by others: %v", tc.check, slices.Sorted(maps.Keys(found)))
			}
		})
	}
	_ = kept
}

// TestOrder: balances that are not in schema order are found.
func TestOrder(t *testing.T) {
	var b generated.GPT4Bucket
	if found := faults(gpt4(t), &b, &b.TPM, &b.RPM); found["item"] == nil {
		t.Error("item finds nothing")
	}
}

// TestSame: items differ by a value, by its type, and by one attribute more or less.
func TestSame(t *testing.T) {
	want := codec.Item{"a": codec.N(1), "b": codec.S("x")}
	for name, tc := range map[string]struct {
		got    codec.Item
		faults int
	}{
		"same":          {codec.Item{"a": codec.N(1), "b": codec.S("x")}, 0},
		"another value": {codec.Item{"a": codec.N(2), "b": codec.S("x")}, 1},
		"another type":  {codec.Item{"a": codec.S("1"), "b": codec.S("x")}, 1},
		"one less":      {codec.Item{"a": codec.N(1)}, 1},
		"one more":      {codec.Item{"a": codec.N(1), "b": codec.S("x"), "c": codec.N(1)}, 1},
	} {
		if errs := same(tc.got, want); len(errs) != tc.faults {
			t.Errorf("%s: %v, want %d faults", name, errs, tc.faults)
		}
	}
}
