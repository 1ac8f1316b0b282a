package conformance

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/sluice-go/sluice/internal/test/conformance/named"
	"github.com/sluice-go/sluice/internal/test/longform"
	"github.com/sluice-go/sluice/runtime/money"
	"github.com/sluice-go/sluice/runtime/store"
)

// nameBehaviour is a behaviour of templates.
type nameBehaviour struct {
	name string
	run  func(*nameWorld)
}

// nameBehaviours are all of them.
var nameBehaviours = []nameBehaviour{
	{"a bucket of each name", nameOwn},
	{"a bucket of all names", nameAll},
	{"two buckets of one key", nameTwo},
	{"slots of all names", nameSlots},
	{"aliases", nameAliases},
	{"invented names", nameInvented},
	{"precedence", namePrecedence},
	{"a catalog noticed", nameNoticed},
	{"a price changed", namePrice},
	{"a name removed", nameRemoved},
	{"another binary's entry", nameOthers},
	{"buckets from before", nameMoved},
	{"a resource and its name at once", nameShared},
	{"reset of names", nameReset},
	{"callers of names at once", nameCrowd},
	{"no catalog", nameOutage},
	{"no reads of names", nameUnread},
	{"random edits of a catalog", nameRandom},
}

// runNames holds a store to the behaviours of templates.
func runNames(t *testing.T, open Open) {
	t.Helper()
	for _, b := range nameBehaviours {
		t.Run(b.name, func(t *testing.T) {
			store := open(t)
			w := newNameWorld(t, store)
			w.changes = longform.Count(t, "changes of catalogs", store.most(2_000, 100), 100)
			b.run(w)
		})
	}
}

// k1 is a key of org 7.
var k1 = keyOf("1", "7")

// nameOwn: a name's limits are its own, for each key.
func nameOwn(w *nameWorld) {
	w.enter(store.Entry{Name: "gpt-5"})
	w.enter(store.Entry{Name: "gpt-6"})
	w.call(w.here, "gpt-5", k1, amounts{8, 100, 1})
	w.call(w.here, "gpt-5", k1, amounts{3, 1, 0})
	w.call(w.elsewhere, "gpt-6", k1, amounts{10, 1000, 1})
	w.call(w.elsewhere, "gpt-6", k1, amounts{1, 0, 0})
	w.call(w.here, "gpt-5", keyOf("2", "7"), amounts{10, 900, 0})
	w.call(w.here, "gpt-5", k1, amounts{11, 0, 0})

	lease := w.call(w.here, "gpt-5", k1, amounts{1, 500, 0})
	if err := lease.Settle(w.Context(), named.ModelCost{RPM: 1, TPM: 20}); err != nil {
		w.Fatalf("settle: %v", err)
	}
	for _, b := range w.buckets["model/gpt-5@key-1"] {
		b.take([]int64{0, -480_000, 0}, w.store.Decided())
	}
	w.look(w.named(w.here, "gpt-5"), "gpt-5", k1)
	_, err := w.named(w.here, "gpt-5").Acquire(w.Context(), k1, named.ModelCost{RPM: 9})
	denied, ok := errors.AsType[*store.DeniedError](err)
	if !ok || !denied.By(named.ModelRPM) || denied.By(named.ModelTPM) || denied.Resource != "model/gpt-5" {
		w.Errorf("9 rpm: %v, want a denial by rpm of model/gpt-5", err)
	}
}

// nameAll: what an org spends on any name is of one allowance.
func nameAll(w *nameWorld) {
	for _, name := range []string{"gpt-5", "gpt-6", "gpt-7"} {
		w.enter(store.Entry{Name: name})
	}
	w.call(w.here, "gpt-5", k1, amounts{1, 1, 2})
	w.call(w.here, "gpt-6", k1, amounts{1, 1, 2})
	w.call(w.elsewhere, "gpt-7", keyOf("2", "7"), amounts{1, 1, 2})
	w.call(w.elsewhere, "gpt-7", keyOf("2", "7"), amounts{1, 1, 1})
	w.call(w.here, "gpt-7", keyOf("3", "8"), amounts{1, 1, 5})
	w.put(w.here, "7", "pro")
	w.call(w.here, "gpt-5", k1, amounts{1, 1, 20})
	w.call(w.here, "gpt-6", k1, amounts{1, 1, 25})
	w.store.Advance(31 * 24 * time.Hour)
	w.call(w.here, "gpt-6", k1, amounts{1, 1, 50})
	w.call(w.here, "gpt-5", k1, amounts{1, 1, 1})
}

