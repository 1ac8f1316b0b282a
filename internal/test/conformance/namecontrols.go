package conformance

import (
	"context"
	"iter"
	"slices"
	"sync"
	"testing"

	"github.com/sluice-go/sluice/internal/test/conformance/named"
	"github.com/sluice-go/sluice/runtime/store"
)

// nameFault is a way for a store to be wrong about templates, and the behaviour that sees it.
type nameFault struct {
	name, only string
	want       string // a pattern of what the suite says of it

	// The fault does these to what is right, but for those that are nil.
	entry  func(e *store.Entry, asked string) (found bool)    // as the catalog has it; found says that it does
	part   func(*namelessSession, *store.Part) *store.Part    // of a call
	settle func(*store.Call) (done bool)                      // in place of a settle
	fill   func(*store.Spec, int) (spec *store.Spec, in bool) // of which bucket, if it is filled
}

// nameFaults are what the suite has to see.
var nameFaults = []nameFault{
	{name: "buckets on demand", only: "invented names", entry: onDemand,
		want: `^\d+ invented names are admitted, by \d+ calls`},
	{name: "a bucket of all names for each name", only: "a bucket of all names", part: allByName,
		want: `^model@org-7 has 3000000000 of 5000000000 month, want 1000000000`},
	{name: "one bucket for all names", only: "a bucket of each name", part: nameless,
		want: `^gpt-5 is denied by .*model/any|of .* on gpt-6: denied .*, want admitted`},
	{name: "slots of each name", only: "slots of all names", part: allByName,
		want: `^c: admitted .*, want denied`},
	{name: "aliases with buckets of their own", only: "aliases", entry: unaliased,
		want: `^gpt-5-2026-08-07 is denied|^model/gpt-5@key-1 has`},
	{name: "a catalog below plans", only: "precedence", part: belowPlans,
		want: `^model/gpt-\d@key-\S+ has \d+ of \d+ rpm, want`},
	{name: "a catalog of which numbers do not count", only: "precedence", part: unnumbered,
		want: `^model/gpt-\d@key-\S+ has \d+ of \d+ rpm, want`},
	{name: "a catalog that nobody reads again", only: "a catalog noticed", part: remembered,
		want: `^model/gpt-5@key-1 has \d+ of 10000 rpm, want \d+ of 4000`},
	{name: "prices of limits.yaml", only: "a price changed", entry: unpriced,
		want: `^2\.1 are spent, want 1\.1`},
	{name: "no settle of a removed name", only: "a name removed", settle: dropped,
		want: `^model/gpt-5@key-1 has \d+ of \d+ rpm, want`},
	{name: "new buckets for a resource that becomes a name", only: "buckets from before", entry: rebucketed,
		want: `^\[1 100 1\] of .* on gpt-4|^gpt-4@key-1 has`},
	{name: "a reset of all names that fills one", only: "reset of names", fill: anotherBucket,
		want: `^\[1 1 50\] of .*denied`},
}

// runNameControls holds that every fault is seen by the behaviour that is about it.
func runNameControls(t *testing.T, open Open) {
	t.Helper()
	for i := range nameFaults {
		f := &nameFaults[i]
		t.Run(f.name, func(t *testing.T) {
			at := slices.IndexFunc(nameBehaviours, func(b nameBehaviour) bool { return b.name == f.only })
			caught(t, &fault{want: f.want}, f.only, 1, func(w T, _ int) {
				store := open(t)
				store.Store = &wrongNames{store.Store, f}
				nameBehaviours[at].run(newNameWorld(w, store))
			})
		})
	}
}

// wrongNames is a store with a fault.
type wrongNames struct {
	store.Store
	fault *nameFault
}

// Open implements store.Store.
func (f *wrongNames) Open(env *store.Env, defs ...store.Definition) (store.Session, error) {
	session, err := f.Store.Open(env, defs...)
	return &namelessSession{Session: session, fault: f.fault, first: map[string]*store.Named{}}, err
}

// namelessSession is a session of wrongNames.
type namelessSession struct {
	store.Session
	fault *nameFault

	mu    sync.Mutex
	first map[string]*store.Named // by name, as it was seen first
}

// with calls do with call as the fault has it, and shows in call what became of that.
func (s *namelessSession) with(call *store.Call, do func(*store.Call) error) error {
	if s.fault.part == nil {
		return do(call)
	}
	s.mu.Lock()
	own := *call
	own.Parts = slices.Clone(call.Parts)
	for i := range own.Parts {
		part := own.Parts[i]
		part.Buckets = slices.Clone(part.Buckets)
		own.Parts[i] = *s.fault.part(s, &part)
	}
	s.mu.Unlock()
	err := do(&own)
	for i := range call.Parts {
		for j := range call.Parts[i].Buckets {
			entity := call.Parts[i].Buckets[j].Entity
			call.Parts[i].Buckets[j] = own.Parts[i].Buckets[j]
			call.Parts[i].Buckets[j].Entity = entity
		}
	}
	return err
}

// Acquire implements store.Session.
func (s *namelessSession) Acquire(ctx context.Context, call *store.Call) error {
	return s.with(call, func(call *store.Call) error { return s.Session.Acquire(ctx, call) })
}

// Peek implements store.Session.
func (s *namelessSession) Peek(ctx context.Context, call *store.Call) error {
	return s.with(call, func(call *store.Call) error { return s.Session.Peek(ctx, call) })
}

