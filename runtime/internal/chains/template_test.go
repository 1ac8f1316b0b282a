package chains_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/sluice-go/sluice/runtime/bucket"
	"github.com/sluice-go/sluice/runtime/internal/chains"
	"github.com/sluice-go/sluice/runtime/store"
)

// template is a template for keys of teams of orgs. A key has a limit by name and one for all names, a team
// has none, and an org has one for all names alone.
type template struct{}

func (template) Spec() *store.Spec {
	one, none := bucket.Per(1, time.Second), bucket.Limit{}
	kind := func(name string, parent int, allNames bool, limits ...bucket.Limit) store.Kind {
		return store.Kind{Name: name, Prefix: name + "-", Parent: parent, AllNames: allNames, Limits: limits}
	}
	return &store.Spec{Resource: "model", Limits: []string{"rpm", "parallel", "month"}, Kinds: []store.Kind{
		kind("key", 1, false, one, none, none),
		kind("team", 2, false),
		kind("org", store.NoParent, false),
		kind("key", 1, true, none, one, none),
		kind("org", store.NoParent, true, none, none, one),
	}}
}

type links []store.Link

func (l links) Chain(dst []store.Link) []store.Link { return append(dst, l...) }

// parents are stored.
type parents map[string]string

func (p parents) Member(_ context.Context, entity string) (store.Member, bool, error) {
	return store.Member{Entity: entity, Parent: p[entity], Cascade: true}, true, nil
}

// TestTemplate: a call on a name charges the name's buckets, and those of all names together.
func TestTemplate(t *testing.T) {
	spec := store.NewNamed(template{}, &store.Entry{Name: "gpt-5"}).Spec()
	stored := func(buckets []store.Bucket) (all []string) {
		for _, b := range buckets {
			all = append(all, spec.ResourceOf(b.Kind)+"@"+b.Entity)
		}
		return all
	}
	const want = "[model/gpt-5@key-1 model@key-1 model@org-3]"
	given := links{{Kind: 0, ID: "1"}, {Kind: 1, ID: "2"}, {Kind: 2, ID: "3"}}
	for name, entity := range map[string]links{"given": given, "looked up": {{Kind: 0, ID: "1", Lookup: true}}} {
		part, chain := store.Part{}, chains.Chain{Spec: spec}
		if _, err := chain.Follow(&part, entity, nil); err != nil {
			t.Fatal(name, err)
		}
		if err := chain.Resolve(t.Context(), &part, parents{"key-1": "team-2", "team-2": "org-3"}); err != nil {
			t.Fatal(name, err)
		}
		if got := fmt.Sprint(stored(part.Buckets)); got != want {
			t.Errorf("%s: charges %s, want %s", name, got, want)
		}
	}
	part, chain := store.Part{}, chains.Chain{Spec: spec}
	_, err := chain.Follow(&part, given[2:], nil)
	if got := fmt.Sprint(stored(part.Buckets)); err != nil || got != "[model@org-3]" {
		t.Errorf("an org charges %s, %v, want its bucket of all names", got, err)
	}

	var buckets []store.Bucket
	charged, ok := chains.Charged(spec, given)
	for _, link := range charged {
		buckets = append(buckets, store.Bucket{Entity: spec.Kinds[link.Kind].Prefix + link.ID, Kind: link.Kind})
	}
	if got := fmt.Sprint(stored(buckets)); !ok || got != want {
		t.Errorf("Charged returns %s, %v, want %s", got, ok, want)
	}
	if _, ok := chains.Charged(spec, links{{Kind: 0, ID: "1", Lookup: true}}); ok {
		t.Error("a chain that look-ups continue is complete")
	}
	for i, want := range []bool{true, true, true} {
		if spec.Charges(0, i) != want {
			t.Errorf("a call of a key is charged for limit %d: %v", i, !want)
		}
	}
	if spec.Charges(2, 0) || !spec.Charges(2, 2) {
		t.Error("a call of an org is charged for a key's limit, or not for its own")
	}
}

// TestTemplateItself: without a name there are no buckets by name. Tools look at a template like that.
func TestTemplateItself(t *testing.T) {
	spec := template{}.Spec()
	if spec.AllNames(0) != store.NoKind || spec.ResourceOf(3) != "model" {
		t.Errorf("buckets of all names at %d, of resource %s", spec.AllNames(0), spec.ResourceOf(3))
	}
}
