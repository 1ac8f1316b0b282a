package dynamo

import (
	"fmt"
	"math/rand/v2"
	stdruntime "runtime"
	"slices"
	"testing"
	"time"

	"github.com/sluice-go/sluice/internal/test/longform"
	"github.com/sluice-go/sluice/runtime/bucket"
	"github.com/sluice-go/sluice/runtime/dynamo/internal/known"
	"github.com/sluice-go/sluice/runtime/dynamo/internal/override"
	"github.com/sluice-go/sluice/runtime/dynamo/operator"
	"github.com/sluice-go/sluice/runtime/store"
)

// a1 and a2 are keys of org-1.
var a1, a2 = apiKey{"1", "1"}, apiKey{"2", "1"}

// TestNameBuckets: each name has a bucket of its own, and all names have some in common. A refusal has the
// name that was called, and the limit is that of the template.
func TestNameBuckets(t *testing.T) {
	e := newEngine(t)
	g := e.gateway(t, e.client, templated(t, "free", "pro"))
	g.enters(t, store.Entry{Name: "gpt-5"})
	g.enters(t, store.Entry{Name: "gpt-6", Buckets: "gpt-4"})
	g.enters(t, store.Entry{Name: "gpt-5-2026", Alias: "gpt-5"})
	g.takes(t, "gpt-5", a1, tokens{3, 100})
	g.takes(t, "gpt-5-2026", a1, tokens{2, 50})
	g.takes(t, "gpt-6", a1, tokens{1, 200})
	g.takes(t, "gpt-6", a2, tokens{1, 1})
	want := []string{
		"gpt-4@key-1", "gpt-4@key-2", "model/gpt-5@key-1", "model@key-1", "model@key-2", "model@org-1",
	}
	if got := e.buckets(t); !slices.Equal(got, want) {
		t.Errorf("buckets %q, want %q", got, want)
	}
	e.left(t, "model/gpt-5", "key-1", map[string][2]int64{"rpm": {95, 100}})
	e.left(t, "gpt-4", "key-1", map[string][2]int64{"rpm": {99, 100}})
	e.left(t, "model", "key-1", map[string][2]int64{"tpm": {650, 1000}})
	e.left(t, "model", "org-1", map[string][2]int64{"tpm": {9649, 10_000}})

	for range 2 { // the second time by what was seen
		for name, resource := range map[string]string{"gpt-5": "model/gpt-5", "gpt-6": "gpt-4"} {
			denied := g.denied(t, name, a1, tokens{96, 700})
			if denied.Resource != resource || denied.Template != "model" {
				t.Errorf("%s: denied by %+v", name, denied)
			}
		}
	}
	lease := g.takes(t, "gpt-5", a1, tokens{1, 300})
	if err := lease.Settle(t.Context(), tokens{1, 100}); err != nil {
		t.Fatal(err)
	}
	e.left(t, "model", "key-1", map[string][2]int64{"tpm": {550, 1000}})
	e.left(t, "model", "org-1", map[string][2]int64{"tpm": {9549, 10_000}})
}