// Settle implements store.Session.
func (s *namelessSession) Settle(ctx context.Context, call *store.Call) error {
	if s.fault.settle != nil && s.fault.settle(call) {
		return nil
	}
	return s.with(call, func(call *store.Call) error { return s.Session.Settle(ctx, call) })
}

// Refused implements store.Session. A session may leave it to Acquire.
func (s *namelessSession) Refused(
	def store.Definition, chain []store.Link, cost []int64, now int64,
) *store.DeniedError {
	if s.fault.part != nil {
		return nil
	}
	return s.Session.Refused(def, chain, cost, now)
}

// Overrides implements store.Session.
func (s *namelessSession) Overrides() store.OverrideStore {
	if s.fault.fill == nil {
		return s.Session.Overrides()
	}
	return &wrongFills{s.Session.Overrides(), s.fault}
}

// wrongFills is an override store that fills other buckets than it is to.
type wrongFills struct {
	store.OverrideStore
	fault *nameFault
}

// Fill implements store.OverrideStore.
func (o *wrongFills) Fill(ctx context.Context, spec *store.Spec, kind int, entity, root string) error {
	spec, in := o.fault.fill(spec, kind)
	if !in {
		return nil
	}
	return o.OverrideStore.Fill(ctx, spec, kind, entity, root)
}

// Catalog implements store.Session.
func (s *namelessSession) Catalog() store.Catalog {
	if s.fault.entry == nil {
		return s.Session.Catalog()
	}
	return &wrongCatalog{s.Session.Catalog(), s.fault}
}

// wrongCatalog is a catalog that returns other entries than it has.
type wrongCatalog struct {
	store.Catalog
	fault *nameFault
}

// Get implements store.Catalog.
func (c *wrongCatalog) Get(ctx context.Context, s *store.Spec, name string) (store.Entry, bool, error) {
	e, found, err := c.Catalog.Get(ctx, s, name)
	if err != nil {
		return e, found, err
	}
	other := c.fault.entry(&e, name)
	return e, found || other, nil
}

// List implements store.Catalog.
func (c *wrongCatalog) List(ctx context.Context, s *store.Spec) iter.Seq2[store.Entry, error] {
	return func(yield func(store.Entry, error) bool) {
		for e, err := range c.Catalog.List(ctx, s) {
			if err == nil {
				c.fault.entry(&e, e.Name)
			}
			if !yield(e, err) {
				return
			}
		}
	}
}

// onDemand has an entry for every name.
func onDemand(e *store.Entry, asked string) (found bool) {
	if e.Name == "" {
		e.Name, e.Version = asked, 1
	}
	return true
}

// unaliased has aliases be names of their own.
func unaliased(e *store.Entry, _ string) (found bool) {
	e.Alias = ""
	return false
}

// unpriced has the prices of limits.yaml for all names.
func unpriced(e *store.Entry, _ string) (found bool) {
	e.Prices = nil
	return false
}

// rebucketed has new buckets for names that go on with those of a resource.
func rebucketed(e *store.Entry, _ string) (found bool) {
	e.Buckets = ""
	return false
}

// nameOf returns the name that a part is of, nil for none.
func nameOf(part *store.Part) *store.Named {
	name, _ := part.Def.(*store.Named)
	return name
}

// allByName has buckets of all names for each name.
func allByName(_ *namelessSession, part *store.Part) *store.Part {
	name := nameOf(part)
	for i := range part.Buckets {
		if b := &part.Buckets[i]; name != nil && name.Spec().Kinds[b.Kind].AllNames {
			b.Entity += "-" + name.Spec().Entry.Name
		}
	}
	return part
}

// entered has part be of another entry, which of makes of the right one.
func entered(part *store.Part, of func(e *store.Entry)) *store.Part {
	if name := nameOf(part); name != nil {
		e := *name.Spec().Entry
		of(&e)
		part.Def = store.NewNamed(name.Of, &e)
	}
	return part
}

// nameless has one bucket for all names of model.
func nameless(_ *namelessSession, part *store.Part) *store.Part {
	return entered(part, func(e *store.Entry) { e.Name, e.Buckets = "any", "" })
}

// unnumbered has entries without numbers.
func unnumbered(_ *namelessSession, part *store.Part) *store.Part {
	return entered(part, func(e *store.Entry) { e.Numbers, e.Version = nil, 1<<43 })
}

// belowPlans has plans decide before the catalog does.
func belowPlans(_ *namelessSession, part *store.Part) *store.Part {
	return entered(part, func(e *store.Entry) {
		for _, b := range part.Buckets {
			if b.Plan.Name != "" {
				e.Numbers, e.Version = nil, 1<<43
			}
		}
	})
}

// remembered goes by the first entry of each name for ever.
func remembered(s *namelessSession, part *store.Part) *store.Part {
	if name := nameOf(part); name != nil && name.Of.Spec().Resource == named.Model {
		key := name.Spec().Entry.Name
		if s.first[key] == nil {
			s.first[key] = name
		}
		part.Def = s.first[key]
	}
	return part
}

// dropped settles nothing of a name.
func dropped(call *store.Call) (done bool) { return nameOf(&call.Parts[0]) != nil }

// anotherBucket fills the bucket of a name in place of that of all names.
func anotherBucket(spec *store.Spec, kind int) (_ *store.Spec, in bool) {
	return spec, !spec.Kinds[kind].AllNames
}
