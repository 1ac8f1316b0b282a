package conformance

import (
	"errors"
	"fmt"
	"maps"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sluice-go/sluice/internal/test/conformance/named"
	"github.com/sluice-go/sluice/runtime"
	"github.com/sluice-go/sluice/runtime/bucket"
	"github.com/sluice-go/sluice/runtime/money"
	"github.com/sluice-go/sluice/runtime/store"
)

// nameTwo: a key has a bucket for each name, and one for all of them, charged together or not at all.
func nameTwo(w *nameWorld) {
	for _, spec := range []string{"a", "b", "c"} {
		w.enterIn(named.Voice, store.Entry{Name: spec})
	}
	take := func(p *gateway, name string, want string, left ...int64) {
		w.Helper()
		r, err := p.Voice.Named(w.Context(), name)
		if err != nil {
			w.Fatalf("%s: %v", name, err)
		}
		_, err = r.Acquire(w.Context(), k1, named.VoiceCost{RPM: 4, Day: 8})
		if got := outcome(err); got != want {
			w.Errorf("%s: %s (%v), want %s", name, got, err, want)
		}
		seen, err := r.Peek(w.Context(), k1)
		if err != nil {
			w.Fatalf("peek: %v", err)
		}
		own, all := seen.Buckets[0].Available, seen.Buckets[1].Available
		if own.RPM != left[0] || all.Day != left[1] || own.Day != 0 || all.RPM != 0 {
			w.Errorf("%s has %v, and all names %v, want %d rpm and %d a day", name, own, all, left[0], left[1])
		}
	}
	take(w.here, "a", "admitted", 6, 12)
	take(w.elsewhere, "b", "admitted", 6, 4)
	take(w.here, "c", "denied", 10, 4)
	take(w.here, "a", "denied", 6, 4)
	w.store.Advance(24 * time.Hour)
	take(w.here, "c", "admitted", 6, 12)
	take(w.elsewhere, "c", "admitted", 2, 4)
	if n := w.here.odd.Load(); n != 0 {
		w.Errorf("%d requests are not told as those of a name of voice", n)
	}
}

// nameSlots: calls on all names together are in flight.
func nameSlots(w *nameWorld) {
	for _, name := range []string{"a", "b", "c"} {
		w.enterIn(named.Job, store.Entry{Name: name})
	}
	own, other := newPauses(w.store.Clock), newPauses(w.store.Clock)
	here, elsewhere := w.gateway(own), w.gateway(other)
	var held []*named.JobLease // one that is garbage gives its slot back
	defer func() {
		for _, lease := range held {
			lease.Release(w.Context())
		}
		own.end(true)
		other.end(true)
	}()
	start := func(p *gateway, name, want string) *named.JobLease {
		w.Helper()
		r, err := p.Job.Named(w.Context(), name)
		if err != nil {
			w.Fatalf("%s: %v", name, err)
		}
		lease, err := r.Acquire(w.Context(), k1, named.JobCost{})
		if err == nil {
			held = append(held, lease)
		}
		if got := outcome(err); got != want {
			w.Fatalf("%s: %s (%v), want %s", name, got, err, want)
		}
		return lease
	}
	first := start(here, "a", "admitted")
	start(elsewhere, "b", "admitted")
	start(here, "c", "denied")
	first.Keep(w.Context())
	start(elsewhere, "c", "admitted")
	start(here, "a", "denied")
}

// enterIn stores an entry of a template other than model.
func (w *nameWorld) enterIn(template string, e store.Entry) {
	w.Helper()
	spec := store.Spec{Resource: template}
	if _, err := w.here.session.Catalog().Set(w.Context(), &spec, e); err != nil {
		w.Fatalf("set %s: %v", e.Name, err)
	}
}

// nameRemoved: open leases of a name that is removed settle. If it comes back, so do its buckets.
func nameRemoved(w *nameWorld) {
	w.enter(entryOf("gpt-5", map[string]amounts{"key": {8, 0, 0}}))
	lease := w.call(w.here, "gpt-5", k1, amounts{3, 500, 2})
	w.remove("gpt-5")
	w.isUnknown(w.here, "gpt-5")
	w.isUnknown(w.elsewhere, "gpt-5")
	if err := lease.Settle(w.Context(), named.ModelCost{RPM: 1, TPM: 100, Month: money.Unit}); err != nil {
		w.Fatalf("settle: %v", err)
	}
	give := func(key string, cost ...int64) {
		for _, b := range w.buckets[key] {
			b.take(cost, w.store.Decided())
		}
	}
	give("model/gpt-5@key-1", -2000, -400_000, 0)
	give("model@org-7", 0, 0, -int64(money.Unit))
	w.enter(entryOf("gpt-5", map[string]amounts{"key": {9, 0, 0}}))
	w.call(w.here, "gpt-5", k1, amounts{5, 100, 1})
	w.call(w.elsewhere, "gpt-5", k1, amounts{2, 800, 1})
}

