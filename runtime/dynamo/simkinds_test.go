package dynamo

import (
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	kinds "github.com/sluice-go/sluice/gen/testdata/golden/kinds/out"
	"github.com/sluice-go/sluice/internal/test/definitions"
	"github.com/sluice-go/sluice/runtime/bucket"
	"github.com/sluice-go/sluice/runtime/dynamo/codec"
	"github.com/sluice-go/sluice/runtime/store"
)

// Histories of chains whose kinds have different limits. A call has one cost in all limits, and each bucket
// is charged for those that its kind has.

// limitsOf says something of each limit, in the order of all, for buckets of an entity.
type limitsOf func(entity string) []bool

// once returns f, which goes by an entity's kind, asked once for each.
func once(f func(kind string) []bool) limitsOf {
	known := map[string][]bool{}
	return func(entity string) []bool {
		kind, _, _ := strings.Cut(entity, "-")
		if known[kind] == nil {
			known[kind] = f(kind)
		}
		return known[kind]
	}
}

// isAbsent reports whether buckets of an entity's kind do not have the i-th limit of a schema.
func isAbsent(spec *store.Spec, entity string, i int) bool {
	kind, _, _ := strings.Cut(entity, "-")
	at := slices.IndexFunc(spec.Kinds, func(k store.Kind) bool { return k.Name == kind })
	return at >= 0 && spec.Kinds[at].Limits != nil && spec.Kinds[at].Limits[i].Absent()
}

// absent says which limits buckets of a kind do not have by some version.
func (h *history) absent(all *store.Spec) limitsOf {
	specs := h.specs(all)
	return once(func(kind string) []bool {
		without := make([]bool, len(all.Limits))
		for i, name := range all.Limits {
			without[i] = slices.ContainsFunc(specs, func(s *store.Spec) bool {
				at := slices.Index(s.Limits, name)
				return at >= 0 && isAbsent(s, kind, at)
			})
		}
		return without
	})
}

// apart is generated code for kinds that differ in their limits. By itself it is the oracle's, which decodes
// all limits that an item has: nothing else of its Resource is called, which is nil.
type apart struct {
	codec.Resource
	generated codec.ByKind
}

// Spec implements store.Definition.
func (a *apart) Spec() *store.Spec { return a.generated.Spec() }

// Decode implements codec.Resource.
func (a *apart) Decode(dst *bucket.Image, item codec.Item) error {
	names := a.Spec().Limits
	d := codec.Decoder{Item: item}
	d.Image(dst, len(names))
	for i, name := range names {
		of := func(field string) string { return "b_" + name + "_" + field }
		d.Balance(&dst.Balances[i], &dst.Missing[i], of("tk"), of("cp"), of("bx"), of("ra"), of("rp"), of("tc"))
	}
	return d.Err()
}

// kindsApart returns a generated resource whose kinds differ in their limits.
func kindsApart(t testing.TB, resource string) *apart {
	t.Helper()
	all, err := definitions.Of(kinds.New)
	if err != nil {
		t.Fatal(err)
	}
	at := slices.IndexFunc(all, func(d store.Definition) bool { return d.Spec().Resource == resource })
	return &apart{generated: all[at].(codec.ByKind)}
}

// byKind is what a store gets of an apart: the code of each kind, under a history's numbers.
type byKind struct {
	*variant
	code []codec.Resource
}

// Of implements codec.ByKind.
func (b *byKind) Of(kind int) codec.Resource { return b.code[kind] }

// apart returns v, which has the kinds of a history, with the code and the limits that of has for each.
func (h *history) apart(of *apart, v *variant) *byKind {
	spec := of.Spec()
	b := &byKind{variant: v}
	for k := range v.Numbers.Kinds {
		kind := &v.Numbers.Kinds[k]
		name := kind.Name
		if other := h.mistake[name]; other != "" {
			name = other
		}
		at := slices.IndexFunc(spec.Kinds, func(k store.Kind) bool { return k.Name == name })
		b.code = append(b.code, h.broken(of.generated.Of(at)))
		kind.Limits = slices.Clone(kind.Limits)
		for i := range kind.Limits {
			if isAbsent(spec, name, i) {
				kind.Limits[i] = bucket.Limit{}
			}
		}
	}
	return b
}

// apartCosts cost something of one limit at least: requests a minute and a day, of a user, and tokens.
func apartCosts(r *rand.Rand) []int64 {
	cost := []int64{1000 * r.Int64N(3), 1000 * max(0, r.Int64N(24)-4), 1000 * r.Int64N(3)}
	if r.IntN(8) == 0 {
		cost[r.IntN(3)] = 0
	}
	if slices.Max(cost) == 0 {
		cost[r.IntN(3)] = 1000
	}
	return cost
}