// TestNameSources: the first of eight sources that has a limit decides it, in the process that changes them
// at once, and in others once what they remember is due.
func TestNameSources(t *testing.T) {
	e := newEngine(t)
	e.ttl = time.Minute
	def := templated(t, "free", "pro")
	g, other := e.gateway(t, e.client, def), e.gateway(t, e.client, def)
	g.enters(t, store.Entry{Name: "gpt-5"})
	g.enters(t, store.Entry{Name: "gpt-6"})
	var last int64
	for i, step := range []struct {
		change func()
		rpm    int64
	}{
		{func() {}, 100},
		{func() { g.changes(t, g.spec, "key", perMinute(90, 0)) }, 90},
		{func() { g.plans(t, "pro") }, 200},
		{func() { g.changes(t, g.spec, "pro.key", perMinute(300, 0)) }, 300},
		{func() { g.enters(t, restating("gpt-5", map[string]int64{"key": 20})) }, 20},
		{func() { g.enters(t, restating("gpt-5", map[string]int64{"key": 20, "pro.key": 40, "free.key": 7})) }, 40},
		{func() { g.changes(t, g.spec, "key-1", perMinute(50, 0)) }, 50},
		{func() { g.changes(t, g.named("gpt-5"), "key-1", perMinute(60, 0)) }, 60},
		{func() { g.plans(t, "free") }, 60},
		{func() { g.changes(t, g.named("gpt-5"), "key-1", perMinute(0, 0)) }, 50},
		{func() { g.changes(t, g.spec, "key-1", perMinute(0, 0)) }, 7},
		{func() { g.enters(t, store.Entry{Name: "gpt-5"}) }, 10},
		{func() { g.plans(t, "") }, 90},
	} {
		e.clock.set(int64(i) * 1_000_000)
		step.change()
		g.takes(t, "gpt-5", a1, tokens{0, 1})
		img := e.capacity(t, "model/gpt-5", "key-1", step.rpm)
		if img.Version <= last && i > 0 {
			t.Errorf("step %d: the version is %d after %d", i, img.Version, last)
		}
		last = img.Version
		e.clock.set(int64(i)*1_000_000 + 61_000)
		other.takes(t, "gpt-5", a1, tokens{0, 1})
		if again := e.capacity(t, "model/gpt-5", "key-1", step.rpm); again.Version != last {
			t.Errorf("step %d: another process has made version %d of %d", i, again.Version, last)
		}
	}
	g.takes(t, "gpt-6", a1, tokens{0, 1})
	e.capacity(t, "model/gpt-6", "key-1", 90)
	g.enters(t, restating("gpt-6", map[string]int64{"key": 33}))
	g.changes(t, g.named("gpt-6"), "key-2", perMinute(44, 0))
	g.takes(t, "gpt-6", a2, tokens{0, 1})
	e.capacity(t, "model/gpt-6", "key-2", 44)
}

// plans puts org 1 on a plan.
func (g *gateway) plans(t testing.TB, plan string) {
	t.Helper()
	(&office{session: g.session}).puts(t, "1", plan)
}

// capacity holds how much rpm the bucket of an entity has at most, and returns it.
func (e *engine) capacity(t testing.TB, resource, entity string, rpm int64) *bucket.Image {
	t.Helper()
	img, err := operator.Inspect(t.Context(), e.client, e.table, entity, resource)
	if err != nil || img == nil {
		t.Fatalf("%s of %s: bucket %v, error %v", resource, entity, img, err)
	}
	if b, _ := img.Find("rpm"); b.Capacity != rpm*bucket.Milli {
		t.Errorf("%s of %s has at most %d rpm, want %d", resource, entity, b.Capacity/bucket.Milli, rpm)
	}
	return img
}

// TestNameSteadyState: a call on a name costs a unit a bucket, twice that in a transaction, and no read.
func TestNameSteadyState(t *testing.T) {
	for cascade, units := range map[store.Cascade]float64{
		store.CascadeAtomic: 600, store.CascadeCompensated: 300, store.CascadeNone: 400,
	} {
		e, memory := newFaulty(t)
		e.ttl = time.Hour
		def := templated(t, "free", "pro")
		def.spec.Cascade = cascade
		g := e.gateway(t, e.client, def)
		g.enters(t, restating("gpt-5", map[string]int64{"key": 300}))
		g.takes(t, "gpt-5", a1, tokens{1, 1})
		memory.ResetConsumed()
		for i := range 100 {
			e.clock.set(int64(i) * 10)
			g.takes(t, "gpt-5", a1, tokens{1, 1})
		}
		if used := memory.Consumed().Table(e.table).Total(); used.Write != units || used.Read != 0 {
			t.Errorf("cascade %d: 100 calls took %v write and %v read units, want %v and 0",
				cascade, used.Write, used.Read, units)
		}
	}
}

