package dynamo

import (
	"strings"
	"testing"
	"time"

	"github.com/sluice-go/sluice/internal/test/storetest"
	"github.com/sluice-go/sluice/runtime"
	"github.com/sluice-go/sluice/runtime/bucket"
	"github.com/sluice-go/sluice/runtime/dynamo/codec"
	"github.com/sluice-go/sluice/runtime/dynamo/internal/wire"
	"github.com/sluice-go/sluice/runtime/dynamo/operator"
	"github.com/sluice-go/sluice/runtime/internal/item"
	"github.com/sluice-go/sluice/runtime/store"
)

// onPlans is a generated resource with plans, whose specification a test gives: its code stores and reads po.
type onPlans struct {
	codec.Resource
	spec *store.Spec
}

// Spec implements store.Definition.
func (r *onPlans) Spec() *store.Spec { return r.spec }

// Decode implements codec.Resource.
func (r *onPlans) Decode(dst *bucket.Image, stored codec.Item) error {
	if err := r.Resource.Decode(dst, stored); err != nil {
		return err
	}
	d := codec.Decoder{Item: stored}
	d.PlanOf(dst)
	return d.Err()
}

// Create implements codec.Resource.
func (r *onPlans) Create(w *codec.Write) {
	r.Resource.Create(w)
	w.Item[item.PlanOf] = codec.S(w.PlanOf)
}

// Reshape implements codec.Resource.
func (r *onPlans) Reshape(w *codec.Write) {
	r.Resource.Reshape(w)
	w.Update = strings.Replace(w.Update, "SET ", "SET po = :po, ", 1)
	w.S(":po", w.PlanOf)
}

// Kinds of planned.
const (
	ofOrg = iota
	ofTeam
	ofKey
)

// perMinute are limits rpm and tpm; one of 0 is none.
func perMinute(rpm, tpm int64) []bucket.Limit {
	limits := make([]bucket.Limit, 2)
	for i, n := range [...]int64{rpm, tpm} {
		if n != 0 {
			limits[i] = bucket.Per(n, time.Minute)
		}
	}
	return limits
}

// planned is gpt-4 for keys, which are below teams of orgs. Orgs are on plans, of which the resource knows
// these.
func planned(t testing.TB, plans ...string) *onPlans {
	t.Helper()
	gpt4, _ := generated(t)
	spec := *gpt4.Spec()
	spec.Revision, spec.Cascade = 1, store.CascadeAtomic
	spec.Kinds = []store.Kind{
		ofOrg:  {Name: "org", Prefix: "org-", Parent: store.NoParent, PerCall: make([]int64, 2)},
		ofTeam: {Name: "team", Prefix: "team-", Parent: ofOrg, PerCall: make([]int64, 2)},
		ofKey: {
			Name: "key", Prefix: "key-", Parent: ofTeam, PerCall: make([]int64, 2), Limits: perMinute(100, 1000),
		},
	}
	numbers := map[string][]bucket.Limit{
		"free": perMinute(10, 0), "pro": perMinute(200, 5000), "gold": perMinute(400, 9000),
	}
	spec.Plans = &store.Plans{Kind: ofOrg, Names: plans}
	for _, name := range plans {
		spec.Plans.Limits = append(spec.Plans.Limits, [][]bucket.Limit{ofKey: numbers[name]})
	}
	return &onPlans{gpt4, &spec}
}

// key is a key with the team and the org that its caller gives, and looks up the rest.
type key struct{ id, team, org string }

// Chain implements store.Entity.
func (k key) Chain(dst []store.Link) []store.Link {
	dst = append(dst, store.Link{Kind: ofKey, ID: k.id, Lookup: k.team == ""})
	if k.team != "" {
		dst = append(dst, store.Link{Kind: ofTeam, ID: k.team, Lookup: k.org == ""})
	}
	if k.org != "" {
		dst = append(dst, store.Link{Kind: ofOrg, ID: k.org})
	}
	return dst
}

// k1 is a key of org-1, given.
var k1 = key{"1", "1", "1"}

// office is a process with one resource that has plans.
type office struct {
	*runtime.Limiter
	*runtime.Resource[key, tokens]
	*events
	session store.Session
	spec    *store.Spec
}

// opened keeps the session of a store, which may be wrapped.
type opened struct {
	*Store
	wrap    func(store.Session) store.Session
	session store.Session
}

// Open implements store.Store.
func (o *opened) Open(env *store.Env, defs ...store.Definition) (s store.Session, err error) {
	if o.session, err = o.Store.Open(env, defs...); err != nil || o.wrap == nil {
		return o.session, err
	}
	return o.wrap(o.session), nil
}

func (e *engine) office(t testing.TB, api wire.API, def store.Definition, opts ...runtime.Option) *office {
	t.Helper()
	return e.officeOn(t, &opened{Store: newStore(api, e.table)}, def, opts...)
}

// officeOn is office with a store of any kind.
func (e *engine) officeOn(t testing.TB, s *opened, def store.Definition, opts ...runtime.Option) *office {
	t.Helper()
	o := &office{events: &events{}, spec: def.Spec()}
	l, resources := storetest.Open[key](t, s, append(e.options(o.events), opts...), def)
	o.Limiter, o.Resource, o.session = l, resources[0], s.session
	return o
}

// puts puts an org on a plan.
func (o *office) puts(t testing.TB, org, plan string) {
	t.Helper()
	if err := o.session.Members().SetPlan(t.Context(), "org-"+org, plan, nil); err != nil {
		t.Fatal(err)
	}
}

// follows stores the parent of an entity, both as stored.
func (o *office) follows(t testing.TB, entity, parent string) {
	t.Helper()
	m := store.Member{Entity: entity, Parent: parent, Cascade: true}
	if err := o.session.Members().Put(t.Context(), m); err != nil {
		t.Fatal(err)
	}
}

// changes sets the numbers of what At says, whatever they were.
func (o *office) changes(t testing.TB, at string, limits []bucket.Limit) {
	t.Helper()
	s := store.FullOverride(at, limits)
	old, err := o.session.Overrides().Get(t.Context(), o.spec, at)
	if err != nil {
		t.Fatal(err)
	}
	s.Revision = old[0].Revision
	if _, err := o.session.Overrides().Set(t.Context(), o.spec, s); err != nil {
		t.Fatal(err)
	}
}

// takes acquires so many calls of a key, which must be admitted.
func (o *office) takes(t testing.TB, k key, rpm int64) {
	t.Helper()
	if _, err := o.Acquire(t.Context(), k, tokens{rpm, 0}); err != nil {
		t.Fatal(err)
	}
}

// has checks the bucket of a key: its limits as stored, and whose plan it has.
func (e *engine) has(t testing.TB, k key, planOf string, limits []bucket.Limit) *bucket.Image {
	t.Helper()
	img, err := operator.Inspect(t.Context(), e.client, e.table, "key-"+k.id, "gpt-4")
	if err != nil || img == nil {
		t.Fatalf("bucket %v, error %v", img, err)
	}
	for i, name := range []string{"rpm", "tpm"} {
		if b, _ := img.Find(name); b.Limit != limits[i] || img.PlanOf != planOf {
			t.Errorf("%s is %v by the plan of %q, want %v by that of %q", name, b.Limit, img.PlanOf, limits[i], planOf)
		}
	}
	return img
}