// nameAliases: an alias is its name: it has the name's buckets and numbers.
func nameAliases(w *nameWorld) {
	w.enter(entryOf("gpt-5", map[string]amounts{"key": {4, 0, 0}}))
	w.enter(store.Entry{Name: "gpt-5-2026-08-07", Alias: "gpt-5"})
	w.callAs(w.here, "gpt-5-2026-08-07", "gpt-5", k1, amounts{3, 1, 1})
	w.call(w.here, "gpt-5", k1, amounts{1, 1, 1})
	w.callAs(w.elsewhere, "gpt-5-2026-08-07", "gpt-5", k1, amounts{1, 1, 1})
	w.enter(store.Entry{Name: "latest", Alias: "gpt-5"}) // by itself, as it is new
	w.callAs(w.here, "latest", "gpt-5", k1, amounts{1, 1, 1})
	w.remove("gpt-5")
	for _, alias := range []string{"gpt-5-2026-08-07", "latest"} {
		w.isUnknown(w.here, alias)
	}
}

// isUnknown holds that the catalog does not have a name.
func (w *nameWorld) isUnknown(p *gateway, name string) {
	w.Helper()
	_, err := p.Model.Named(w.Context(), name)
	if _, ok := errors.AsType[*store.UnknownNameError](err); !ok {
		w.Errorf("%s: %v, want an UnknownNameError", name, err)
	}
}

// nameInvented: names that callers make up make no bucket, admit nothing, and cost at most 50 reads a second.
func nameInvented(w *nameWorld) {
	w.enter(store.Entry{Name: "gpt-5"})
	w.call(w.here, "gpt-5", k1, amounts{1, 1, 1})
	buckets := w.count()
	calls, gets := w.here.calls.Load(), w.here.gets.Load()
	const seconds, each = 10, 1000
	admitted := 0
	for second := range seconds {
		for i := range each {
			r, err := w.here.Model.Named(w.Context(), fmt.Sprintf("invented-%d-%d", second, i))
			if err == nil {
				if _, err = r.Acquire(w.Context(), k1, named.ModelCost{}); err == nil {
					admitted++
				}
			}
			if _, ok := errors.AsType[*store.UnknownNameError](err); !ok && admitted == 0 {
				w.Fatalf("an invented name: %v, want an UnknownNameError", err)
			}
		}
		w.store.Advance(time.Second)
	}
	if n := w.here.gets.Load() - gets; n > 50*seconds {
		w.Errorf("%d reads for %d invented names in %d seconds, want at most 50 a second", n, seconds*each, seconds)
	}
	if n, made := w.here.calls.Load()-calls, w.count()-buckets; admitted != 0 || n != 0 || made != 0 {
		w.Errorf("%d invented names are admitted, by %d calls, and have made %d buckets", admitted, n, made)
	}
	w.call(w.here, "gpt-5", k1, amounts{1, 1, 1})
}

// count returns how many buckets there are, 0 if the store does not say.
func (w *nameWorld) count() int {
	if w.store.Buckets == nil {
		return 0
	}
	return w.store.Buckets()
}

// namePrecedence: the first of eight sources that has a limit decides it, in the process that changes it at
// once.
func namePrecedence(w *nameWorld) {
	w.enter(store.Entry{Name: "gpt-5"})
	w.enter(entryOf("gpt-6", map[string]amounts{"pro.key": {70, 0, 0}}))
	p := w.here
	for i, step := range []func(){
		func() {},
		func() { w.change(p, "", "key", amounts{20, 1200, 0}) },
		func() { w.change(p, "", "org", amounts{0, 0, 6}) },
		func() { w.put(p, "7", "pro") },
		func() { w.change(p, "", "pro.key", amounts{120, 0, 0}) },
		func() { w.change(p, "", "pro.org", amounts{0, 0, 60}) },
		func() { w.change(p, "gpt-5", "key", amounts{30, 1300, 0}) },
		func() { w.change(p, "gpt-5", "pro.key", amounts{40, 0, 0}) },
		func() { w.change(p, "gpt-5", "enterprise.key", amounts{45, 0, 0}) },
		func() { w.change(p, "", "key-1", amounts{50, 0, 0}) },
		func() { w.change(p, "", "org-7", amounts{0, 0, 70}) },
		func() { w.change(p, "gpt-5", "key-1", amounts{60, 900, 0}) },
		func() { w.put(p, "7", "") },
		func() { w.change(p, "gpt-5", "key-1", amounts{0, 800, 0}) },
		func() { w.change(p, "", "key-1", amounts{}) },
		func() { w.change(p, "gpt-5", "key-1", amounts{}) },
		func() { w.change(p, "gpt-5", "key", amounts{}) },
		func() { w.put(p, "7", "pro") },
		func() { w.change(p, "gpt-5", "pro.key", amounts{}) },
		func() { w.change(p, "", "pro.key", amounts{}) },
		func() { w.change(p, "", "org-7", amounts{}) },
		func() { w.put(p, "7", "") },
	} {
		step()
		for _, name := range []string{"gpt-5", "gpt-6"} {
			w.call(w.here, name, k1, amounts{1, 1, 0})
			w.call(w.here, name, keyOf(fmt.Sprint("new-", i), "7"), amounts{1, 1, 0})
		}
		w.later()
		w.call(w.elsewhere, "gpt-5", k1, amounts{1, 1, 0})
		w.call(w.elsewhere, "gpt-6", keyOf(fmt.Sprint("new-", i), "7"), amounts{1, 1, 0})
	}
}