// TestAllNamesSharedByCalls: calls on different names that meet in one bucket share its writes, and each is
// denied by its own name.
func TestAllNamesSharedByCalls(t *testing.T) {
	e := newEngine(t)
	def := templated(t, "free", "pro")
	def.spec.Kinds[modelKeyAll].Limits = perMinute(0, 100)
	g := e.gateway(t, e.client, def)
	for i := range 8 {
		g.enters(t, store.Entry{Name: fmt.Sprint("gpt-", i)})
	}
	admitted := make([]int64, 8)
	together(t, 8, func(i int) error {
		r, err := g.Named(t.Context(), fmt.Sprint("gpt-", i))
		for err == nil {
			if _, err = r.Acquire(t.Context(), a1, tokens{1, 3}); err == nil {
				admitted[i]++
			}
		}
		denied, ok := err.(*store.DeniedError) //nolint:errorlint // the call's own
		if !ok || denied.Resource != fmt.Sprint("model/gpt-", i) || denied.Limit != "tpm" {
			return fmt.Errorf("%d: %w", i, err)
		}
		return nil
	})
	var sum int64
	for i, n := range admitted {
		if sum += n; n > 0 {
			e.left(t, fmt.Sprint("model/gpt-", i), "key-1", map[string][2]int64{"rpm": {100 - n, 100}})
		}
	}
	if sum != 33 {
		t.Errorf("%d calls are admitted, want 33", sum)
	}
	e.left(t, "model", "key-1", map[string][2]int64{"tpm": {1, 100}})
}

// TestNameVersions: the versions of entries only rise. The control: with one that falls when an entry has no
// numbers any more, the bucket keeps those that it had.
func TestNameVersions(t *testing.T) {
	falls := func(
		spec *store.Spec, kind int, from *override.Sources, now int64,
	) (*override.Resolved, error) {
		r, err := override.Resolve(spec, kind, from, now)
		if from.Entry != nil && len(from.Entry.Numbers) == 0 {
			r.Version -= from.Entry.Version
		}
		return r, err
	}
	for _, test := range []struct {
		resolve known.Resolve
		rpm     int64
	}{{nil, 100}, {falls, 20}} {
		e := newEngine(t)
		g := e.gateway(t, e.client, templated(t), func(s *Store) { s.seams.Resolve = test.resolve })
		g.enters(t, restating("gpt-5", map[string]int64{"key": 20}))
		g.takes(t, "gpt-5", a1, tokens{1, 1})
		g.enters(t, store.Entry{Name: "gpt-5"})
		g.takes(t, "gpt-5", a1, tokens{1, 1})
		e.capacity(t, "model/gpt-5", "key-1", test.rpm)
	}
}

// TestNamesMemory: what a session knows of 10,000 names of 1,000 entities is within the bound of its cache. A
// name takes less than its buckets.
func TestNamesMemory(t *testing.T) {
	skipOnLocal(t)
	longform.NoRace(t, "it measures memory")
	const buckets, names, entities, most = 2000, 10_000, 1000, 2600
	def := templated(t)
	def.spec.Plans, def.spec.Cascade = nil, store.CascadeNone
	table := newSimTable(1, def.Of(modelKey).Decode)
	table.minDelay, table.maxDelay, table.quiet = 0, 0, true
	p := newProcess(t, table, 1, 0, option(ImageCache(buckets)), def)
	all := make([]*store.Named, names)
	for i := range all {
		all[i] = store.NewNamed(def, &store.Entry{Name: fmt.Sprint("gpt-", i), Version: 1})
	}
	heap := func() int64 {
		clear(table.items)
		stdruntime.GC()
		stdruntime.GC()
		var m stdruntime.MemStats
		stdruntime.ReadMemStats(&m)
		return int64(m.HeapAlloc)
	}
	random := rand.New(rand.NewPCG(1, 2)) //nolint:gosec // no secret
	use := func(n int) {
		for range n {
			call := &store.Call{Called: time.Now(), Parts: []store.Part{{
				Def: all[random.IntN(names)], Cost: []int64{1000, 0},
				Buckets: []store.Bucket{{Entity: fmt.Sprintf("key-%03d", random.IntN(entities)), Kind: modelKey}},
			}}}
			if err := p.session.Acquire(t.Context(), call); err != nil {
				t.Fatal(err)
			}
		}
	}
	use(10)
	before := heap()
	for i := range 3 {
		use(longform.Count(t, "calls", 20_000, 2*buckets))
		each := float64(heap()-before) / buckets
		t.Logf("%.0f bytes for each of %d buckets with one limit", each, buckets)
		if each > most {
			t.Errorf("round %d: %.0f bytes per bucket, want at most %d", i, each, most)
		}
	}
}