// kindHistories are histories of users with rpm and rpd, their projects with tpm, and their organisation with
// tpm and rpd, by name.
func kindHistories(t testing.TB) map[string]history {
	t.Helper()
	atomic := history{
		writers: 8, duration: 400 * time.Millisecond, skew: 100 * time.Millisecond,
		limits: [][]bucket.Limit{{perSecond(10), perSecond(60), perSecond(12)}},
		think:  upTo(30 * time.Millisecond), cost: apartCosts, settle: 0.25,
		above: []int64{2, 3}, children: 4,
	}
	change := func(f ...func(*history)) history {
		h := atomic
		for _, f := range f {
			f(&h)
		}
		return h
	}
	compensated := func(h *history) { h.cascade = store.CascadeCompensated }
	lossy := func(h *history) {
		h.faults = faults{
			lostRequest: 0.02,
			lostReply:   0.03,
			late:        0.02,
			throttled:   0.02,
			unread:      0.05,
			conflict:    0.03,
		}
		h.cancel = 0.1
	}
	crowd := func(h *history) { h.writers, h.callers, h.settle, h.lazy = 3, 4, 0.45, 0.5 }
	operators := func(h *history) {
		h.duration, h.think = 6*time.Second, upTo(300*time.Millisecond)
		h.override, h.cache = time.Second, 2*time.Second
		h.limits = [][]bucket.Limit{{perSecond(20), perSecond(160), perSecond(30)}} // an eighth is a call's cost
	}
	expiry := func(h *history) {
		h.duration, h.writers, h.ttlLag = 40*time.Second, 4, 3*time.Second
		h.limits = [][]bucket.Limit{{perSecond(20), perSecond(200), perSecond(40)}}
		h.think = upTo(6 * time.Second)
	}
	// So slowly filled that limits of each kind are short for longer than images may refuse.
	drained := func(h *history) {
		h.duration, h.think, h.settle = 8*time.Second, upTo(500*time.Millisecond), 0.05
		h.limits = [][]bucket.Limit{
			{bucket.Per(30, 10*time.Second), bucket.Per(80, 10*time.Second), bucket.Per(40, 10*time.Second)},
		}
		h.cost = func(r *rand.Rand) []int64 {
			cost := []int64{2000, 2000, 2000}
			cost[r.IntN(3)] = 20_000
			return cost
		}
	}
	// From a schema in which users and projects have rpm and tpm to one with rpm for users, tpm for projects.
	all, _ := generated(t)
	rollout := func(h *history) {
		gpt4 := kindsApart(t, kinds.GPT4)
		h.resource, h.versions = gpt4, []codec.Resource{all, gpt4}
		h.limits = slices.Repeat([][]bucket.Limit{{perSecond(40), perSecond(160)}}, 2)
		h.above, h.cost, h.beside, h.duration = []int64{2}, mixed, 1.5, 700*time.Millisecond
	}
	back := func(h *history) {
		h.versions, h.limits = append(h.versions, all), append(h.limits, h.limits[0])
	}
	return map[string]history{
		"atomic":                       atomic,
		"atomic, drained":              change(drained),
		"atomic, lost replies":         change(lossy),
		"atomic, lazy settles":         change(crowd),
		"atomic beside single buckets": change(func(h *history) { h.direct = 0.4 }),
		"atomic, overrides":            change(operators),
		"compensated":                  change(compensated),
		"compensated, drained":         change(compensated, drained),
		"compensated, lost replies":    change(compensated, crowd, lossy),
		"compensated, expiry":          change(compensated, expiry),
		"limits end":                   change(rollout),
		"limits end, lost replies":     change(rollout, lossy),
		"limits end, and are back":     change(rollout, compensated, back),
	}
}

// TestSimulationOfKinds is TestSimulationOverChains where each kind has limits of its own.
func TestSimulationOfKinds(t *testing.T) {
	skipOnLocal(t)
	t.Parallel()
	playOf(t, kindsApart(t, kinds.Model), kindHistories(t), 10)
}

// TestKindsDeny: the limits of each kind deny calls in these histories, and no others do.
func TestKindsDeny(t *testing.T) {
	skipOnLocal(t)
	t.Parallel()
	h := kindHistories(t)["atomic, drained"]
	denied := map[string]bool{}
	for _, d := range h.run(t, kindsApart(t, kinds.Model)).denials {
		for _, r := range d.refusals {
			kind, _, _ := strings.Cut(r.Entity, "-")
			denied[kind+" "+r.Limit] = true
		}
	}
	want := []string{"org rpd", "org tpm", "project tpm", "user rpd", "user rpm"}
	if got := slices.Sorted(maps.Keys(denied)); !slices.Equal(got, want) {
		t.Errorf("denied by %q, want %q", got, want)
	}
}
