package dynamo

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	kinds "github.com/sluice-go/sluice/gen/testdata/golden/kinds/out"
	"github.com/sluice-go/sluice/internal/test/definitions"
	"github.com/sluice-go/sluice/runtime"
	"github.com/sluice-go/sluice/runtime/bucket"
	"github.com/sluice-go/sluice/runtime/dynamo/codec"
	"github.com/sluice-go/sluice/runtime/dynamo/internal/wire"
	"github.com/sluice-go/sluice/runtime/dynamo/operator"
	"github.com/sluice-go/sluice/runtime/internal/item"
	"github.com/sluice-go/sluice/runtime/store"
)

// template is resource model for keys of orgs, which are on plans. Calls have rpm by name, and tpm of all
// names together.
type template struct {
	codec.ByKind
	spec *store.Spec
}

// Kinds of template.
const (
	modelOrg = iota
	modelKey
	modelOrgAll
	modelKeyAll
)

// Spec implements store.Definition.
func (d *template) Spec() *store.Spec { return d.spec }

// Of implements codec.ByKind.
func (d *template) Of(kind int) codec.Resource {
	has := d.spec.Kinds[kind].Limits
	if has == nil {
		return nil
	}
	generated := d.ByKind.Spec().Kinds
	like := func(k store.Kind) bool {
		return k.Limits != nil && k.Has(0) == !has[0].Absent() && k.Has(1) == !has[1].Absent()
	}
	r := d.ByKind.Of(slices.IndexFunc(generated, like))
	return &onPlans{&inModel{r, d.spec}, d.spec}
}

// inModel is generated code whose resource is model.
type inModel struct {
	codec.Resource
	spec *store.Spec
}

// Key implements codec.Resource.
func (r *inModel) Key(entity string) codec.Item { return codec.Key(entity, r.spec.Resource) }

// Create implements codec.Resource.
func (r *inModel) Create(w *codec.Write) {
	if w.Resource == "" {
		w.Resource = r.spec.Resource
	}
	r.Resource.Create(w)
}

// templated returns a template whose orgs are on these plans.
func templated(t testing.TB, plans ...string) *template {
	t.Helper()
	defs, err := definitions.Of(kinds.New)
	if err != nil {
		t.Fatal(err)
	}
	at := slices.IndexFunc(defs, func(def store.Definition) bool { return def.Spec().Resource == kinds.GPT4 })
	kind := func(name string, parent int, allNames bool, limits []bucket.Limit) store.Kind {
		return store.Kind{
			Name: name, Prefix: name + "-", Parent: parent, PerCall: make([]int64, 2),
			AllNames: allNames, Limits: limits,
		}
	}
	spec := &store.Spec{
		Resource: "model", Revision: 1, Limits: []string{"rpm", "tpm"}, Usages: []string{"input", "output"},
		Kinds: []store.Kind{
			modelOrg:    kind("org", store.NoParent, false, nil),
			modelKey:    kind("key", modelOrg, false, perMinute(100, 0)),
			modelOrgAll: kind("org", store.NoParent, true, perMinute(0, 10_000)),
			modelKeyAll: kind("key", modelOrg, true, perMinute(0, 1000)),
		},
		Plans: &store.Plans{Kind: modelOrg, Names: plans},
	}
	numbers := map[string][][]bucket.Limit{
		"free": {modelKey: perMinute(10, 0), modelKeyAll: perMinute(0, 100)},
		"pro":  {modelKey: perMinute(200, 0), modelOrgAll: perMinute(0, 50_000), modelKeyAll: perMinute(0, 5000)},
	}
	for _, name := range plans {
		spec.Plans.Limits = append(spec.Plans.Limits, append(numbers[name], make([][]bucket.Limit,
			len(spec.Kinds)-len(numbers[name]))...))
	}
	return &template{defs[at].(codec.ByKind), spec}
}

// apiKey is a key of an org.
type apiKey struct{ id, org string }

// Chain implements store.Entity.
func (k apiKey) Chain(dst []store.Link) []store.Link {
	return append(dst, store.Link{Kind: modelKey, ID: k.id}, store.Link{Kind: modelOrg, ID: k.org})
}

// name is a name of a template in a process.
type name struct {
	*runtime.Resource[apiKey, tokens]
	prices []int64
}

// gateway is a process with a template.
type gateway struct {
	*runtime.Limiter
	*runtime.Names[name]
	*events
	session store.Session
	spec    *store.Spec
}

