package chains_test

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/sluice-go/sluice/runtime/bucket"
	"github.com/sluice-go/sluice/runtime/internal/chains"
	"github.com/sluice-go/sluice/runtime/store"
)

// entity is its own chain.
type entity []store.Link

func (e entity) Chain(dst []store.Link) []store.Link { return append(dst, e...) }

// family stores of each entity a parent with the same id.
type family struct {
	kinds []store.Kind
	alone bool // calls on the entities charge only their own buckets, as NoCascade says
}

func (f family) Member(_ context.Context, stored string) (store.Member, bool, error) {
	m := store.Member{Entity: stored, Cascade: !f.alone}
	i := slices.IndexFunc(f.kinds, func(k store.Kind) bool { return k.Prefix+"1" == stored })
	if parent := f.kinds[i].Parent; parent != store.NoParent {
		m.Parent = f.kinds[parent].Prefix + "1"
	}
	return m, true, nil
}

// specOf returns a resource of kinds that are each below the next; those without a bucket are false.
func specOf(cascade store.Cascade, buckets ...bool) *store.Spec {
	spec := &store.Spec{Resource: "gpt-4", Limits: []string{"tpm"}, Cascade: cascade}
	for i, has := range buckets {
		kind := store.Kind{Name: fmt.Sprint("kind", i), Prefix: fmt.Sprint("kind", i, "-"), Parent: i + 1}
		if i == len(buckets)-1 {
			kind.Parent = store.NoParent
		}
		if has {
			kind.Limits = []bucket.Limit{{Capacity: 1}}
		}
		spec.Kinds = append(spec.Kinds, kind)
	}
	return spec
}

// differ returns how the buckets of a chain differ that is given, is looked up in members from its first
// given links on, or is charged without the store. It returns "" if they do not.
func differ(ctx context.Context, spec *store.Spec, given int, members chains.Members) string {
	var whole entity
	for i := range spec.Kinds {
		whole = append(whole, store.Link{Kind: i, ID: "1"})
	}
	short := slices.Clone(whole[:given])
	short[given-1].Lookup = given < len(whole)
	var all, looked store.Part
	chain := chains.Chain{Spec: spec}
	if _, err := chain.Follow(&all, whole, nil); err != nil || chain.Unresolved() {
		return fmt.Sprint("the whole chain is not complete: ", err)
	}
	chain = chains.Chain{Spec: spec}
	if _, err := chain.Follow(&looked, short, nil); err != nil {
		return err.Error()
	}
	continues := chain.Continues()
	if err := chain.Resolve(ctx, &looked, members); err != nil || chain.Unresolved() {
		return fmt.Sprint("look-ups do not end: ", err)
	}
	if want, got := entities(all.Buckets), entities(looked.Buckets); !slices.Equal(got, want) {
		return fmt.Sprintf("looked up are %q, want %q", got, want)
	}
	left, ok := chains.Charged(spec, slices.Clone(short))
	if ok == continues {
		return fmt.Sprintf("charged without the store: %t, with look-ups: %t", ok, continues)
	}
	var got []string
	for _, l := range left {
		got = append(got, spec.Kinds[l.Kind].Prefix+l.ID)
	}
	if want := entities(all.Buckets); ok && !slices.Equal(got, want) {
		return fmt.Sprintf("charged are %q, want %q", got, want)
	}
	return ""
}

func entities(buckets []store.Bucket) (ids []string) {
	for _, b := range buckets {
		ids = append(ids, b.Entity)
	}
	return ids
}

// TestChains: a call charges the same buckets, whether its chain is given or looked up. Without the store it
// is charged only if it needs no look-ups.
func TestChains(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		buckets := append([]bool{true}, rapid.SliceOfN(rapid.Bool(), 0, 4).Draw(t, "buckets above")...)
		cascade := rapid.SampledFrom([]store.Cascade{
			store.CascadeNone, store.CascadeCompensated, store.CascadeAtomic,
		}).Draw(t, "cascade")
		spec, given := specOf(cascade, buckets...), rapid.IntRange(1, len(buckets)).Draw(t, "given")
		if wrong := differ(t.Context(), spec, given, family{kinds: spec.Kinds}); wrong != "" {
			t.Fatal(wrong)
		}
	})
}

// TestChainsControl: differ finds a chain that look-ups cut short.
func TestChainsControl(t *testing.T) {
	spec := specOf(store.CascadeAtomic, true, false, true)
	const want = `looked up are ["kind0-1"], want ["kind0-1" "kind2-1"]`
	if wrong := differ(t.Context(), spec, 1, family{kinds: spec.Kinds, alone: true}); wrong != want {
		t.Errorf("differ says %q, want %q", wrong, want)
	}
}