// nameNoticed: a process goes by an entry that another one changes once its cache has expired, though no
// other process has charged the buckets since. So it does by a new name, and by one that has left.
func nameNoticed(w *nameWorld) {
	w.enter(store.Entry{Name: "gpt-5"})
	w.call(w.elsewhere, "gpt-5", k1, amounts{1, 1, 1})
	for _, n := range []int64{4, 8, 6, 0} {
		w.enter(entryOf("gpt-5", map[string]amounts{"key": {n, 0, 0}}))
		w.call(w.elsewhere, "gpt-5", k1, amounts{1, 1, 0})
	}
	w.isUnknown(w.elsewhere, "gpt-6")
	w.enter(store.Entry{Name: "gpt-6"})
	w.call(w.elsewhere, "gpt-6", k1, amounts{1, 1, 1})
	w.remove("gpt-6")
	w.isUnknown(w.elsewhere, "gpt-6")
}

// namePrice: a call is settled by the prices of its acquire, and the next one goes by new ones.
func namePrice(w *nameWorld) {
	w.enter(store.Entry{Name: "gpt-5", Prices: []int64{-1, -1, 2_000_000_000}})
	before := w.named(w.here, "gpt-5")
	cost := named.ModelUsage{Input: 100, Output: 500}.Cost(before.Prices)
	lease, err := before.Acquire(w.Context(), k1, cost)
	if err != nil {
		w.Fatalf("acquire: %v", err)
	}
	w.spent(before, money.Amount(1.1*float64(money.Unit))) // 0.1 and 1
	w.enter(store.Entry{Name: "gpt-5", Prices: []int64{500_000_000, -1, 8_000_000_000}})
	after := w.named(w.here, "gpt-5")
	cost = named.ModelUsage{Input: 100, Output: 200}.Cost(before.Prices)
	if err := lease.Settle(w.Context(), cost); err != nil {
		w.Fatalf("settle: %v", err)
	}
	w.spent(after, money.Unit/2)
	cost = named.ModelUsage{Input: 100, Output: 200}.Cost(after.Prices) // 0.05 and 1.6
	if _, err := after.Acquire(w.Context(), k1, cost); err != nil {
		w.Fatalf("acquire: %v", err)
	}
	w.spent(after, money.Amount(2.15*float64(money.Unit)))
}

// spent holds what org 7 has spent of its month.
func (w *nameWorld) spent(r *named.ModelResource, want money.Amount) {
	w.Helper()
	seen, err := r.Peek(w.Context(), k1)
	if err != nil {
		w.Fatalf("peek: %v", err)
	}
	if b := seen.Buckets[1]; b.Burst.Month-b.Available.Month != want {
		w.Errorf("%v are spent, want %v", b.Burst.Month-b.Available.Month, want)
	}
}

// nameUnread: in the steady state a call is a request for each of its buckets, reads nothing, and finds its
// name without a look at the store or an allocation.
func nameUnread(w *nameWorld) {
	w.enter(entryOf("gpt-5", map[string]amounts{"key": {100, 0, 0}}))
	w.call(w.here, "gpt-5", k1, amounts{1, 1, 0})
	w.call(w.here, "gpt-5", k1, amounts{1, 1, 0})
	events, reads, lists := w.here.events.Load(), w.here.reads.Load(), w.here.lists.Load()
	for range 30 {
		r := w.named(w.here, "gpt-5")
		if _, err := r.Acquire(w.Context(), k1, named.ModelCost{TPM: 1}); err != nil {
			w.Fatalf("acquire: %v", err)
		}
	}
	events, reads = w.here.events.Load()-events, w.here.reads.Load()-reads
	if lists = w.here.lists.Load() - lists; events > 60 || reads != 0 || lists != 0 {
		w.Errorf("%d requests for 30 calls, of which %d read, and %d of the catalog", events, reads, lists)
	}
	if n := w.here.odd.Load(); n != 0 {
		w.Errorf("%d requests are not told as those of a name of model", n)
	}
	if n := testing.AllocsPerRun(100, func() {
		_, _ = w.here.Model.Named(w.Context(), "gpt-5")
	}); n != 0 {
		w.Errorf("%v allocations for a known name, want 0", n)
	}
}