// nameMoved: a resource that becomes a name of a template goes on with its buckets, and with what entities
// have of it. The calls of the template charge an org too, so in a store with roots their buckets are others.
func nameMoved(w *nameWorld) {
	for _, key := range []named.Key{k1, keyOf("2", "7")} {
		if _, err := w.here.GPT4.Acquire(w.Context(), key, named.GPT4Cost{RPM: 6, TPM: 700}); err != nil {
			w.Fatalf("acquire: %v", err)
		}
		at := "gpt-4@key-" + key.ID
		b := newIdeal(schemaAmounts["key"].limits(ofName), nameMonth)
		b.take(amounts{6, 700, 0}.vector(), w.store.Decided())
		w.buckets[at] = []*ideal{b}
	}
	own := w.here.Config.GPT4.Entity(k1)
	nine := rate(amounts{9, 0, 0}.limit(0))
	if _, err := own.Set(w.Context(), named.GPT4Limits{RPM: nine}, ""); err != nil {
		w.Fatalf("override: %v", err)
	}
	w.changed["gpt-4@key-1"] = amounts{9, 0, 0}
	all := w.here.Config.GPT4.Kind(k1)
	more := rate(amounts{0, 1500, 0}.limit(1))
	if _, err := all.Set(w.Context(), named.GPT4Limits{TPM: more}, ""); err != nil {
		w.Fatalf("override: %v", err)
	}
	if _, err := w.here.GPT4.Acquire(w.Context(), keyOf("2", "7"), named.GPT4Cost{RPM: 1}); err != nil {
		w.Fatalf("acquire: %v", err)
	}
	w.buckets["gpt-4@key-2"][0].reshape((amounts{10, 1500, 0}).limits(ofName))
	w.buckets["gpt-4@key-2"][0].take(amounts{1, 0, 0}.vector(), w.store.Decided())

	if w.store.Rooted {
		w.buckets = map[string][]*ideal{}
	}
	w.enter(store.Entry{Name: "gpt-4", Buckets: "gpt-4"})
	for _, p := range []*gateway{w.here, w.elsewhere} {
		w.call(p, "gpt-4", k1, amounts{1, 100, 1})
		w.call(p, "gpt-4", keyOf("2", "7"), amounts{1, 100, 1})
	}
	w.call(w.here, "gpt-4", k1, amounts{2, 1, 0})
	w.call(w.here, "gpt-4", keyOf("2", "7"), amounts{2, 1, 0})
	w.change(w.here, "gpt-4", "key-1", amounts{20, 0, 0})
	w.call(w.here, "gpt-4", k1, amounts{1, 1, 0})
}

// nameReset: the bucket of one name is filled, or that of all names.
func nameReset(w *nameWorld) {
	w.enter(store.Entry{Name: "gpt-5"})
	w.enter(store.Entry{Name: "gpt-6"})
	w.put(w.here, "7", "pro")
	for _, name := range []string{"gpt-5", "gpt-6"} {
		w.call(w.here, name, k1, amounts{5, 100, 10})
	}
	w.change(w.here, "gpt-5", "pro.key", amounts{80, 0, 0})
	w.fill(w.here, "gpt-5", k1)
	for _, name := range []string{"gpt-5", "gpt-6"} {
		w.call(w.here, name, k1, amounts{1, 1, 1})
		w.store.Advance(2 * time.Second)
		w.call(w.elsewhere, name, k1, amounts{1, 1, 1})
	}
	w.fillAll(w.here, "7")
	w.call(w.here, "gpt-6", k1, amounts{1, 1, 50})
	w.call(w.here, "gpt-5", k1, amounts{1, 1, 1})
}

// fill has a process fill the bucket of a key for a name, if there is one.
func (w *nameWorld) fill(p *gateway, name string, key named.Key) {
	w.Helper()
	if err := p.Config.Model.Named(name).Reset(w.Context(), key); err != nil {
		w.Fatalf("reset: %v", err)
	}
	at := w.entries[name].resource + "@key-" + key.ID
	w.buckets.fill(at, w.limits(name, key, ofName), nameMonth, w.store.Decided())
}

