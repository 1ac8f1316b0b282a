package conformance

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/sluice-go/sluice/internal/test/conformance/named"
	"github.com/sluice-go/sluice/runtime"
	"github.com/sluice-go/sluice/runtime/bucket"
	"github.com/sluice-go/sluice/runtime/money"
	"github.com/sluice-go/sluice/runtime/store"
)

// amounts are the rpm and tpm of a key for one name, and the month in USD of an org for all names; 0
// inherits. Rpm and tpm refill by next to nothing while a test runs.
type amounts [3]int64

// schemaAmounts are those of limits.yaml, by place.
var schemaAmounts = map[string]amounts{
	"key": {10, 1000, 0}, "org": {0, 0, 5},
	"pro.key": {100, 3000, 0}, "pro.org": {0, 0, 50}, "enterprise.org": {0, 0, 500},
}

// limit returns a as the i-th limit.
func (a amounts) limit(i int) bucket.Limit {
	switch {
	case a[i] == 0:
		return bucket.Limit{}
	case i == 2:
		n := a[i] * int64(money.Unit)
		return bucket.Limit{Capacity: n, Burst: n, Period: (30 * 24 * time.Hour).Milliseconds()}
	}
	return per(a[i], 1, 24*time.Hour)
}

// limits returns those of a that a bucket has.
func (a amounts) limits(has [3]bool) []bucket.Limit {
	all := make([]bucket.Limit, len(a))
	for i := range a {
		if has[i] {
			all[i] = a.limit(i)
		}
	}
	return all
}

// override returns a as the typed override.
func (a amounts) override() (l named.ModelLimits) {
	if a[0] > 0 {
		l.RPM = rate(a.limit(0))
	}
	if a[1] > 0 {
		l.TPM = rate(a.limit(1))
	}
	if a[2] > 0 {
		month := money.Amount(a[2]) * money.Unit
		l.Month = &month
	}
	return l
}

// vector returns a in millitokens, and in billionths of a dollar.
func (a amounts) vector() []int64 {
	return []int64{a[0] * bucket.Milli, a[1] * bucket.Milli, a[2] * int64(money.Unit)}
}

// cost returns a as the typed cost.
func (a amounts) cost() named.ModelCost {
	return named.ModelCost{RPM: a[0], TPM: a[1], Month: money.Amount(a[2]) * money.Unit}
}

// ofName and ofAll say which of amounts a bucket of a name has, and one of all names.
var ofName, ofAll = [3]bool{true, true, false}, [3]bool{false, false, true}

// amountNames are the limits of amounts.
var amountNames = []string{named.ModelRPM.String(), named.ModelTPM.String(), named.ModelMonth.String()}

// nameMonth are the calendars of amounts.
var nameMonth = []*bucket.Calendar{nil, nil, planMonth}

// modelEntry is what the model knows of a name.
type modelEntry struct {
	resource string             // of its buckets
	at       map[string]amounts // key, pro.key
}

// nameWorld is one store, two processes that use it, and the model by which their calls are judged.
type nameWorld struct {
	T

	store           Store
	changes         int // that are random
	here, elsewhere *gateway

	buckets possible
	entries map[string]*modelEntry // by name
	plans   map[string]string      // of orgs
	changed map[string]amounts     // by resource and place: model@key-1, model/gpt-5@key-1, model@pro.key
}

func newNameWorld(t T, store Store) *nameWorld {
	t.Helper()
	w := &nameWorld{T: t, store: store, buckets: possible{}, entries: map[string]*modelEntry{},
		plans: map[string]string{}, changed: map[string]amounts{}}
	w.here, w.elsewhere = w.gateway(store.Clock), w.gateway(store.Clock)
	return w
}

// keyOf returns a key of an org.
func keyOf(id, org string) named.Key { return named.Key{ID: id, Org: named.Org{ID: org}} }

