package dynamo

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/sluice-go/sluice/internal/test/definitions"
	v1 "github.com/sluice-go/sluice/internal/test/evolution/v1/limits"
	v2 "github.com/sluice-go/sluice/internal/test/evolution/v2/limits"
	v3 "github.com/sluice-go/sluice/internal/test/evolution/v3/limits"
	v4 "github.com/sluice-go/sluice/internal/test/evolution/v4/limits"
	"github.com/sluice-go/sluice/runtime/bucket"
	"github.com/sluice-go/sluice/runtime/dynamo/codec"
	"github.com/sluice-go/sluice/runtime/store"
)

// Histories of deployments: old and new binaries, whose schemas have different limits, are at work side by
// side on the same buckets. Costs and books are in the order of the second version, which has all limits.

// versions returns the generated code of internal/test/evolution: the second adds tpd, the third removes rpm,
// the fourth has it again.
func versions(t testing.TB) (first, second, third, fourth codec.Resource) {
	t.Helper()
	var of [4][]store.Definition
	var errs [4]error
	of[0], errs[0] = definitions.Of(v1.New)
	of[1], errs[1] = definitions.Of(v2.New)
	of[2], errs[2] = definitions.Of(v3.New)
	of[3], errs[3] = definitions.Of(v4.New)
	if err := errors.Join(errs[:]...); err != nil {
		t.Fatal(err)
	}
	code := func(n int) codec.Resource { return of[n][0].(codec.Resource) }
	return code(0), code(1), code(2), code(3)
}

// pick returns those of v, which has all limits, that def knows, in its order.
func (p *process) pick(def store.Definition, v []int64) []int64 {
	if p.names == nil {
		return v
	}
	own := make([]int64, 0, len(v))
	for _, name := range def.Spec().Limits {
		own = append(own, v[slices.Index(p.names, name)])
	}
	return own
}

// spread returns v, which has the limits of spec, in the order of all limits, with 0 for those missing in
// spec.
func (p *process) spread(spec *store.Spec, v []int64) []int64 {
	if p.names == nil {
		return v
	}
	all := make([]int64, len(p.names))
	for i, name := range spec.Limits {
		all[slices.Index(p.names, name)] = v[i]
	}
	return all
}

// raised counts how often the revision is raised: versions that come again raise nothing.
func (h *history) raised() int {
	if h.versions == nil {
		return len(h.limits) - 1
	}
	revisions := map[int64]bool{}
	for _, v := range h.versions {
		revisions[v.Spec().Revision] = true
	}
	return len(revisions) - 1
}

// misshapen says which bucket has other limits than its revision gives its kind: a removed one that stayed or
// came back, or one that is not added with the rest.
func (h *history) misshapen(log []commit, all *store.Spec) string {
	for _, c := range log {
		revision := c.after.Version / bucket.RevisionUnit
		for _, spec := range h.specs(all) {
			if h.versions != nil && spec.Revision != revision {
				continue
			}
			for i, name := range all.Limits {
				at := slices.Index(spec.Limits, name)
				if has := !c.after.Missing[i]; has != (at >= 0 && !isAbsent(spec, c.entity, at)) {
					return fmt.Sprintf(
						"%s, of revision %d: it has %s: %t, at %d",
						c.entity,
						revision,
						name,
						has,
						c.at.UnixMilli(),
					)
				}
			}
		}
	}
	return ""
}

// specs are those of the versions, or, where there are none, all.
func (h *history) specs(all *store.Spec) []*store.Spec {
	if h.versions == nil {
		return []*store.Spec{all}
	}
	specs := make([]*store.Spec, len(h.versions))
	for i, v := range h.versions {
		specs[i] = v.Spec()
	}
	return specs
}

// removing says which limits some version removes from the buckets of a kind.
func (h *history) removing(all *store.Spec) limitsOf {
	absent, specs := h.absent(all), h.specs(all)
	return once(func(kind string) []bool {
		removed := slices.Clone(absent(kind))
		for i, name := range all.Limits {
			removed[i] = removed[i] ||
				slices.ContainsFunc(specs, func(s *store.Spec) bool { return slices.Contains(s.Removed, name) })
		}
		return removed
	})
}