// TestOperatorNames: what operators do to a bucket and its numbers, they do to those of a name.
func TestOperatorNames(t *testing.T) {
	e := newEngine(t)
	g := e.gateway(t, e.client, templated(t, "free", "pro"))
	g.enters(t, store.Entry{Name: "gpt-5"})
	g.plans(t, "pro")
	g.takes(t, "gpt-5", a1, tokens{9, 100})
	g.takes(t, "gpt-5", a2, tokens{8, 100})
	for resource, want := range map[string][]string{
		"model/gpt-5": {"key-1", "key-2"}, "model": {"key-1", "key-2", "org-1"},
	} {
		var listed []string
		for page, err := range operator.Buckets(t.Context(), e.client, e.table, resource, "") {
			if err != nil {
				t.Fatal(err)
			}
			for _, b := range page.Buckets {
				listed = append(listed, b.Entity)
			}
		}
		if !slices.Equal(listed, want) {
			t.Errorf("%s has buckets of %q, want %q", resource, listed, want)
		}
	}
	filled, err := operator.Reset(t.Context(), e.client, e.table, "key-1", "model/gpt-5")
	if err != nil || !slices.Equal(filled, []string{"rpm"}) {
		t.Errorf("filled %q, %v", filled, err)
	}
	e.left(t, "model/gpt-5", "key-1", map[string][2]int64{"rpm": {200, 200}})
	e.left(t, "model", "key-1", map[string][2]int64{"tpm": {4900, 5000}})

	g.changes(t, g.named("gpt-5"), "key-1", perMinute(70, 0))
	g.changes(t, g.spec, "key-2", perMinute(0, 300))
	g.changes(t, g.spec, "pro.key", perMinute(150, 0))
	for _, test := range []struct {
		spec *store.Spec
		want []string
	}{{g.spec, []string{"pro.key", "key-2"}}, {g.named("gpt-5"), []string{"key-1"}}} {
		var at []string
		for s, err := range g.session.Overrides().List(t.Context(), test.spec) {
			if err != nil {
				t.Fatal(err)
			}
			at = append(at, s.At)
		}
		if !slices.Equal(at, test.want) {
			t.Errorf("%s is overridden at %q, want %q", test.spec.Resource, at, test.want)
		}
	}
	overrides := g.session.Overrides()
	err = overrides.Fill(t.Context(), g.named("gpt-5"), modelKey, "key-1", "org-1")
	if err == nil {
		err = overrides.Fill(t.Context(), g.named("gpt-5"), modelOrgAll, "org-1", "org-1")
	}
	if err != nil {
		t.Fatal(err)
	}
	e.left(t, "model/gpt-5", "key-1", map[string][2]int64{"rpm": {70, 70}})
	e.left(t, "model", "org-1", map[string][2]int64{"tpm": {50_000, 50_000}})
	g.takes(t, "gpt-5", a1, tokens{70, 0})
	if denied := g.denied(t, "gpt-5", a1, tokens{1, 0}); denied.Entity != "key-1" {
		t.Errorf("denied by %+v", denied)
	}
}