// limits returns the limits in force for the bucket of a key for a name, or for that of its org for all
// names. The first source that names a limit decides it.
func (w *nameWorld) limits(name string, key named.Key, has [3]bool) []bucket.Limit {
	on, entry := w.plans[key.Org.ID], w.entries[name]
	entity, kind := "key-"+key.ID, "key"
	var sources []amounts
	if has == ofAll {
		entity, kind = "org-"+key.Org.ID, "org"
	} else {
		sources = append(sources, w.changed[entry.resource+"@"+entity])
	}
	sources = append(sources, w.changed["model@"+entity])
	if has == ofName && on != "" {
		sources = append(sources, entry.at[on+"."+kind])
	}
	if has == ofName {
		sources = append(sources, entry.at[kind])
	}
	if on != "" {
		sources = append(sources, w.changed["model@"+on+"."+kind], schemaAmounts[on+"."+kind])
	}
	sources = append(sources, w.changed["model@"+kind], schemaAmounts[kind])
	all := make([]bucket.Limit, 3)
	for i := range all {
		for _, s := range slices.Backward(sources) {
			if has[i] && s[i] > 0 {
				all[i] = s.limit(i)
			}
		}
	}
	return all
}

// nameBucket is a bucket that a call charges: of a key for a name, or of its org for all names.
type nameBucket struct {
	key, entity string // the key is that of the model
	found       []*ideal
	cost        []int64
	has         [3]bool
}

// charged returns the buckets of a call, as it finds them.
func (w *nameWorld) charged(name string, key named.Key, cost amounts) []nameBucket {
	own := func(entity, resource string, has [3]bool) nameBucket {
		b := nameBucket{key: resource + "@" + entity, entity: entity, cost: cost.vector(), has: has}
		b.found = w.buckets.found(b.key, w.limits(name, key, has), nameMonth)
		for i := range b.cost {
			if !has[i] {
				b.cost[i] = 0
			}
		}
		return b
	}
	return []nameBucket{
		own("key-"+key.ID, w.entries[name].resource, ofName), own("org-"+key.Org.ID, named.Model, ofAll),
	}
}

// outcomes returns what may become of a call that charges buckets.
func (w *nameWorld) outcomes(buckets []nameBucket) (all []string) {
	admits, denies, now := true, false, w.store.Decided()
	for _, b := range buckets {
		fits := false
		for _, one := range b.found {
			no := one.denies(b.cost, now)
			fits, denies = fits || !no, denies || no
		}
		for i, l := range b.found[0].limits {
			if b.cost[i] > l.Burst {
				return []string{"too large"}
			}
		}
		admits = admits && fits
	}
	if admits {
		all = append(all, "admitted")
	}
	if denies {
		all = append(all, "denied")
	}
	return all
}

// call has a process take amounts on a name, or on an alias of it. It holds the outcome, and what is left,
// against the model.
func (w *nameWorld) call(p *gateway, name string, key named.Key, take amounts) *named.ModelLease {
	w.Helper()
	return w.callAs(p, name, name, key, take)
}

// callAs is call of an alias of name, or name itself.
func (w *nameWorld) callAs(
	p *gateway, alias, name string, key named.Key, take amounts,
) *named.ModelLease {
	w.Helper()
	r := w.named(p, alias)
	lease, err := r.Acquire(w.Context(), key, take.cost())
	buckets := w.charged(name, key, take)
	got, want := outcome(err), w.outcomes(buckets)
	if !slices.Contains(want, got) {
		w.Fatalf("%v of %v on %s: %s (%v), want %s", take, key, alias, got, err, strings.Join(want, " or "))
	}
	for _, b := range buckets {
		if got == "admitted" {
			w.buckets.take(b.key, b.found, b.cost, w.store.Decided())
		} else {
			w.buckets.leave(b.key, b.found)
		}
	}
	if denied, ok := errors.AsType[*store.DeniedError](err); ok && denied.Resource != w.entries[name].resource {
		w.Errorf("%s is denied by %+v", alias, denied)
	}
	w.look(r, name, key)
	return lease
}