// forgive takes limits that are removed, or that a kind does not have, off the books: what is owed to one is
// settled only if it is there.
func (t tally) forgive(removed limitsOf) {
	for entity, booked := range t {
		for i, isRemoved := range removed(entity) {
			if isRemoved {
				booked[i] = 0
			}
		}
	}
}

var (
	betweenPattern = regexp.MustCompile(`(#\d+) BETWEEN (:\d+) AND (:\d+)`)
	equalPattern   = regexp.MustCompile(`(#\d+) = (:\d+)`)
	addPattern     = regexp.MustCompile(`(#\d+) (:\d+)`)
)

// generic reports that w was built from an image: generated texts number no names.
func (w simWrite) generic() bool { return w.update != nil && strings.Contains(*w.update, "#0") }

// named returns w's values by the names that generated texts have for them, which those of the generic path
// have not.
func (w simWrite) named() codec.Item {
	if !w.generic() {
		return w.values
	}
	all := maps.Clone(w.values)
	limit := func(placeholder string) string {
		return ":" + strings.TrimSuffix(strings.TrimPrefix(w.names[placeholder], "b_"), "_tk")
	}
	for _, m := range betweenPattern.FindAllStringSubmatch(*w.cond, -1) {
		name := limit(m[1])
		all[name+"_lo"], all[name+"_hi"] = w.values[m[2]], w.values[m[3]]
		all[name+"_net"], all[name+"_use"] = codec.N(0), codec.N(0) // guarded alone, unless it is added to
	}
	for _, m := range addPattern.FindAllStringSubmatch(*w.update, -1) {
		switch field := w.names[m[1]]; {
		case strings.HasSuffix(field, "_tk"):
			all[limit(m[1])+"_net"] = w.values[m[2]]
		case strings.HasSuffix(field, "_tc"):
			all[":"+strings.TrimSuffix(strings.TrimPrefix(field, "b_"), "_tc")+"_use"] = w.values[m[2]]
		}
	}
	last := ":op0"
	if !strings.Contains(*w.cond, "<>") { // a reversal names the charge's op alone, not its own
		last = ":undo"
	}
	for text, placeholder := range map[*string]string{w.update: ":op", w.cond: last} {
		for _, m := range equalPattern.FindAllStringSubmatch(*text, -1) {
			if v, ok := w.values[m[2]].(*types.AttributeValueMemberS); ok && w.names[m[1]] == "op" {
				all[placeholder] = v
			}
		}
	}
	for _, m := range equalPattern.FindAllStringSubmatch(*w.cond, -1) {
		if w.names[m[1]] == "rf" {
			all[":rf0"] = w.values[m[2]]
		}
	}
	return all
}

// threeLimits costs always something of tpm, which every version has.
func threeLimits(r *rand.Rand) []int64 {
	cost := []int64{1000 * r.Int64N(4), 1000 + 1000*r.Int64N(20), 1000 * r.Int64N(8)}
	if r.IntN(3) == 0 {
		cost[2] = 0
	}
	return cost
}