// fillAll has a process fill the bucket of an org for all names, if there is one.
func (w *nameWorld) fillAll(p *gateway, org string) {
	w.Helper()
	if err := p.Config.Model.Reset(w.Context(), named.Org{ID: org}); err != nil {
		w.Fatalf("reset: %v", err)
	}
	limits := w.limits("", keyOf("", org), ofAll)
	w.buckets.fill(named.Model+"@org-"+org, limits, nameMonth, w.store.Decided())
}

// nameCrowd: callers of two processes on many names have together what all names have.
func nameCrowd(w *nameWorld) {
	for i := range 8 {
		w.enter(store.Entry{Name: fmt.Sprint("gpt-", i)})
	}
	var done sync.WaitGroup
	var spent atomic.Int64
	failure := make(chan error, 1000)
	for i := range 8 {
		p := []*gateway{w.here, w.elsewhere}[i%2]
		done.Go(func() {
			for range 9 {
				r, err := p.Model.Named(w.Context(), fmt.Sprint("gpt-", i))
				if err == nil {
					_, err = r.Acquire(w.Context(), k1, named.ModelCost{Month: money.Unit / 5})
				}
				switch outcome(err) {
				case "admitted":
					spent.Add(1)
				case "failed":
					failure <- err
				}
			}
		})
	}
	done.Wait()
	close(failure)
	for err := range failure {
		w.Errorf("%v", err)
	}
	if n := spent.Load(); n != 25 {
		w.Errorf("%d calls of a fifth of a dollar are admitted, want 25", n)
	}
}

// nameOutage: without a catalog no name is known, whatever the failure policy. One that was read stays.
func nameOutage(w *nameWorld) {
	w.enter(store.Entry{Name: "gpt-5"})
	w.enter(entryOf("gpt-6", map[string]amounts{"key": {3, 0, 0}, "pro.key": {6, 0, 0}}))
	w.put(w.here, "7", "pro")
	w.call(w.here, "gpt-5", k1, amounts{1, 1, 1})
	alone := w.gateway(w.store.Clock)
	w.call(alone, "gpt-5", k1, amounts{1, 1, 1})
	w.store.Break()
	_, err := w.elsewhere.Model.Named(w.Context(), "gpt-5")
	if _, down := errors.AsType[*store.UnavailableError](err); !down {
		w.Errorf("no catalog: %v, want an UnavailableError", err)
	}
	w.later()
	r := w.named(w.here, "gpt-5")
	_, err = r.Acquire(w.Context(), k1, named.ModelCost{})
	if _, down := errors.AsType[*store.UnavailableError](err); !down {
		w.Errorf("in an outage: %v, want an UnavailableError", err)
	}
	w.locally(alone)
	w.store.Repair()
	w.later()
	w.call(w.here, "gpt-5", k1, amounts{1, 1, 1})
	w.call(w.elsewhere, "gpt-5", k1, amounts{1, 1, 1})
}

// locally holds which numbers decide by the policy Local on buckets of gpt-6 that the process has never seen.
// They are those of the name's entry, then those of the org's plan, as far as it knows that.
func (w *nameWorld) locally(p *gateway) {
	w.Helper()
	r := w.named(p, "gpt-6")
	for _, test := range []struct {
		org  string
		cost named.ModelCost
		want string
	}{
		{"7", named.ModelCost{RPM: 7}, "too large"}, {"7", named.ModelCost{RPM: 6, TPM: 2500}, "admitted"},
		{"7", named.ModelCost{}, "denied"}, {"never-seen", named.ModelCost{RPM: 4}, "too large"},
		{"never-seen", named.ModelCost{RPM: 3, TPM: 1000}, "admitted"},
	} {
		lease, err := r.Acquire(w.Context(), keyOf("of-"+test.org, test.org), test.cost,
			runtime.OnUnavailable(runtime.Local))
		if got := outcome(err); got != test.want {
			w.Errorf("%+v of a key of org %s in an outage: %s (%v), want %s", test.cost, test.org, got, err, test.want)
		}
		if err == nil {
			lease.Keep(w.Context())
		}
	}
}