func (e *engine) gateway(
	t testing.TB, api wire.API, def store.Definition, opts ...storeChange,
) *gateway {
	t.Helper()
	g := &gateway{events: &events{}, spec: def.Spec()}
	s := &opened{Store: newStore(api, e.table, opts...)}
	b := runtime.NewBuilder(s, e.options(g.events)...)
	g.Names = runtime.BindNames[apiKey](b, def,
		func(c tokens, dst []int64) []int64 { return append(dst, c...) }, func(v []int64) tokens { return v },
		func(r *runtime.Resource[apiKey, tokens], prices []int64) name { return name{r, prices} })
	var err error
	if g.Limiter, err = b.Limiter(); err != nil {
		t.Fatal(err)
	}
	g.session = s.session
	return g
}

// enters sets the entry of a name, whatever it was, but for its revision.
func (g *gateway) enters(t testing.TB, e store.Entry) {
	t.Helper()
	old, _, err := g.session.Catalog().Get(t.Context(), g.spec, e.Name)
	if err != nil {
		t.Fatal(err)
	}
	e.Revision = old.Revision
	if _, err := g.session.Catalog().Set(t.Context(), g.spec, e); err != nil {
		t.Fatal(err)
	}
}

// restating is an entry with rpm at places: key, or pro.key.
func restating(name string, rpm map[string]int64) store.Entry {
	e := store.Entry{Name: name}
	for at, n := range rpm {
		e.Numbers = append(e.Numbers, store.FullOverride(at, perMinute(n, 0)))
	}
	return e
}

// takes acquires a call of a key on a name, which must be admitted.
func (g *gateway) takes(t testing.TB, name string, k apiKey, cost tokens) *runtime.Lease[tokens] {
	t.Helper()
	r, err := g.Named(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	lease, err := r.Acquire(t.Context(), k, cost)
	if err != nil {
		t.Fatal(err)
	}
	return lease
}

// denied holds that a call of a key on a name is denied, and returns how.
func (g *gateway) denied(t testing.TB, name string, k apiKey, cost tokens) *store.DeniedError {
	t.Helper()
	r, err := g.Named(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	_, err = r.Acquire(t.Context(), k, cost)
	denied, ok := errors.AsType[*store.DeniedError](err)
	if !ok {
		t.Fatalf("%v, want a denial", err)
	}
	return denied
}

// changes sets the numbers of what At says on a resource, whatever they were.
func (g *gateway) changes(t testing.TB, spec *store.Spec, at string, limits []bucket.Limit) {
	t.Helper()
	(&office{session: g.session, spec: spec}).changes(t, at, limits)
}

// named is the specification of a name of g.
func (g *gateway) named(name string) *store.Spec {
	return store.NewNamed(&template{spec: g.spec}, &store.Entry{Name: name}).Spec()
}

// left checks what an entity's bucket of a resource has of each limit, and the limit's capacity.
func (e *engine) left(t testing.TB, resource, entity string, want map[string][2]int64) *bucket.Image {
	t.Helper()
	img, err := operator.Inspect(t.Context(), e.client, e.table, entity, resource)
	if err != nil || img == nil {
		t.Fatalf("%s of %s: bucket %v, error %v", resource, entity, img, err)
	}
	if len(img.Extra) != len(want) {
		t.Errorf("%s of %s has %d limits, want %d", resource, entity, len(img.Extra), len(want))
	}
	for limit, numbers := range want {
		b, _ := img.Find(limit)
		got := [2]int64{bucket.Available(b, img.Refilled, e.clock.Now().UnixMilli()) / bucket.Milli,
			b.Capacity / bucket.Milli}
		if got != numbers {
			t.Errorf("%s of %s has %d of %d %s, want %d of %d",
				resource, entity, got[0], got[1], limit, numbers[0], numbers[1])
		}
	}
	return img
}

// buckets returns the keys of all buckets, sorted: model/gpt-5@key-1.
func (e *engine) buckets(t testing.TB) (all []string) {
	t.Helper()
	out, err := e.client.Scan(t.Context(), &dynamodb.ScanInput{TableName: &e.table})
	if err != nil {
		t.Fatal(err)
	}
	for _, stored := range out.Items {
		key := item.KeyOf(stored)
		if resource, ok := strings.CutPrefix(key.SK, item.BucketPrefix); ok {
			all = append(all, resource+"@"+strings.TrimPrefix(key.PK, item.EntityPrefix))
		}
	}
	slices.Sort(all)
	return all
}