// deployments are histories of versions, by name.
func deployments(t testing.TB) map[string]history {
	t.Helper()
	first, second, third, fourth := versions(t)
	rpm, tpm, more, tpd := perSecond(60), perSecond(300).WithBurst(900), perSecond(450), perSecond(100)
	rolling := history{
		writers: 10, duration: 900 * time.Millisecond, skew: 100 * time.Millisecond,
		think: upTo(30 * time.Millisecond), cost: threeLimits, settle: 0.25, beside: 1.5,
		versions: []codec.Resource{first, second, third},
		limits:   [][]bucket.Limit{{rpm, tpm}, {rpm, more, tpd}, {tpd, more}},
	}
	change := func(h history, f ...func(*history)) history {
		for _, f := range f {
			f(&h)
		}
		return h
	}
	chain := func(h *history) { h.above, h.children, h.writers = []int64{2}, 3, 8 }
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
	crowd := func(h *history) { h.writers, h.callers, h.settle, h.lazy = 4, 4, 0.45, 0.5 }
	back := func(h *history) {
		h.versions = []codec.Resource{first, second, first}
		h.limits = [][]bucket.Limit{h.limits[0], h.limits[1], h.limits[0]}
	}
	again := func(h *history) {
		h.versions = []codec.Resource{second, third, fourth}
		h.limits = [][]bucket.Limit{h.limits[1], h.limits[2], {perSecond(30), more, tpd}}
	}
	expiry := func(h *history) {
		h.duration, h.writers, h.ttlLag = 60*time.Second, 3, 3*time.Second
		h.think = upTo(15 * time.Second)
		rpm, tpm, tpd := perSecond(20), perSecond(200), perSecond(30)
		h.limits = [][]bucket.Limit{{rpm, tpm}, {rpm, tpm, tpd}, {tpd, tpm}}
	}
	return map[string]history{
		"rolling":               rolling,
		"rolling, lost replies": change(rolling, lossy),
		"rolling, nearly full": change(rolling, func(h *history) {
			h.limits = [][]bucket.Limit{
				{rpm, perSecond(100_000)},
				{rpm, perSecond(100_000), perSecond(1000)},
				{perSecond(1000), perSecond(100_000)},
			}
			h.think = upTo(60 * time.Millisecond)
		}),
		"rolling, idle bursts": change(
			rolling,
			func(h *history) { h.duration, h.think = 6*time.Second, inBursts(8, 2*time.Second) },
		),
		"rolling, lazy settles": change(rolling, crowd),
		"rolling, numbers lowered": change(rolling, func(h *history) {
			h.limits = [][]bucket.Limit{
				{rpm, tpm},
				{perSecond(30), perSecond(100), tpd},
				{perSecond(20), perSecond(60)},
			}
		}),
		"used again":                  change(rolling, again),
		"used again, lost replies":    change(rolling, again, lossy),
		"rolling, expiry":             change(rolling, expiry),
		"rolled back":                 change(rolling, back),
		"rolled back, lost replies":   change(rolling, back, lossy),
		"rolled back, expiry":         change(rolling, expiry, back),
		"rolling over chains":         change(rolling, chain),
		"chains, lost replies":        change(rolling, chain, lossy),
		"chains, lazy settles":        change(rolling, chain, crowd),
		"chains, rolled back":         change(rolling, chain, back),
		"chains, used again":          change(rolling, chain, again, crowd),
		"chains, single buckets too":  change(rolling, chain, func(h *history) { h.direct = 0.4 }),
		"chains, compensated":         change(rolling, chain, compensated),
		"chains, compensated, losses": change(rolling, chain, compensated, lossy),
		"chains, overrides": change(rolling, chain, func(h *history) {
			h.duration, h.think = 4*time.Second, upTo(300*time.Millisecond)
			h.override, h.cache = time.Second, 2*time.Second
		}),
		"chains, debt": change(
			rolling,
			chain,
			func(h *history) { // of the limit that only one of two versions knows
				h.duration, h.settle, h.beside, h.children = 50*time.Second, 0.1, 4, 2
				h.versions = []codec.Resource{first, second}
				h.limits = [][]bucket.Limit{
					{perSecond(100), perSecond(100)},
					{perSecond(100), perSecond(100), perSecond(10)},
				}
				h.think = inBursts(2, 5*time.Second) // by then any bucket would be gone that was not in debt
				h.cost = always(0, 1000, 0)
				h.actual = func(r *rand.Rand) []int64 { return []int64{0, 1000, r.Int64N(100_000)} }
			},
		),
	}
}

// TestDeployments: whatever version writes, of no limit a token is forged or lost, every bucket has the
// limits of its revision, and is given those of each once.
func TestDeployments(t *testing.T) {
	skipOnLocal(t)
	t.Parallel()
	_, second, _, _ := versions(t)
	playOf(t, second, deployments(t), 10)
}