// nameOthers: a binary that does not know a limit, a plan and a usage leaves what an entry has of them.
func nameOthers(w *nameWorld) {
	spec, catalog := w.here.spec, w.here.session.Catalog()
	older, plans := *spec, *spec.Plans
	older.Limits, older.Usages, plans.Names = []string{"rpm"}, []string{"cached"}, []string{"pro"}
	older.Plans = &plans
	get := func(by *store.Spec) store.Entry {
		w.Helper()
		e, found, err := catalog.Get(w.Context(), by, "gpt-5")
		if err != nil || !found {
			w.Fatalf("get: found %v, %v", found, err)
		}
		return e
	}
	set := func(by *store.Spec, e store.Entry) {
		w.Helper()
		if _, err := catalog.Set(w.Context(), by, e); err != nil {
			w.Fatalf("set: %v", err)
		}
	}
	e := entryOf("gpt-5", map[string]amounts{
		"key": {20, 500, 0}, "pro.key": {30, 0, 0}, "enterprise.key": {40, 0, 0},
	})
	e.Prices = []int64{7, 8, 9}
	set(spec, e)
	e = get(&older)
	e.Prices = []int64{-1}
	e.Numbers = []store.Stored{{At: "key", Limits: []*bucket.Limit{new(amounts{21, 0, 0}.limit(0))}}}
	set(&older, e)
	want := map[string]string{
		"price input": "7", "price output": "9", "key.rpm": "21000 21000 1000 86400000",
		"key.tpm": "500000 500000 1000 86400000", "enterprise.key.rpm": "40000 40000 1000 86400000",
	}
	if e = get(spec); !maps.Equal(e.Fields(spec), want) {
		w.Errorf("an older binary leaves %v, want %v", e.Fields(spec), want)
	}
	set(&older, store.Entry{Name: "gpt-5", Alias: "gpt-6", Revision: e.Revision})
	if e = get(spec); len(e.Fields(spec)) != 1 {
		w.Errorf("an alias has %v", e.Fields(spec))
	}
	for field, e := range map[string]store.Entry{
		"name": {Name: "a#b"}, "alias": {Name: "a", Alias: "a#b"}, "prices": {Name: "a", Prices: make([]int64, 4)},
		"numbers": {Name: "a", Numbers: []store.Stored{{At: "key", Limits: make([]*bucket.Limit, 4)}}},
	} {
		_, err := catalog.Set(w.Context(), spec, e)
		if invalid, ok := errors.AsType[*store.InvalidError](err); !ok || invalid.Field != field {
			w.Errorf("%v: %v, want an InvalidError of %s", e, err, field)
		}
	}
}

// nameShared: a claim on a resource and one on the name that has its buckets are not acquired together: their
// limits may differ. Claims on one name, or its alias, are.
func nameShared(w *nameWorld) {
	w.enter(store.Entry{Name: "gpt-4", Buckets: "gpt-4"})
	w.enter(store.Entry{Name: "latest", Alias: "gpt-4"})
	old, alias := w.named(w.here, "gpt-4"), w.named(w.here, "latest")
	for _, claims := range [][]runtime.AnyClaim{
		{w.here.GPT4.Claim(k1, named.GPT4Cost{RPM: 1}), old.Claim(k1, named.ModelCost{RPM: 1})},
		{old.Claim(k1, named.ModelCost{RPM: 1}), w.here.GPT4.Claim(k1, named.GPT4Cost{RPM: 1})},
	} {
		err := w.here.AcquireAll(w.Context(), claims...)
		if invalid, ok := errors.AsType[*store.InvalidError](err); !ok || invalid.Field != "claims" {
			w.Errorf("a resource and its name together: %v, want an InvalidError of the claims", err)
		}
	}
	together := []runtime.AnyClaim{
		old.Claim(k1, named.ModelCost{RPM: 3}), alias.Claim(k1, named.ModelCost{RPM: 4, Month: money.Unit}),
	}
	if !w.store.Rooted { // there, claims of one call have one root
		together = append(together, w.here.GPT4.Claim(keyOf("2", "7"), named.GPT4Cost{RPM: 1}))
	}
	if err := w.here.AcquireAll(w.Context(), together...); err != nil {
		w.Fatalf("a name and its alias together: %v", err)
	}
	seen, err := old.Peek(w.Context(), k1)
	if err != nil {
		w.Fatalf("peek: %v", err)
	}
	if got := seen.Available; got.RPM != 3 || got.Month != 4*money.Unit {
		w.Errorf("%v are left, want 3 rpm and 4 USD", got)
	}
}