// named returns a name of a process.
func (w *nameWorld) named(p *gateway, name string) *named.ModelResource {
	w.Helper()
	r, err := p.Model.Named(w.Context(), name)
	if err != nil {
		w.Fatalf("%s: %v", name, err)
	}
	return r
}

// look holds what a process sees of the buckets of a key for a name against the model.
func (w *nameWorld) look(r *named.ModelResource, name string, key named.Key) {
	w.Helper()
	seen, err := r.Peek(w.Context(), key)
	if err != nil {
		w.Fatalf("peek: %v", err)
	}
	now := w.store.Decided()
	for i, b := range w.charged(name, key, amounts{}) {
		got := &seen.Buckets[i]
		if got.Entity != b.entity {
			w.Fatalf("bucket %d is of %s, want %s", i, got.Entity, b.entity)
		}
		wrong := w.buckets.see(b.key, b.found, func(one *ideal) string {
			burst, left := inVector(got.Burst), inVector(got.Available)
			for j, l := range one.limits {
				has := [2]int64{left[j], burst[j]}
				want := [2]int64{max(0, one.available(j, now)), l.Burst}
				if j < 2 {
					want[0] -= want[0] % bucket.Milli
				}
				if has != want && b.has[j] {
					return fmt.Sprintf("%s has %d of %d %s, want %d of %d",
						b.key, has[0], has[1], amountNames[j], want[0], want[1])
				}
			}
			return ""
		})
		if wrong != "" {
			w.Fatalf("%s", wrong)
		}
	}
}

// inVector returns c in millitokens, and in billionths of a dollar.
func inVector(c named.ModelCost) []int64 {
	return []int64{c.RPM * bucket.Milli, c.TPM * bucket.Milli, int64(c.Month)}
}

// later lets pass what a change takes until it is in force everywhere.
func (w *nameWorld) later() { w.store.Advance(planCacheTTL) }

// put puts an org on a plan, as a process does; "" for none.
func (w *nameWorld) put(p *gateway, org, on string) {
	w.Helper()
	plan, err := named.ParsePlan(on)
	if on == "" {
		err = nil
	}
	if err == nil {
		err = p.SetPlan(w.Context(), named.Org{ID: org}, plan)
	}
	if err != nil {
		w.Fatalf("set plan: %v", err)
	}
	w.plans[org] = on
}

// change has a process change what is stored at a place for all names, or for one name. No amounts end that.
func (w *nameWorld) change(p *gateway, name, at string, to amounts) {
	w.Helper()
	config, plan := p.Config.Model.Config, func(on named.Plan, kind named.ModelEntity) *modelOverride {
		return p.Config.Model.Plan(on, kind)
	}
	resource := named.Model
	if name != "" {
		own := p.Config.Model.Named(name)
		config, plan, resource = own.Config, own.Plan, w.entries[name].resource
	}
	var o *modelOverride
	on, kind, ofPlan := store.SplitPlanAt(at)
	kinds := map[string]named.ModelEntity{"key": named.Key{}, "org": named.Org{}}
	switch {
	case ofPlan:
		which, err := named.ParsePlan(on)
		if err != nil {
			w.Fatalf("%v", err)
		}
		o = plan(which, kinds[kind])
	case kinds[at] != nil:
		o = config.Kind(kinds[at])
	default:
		entity, err := named.ParseEntity(at)
		if err != nil {
			w.Fatalf("%v", err)
		}
		o = config.Entity(entity.(named.ModelEntity))
	}
	_, rev, err := o.Get(w.Context())
	if err == nil {
		_, err = o.Set(w.Context(), to.override(), rev)
	}
	switch {
	case err != nil:
		w.Fatalf("change %s at %s: %v", name, at, err)
	case name != "" && (ofPlan || kinds[at] != nil):
		w.entries[name].at[at] = to
	default:
		w.changed[resource+"@"+at] = to
	}
}

// modelOverride is an override of model.
type modelOverride = runtime.Override[named.ModelLimits]
