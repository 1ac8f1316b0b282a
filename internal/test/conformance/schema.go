package conformance

import (
	"log/slog"
	"slices"
	"time"

	kinds "github.com/sluice-go/sluice/gen/testdata/golden/kinds/out"
	limits "github.com/sluice-go/sluice/generated"
	"github.com/sluice-go/sluice/internal/test/conformance/charging"
	"github.com/sluice-go/sluice/internal/test/conformance/parted"
	"github.com/sluice-go/sluice/internal/test/conformance/windowed"
	"github.com/sluice-go/sluice/internal/test/definitions"
	"github.com/sluice-go/sluice/runtime"
	"github.com/sluice-go/sluice/runtime/bucket"
	"github.com/sluice-go/sluice/runtime/dynamo/codec"
	"github.com/sluice-go/sluice/runtime/store"
)

// schema is what a test makes of the generated gpt-4: the numbers of rpm and tpm for users and projects, and
// the cascade.
type schema struct {
	user, project []bucket.Limit
	cascade       store.Cascade
	apart         bool // users have rpm alone, and projects tpm
	windows       windows
	holds         holds
	revision      int64 // above that of limits.yaml
}

// per returns a limit of so many tokens, of which refill come every period.
func per(burst, refill int64, period time.Duration) bucket.Limit {
	return bucket.Limit{
		Capacity: burst * bucket.Milli, Burst: burst * bucket.Milli, Refill: refill * bucket.Milli,
		Period: period.Milliseconds(),
	}
}

// The schemas of behaviours. But for odd's, limits yield whole millitokens in a millisecond, and no token
// within the time that a few calls take.
var (
	plain = schema{
		user:    []bucket.Limit{per(10, 1, time.Second), per(150, 2, time.Second)},
		project: []bucket.Limit{per(15, 1, time.Second), per(400, 3, time.Second)},
	}
	odd = schema{
		user:    []bucket.Limit{per(10, 7, 11*time.Second), per(150, 100, time.Minute)},
		project: []bucket.Limit{per(15, 1, 3*time.Second), per(400, 1000, 24*time.Hour)},
	}
	roomy = schema{user: plain.user, project: []bucket.Limit{per(1000, 1, time.Second),
		per(10_000, 3, time.Second)}}

	apart = schema{apart: true, user: []bucket.Limit{plain.user[0], {}}, project: []bucket.Limit{{},
		plain.project[1]}}

	compensated = plain.with(store.CascadeCompensated)
	none        = plain.with(store.CascadeNone)
)

// with returns s under another cascade.
func (s schema) with(c store.Cascade) schema {
	s.cascade = c
	return s
}

// Limits in schema order.
var names = []string{limits.GPT4RPM.String(), limits.GPT4TPM.String()}

// scripter is what generated resources are for Redis.
type scripter interface{ Script(chain int) string }

// variant is a generated resource of other numbers, for whatever stores that is made.
type variant struct {
	codec.Resource
	spec  *store.Spec
	apart codec.ByKind // with kinds that differ in their limits; nil if they do not
}

// Of implements codec.ByKind.
func (v *variant) Of(kind int) codec.Resource {
	if v.apart == nil {
		return v.Resource
	}
	return v.apart.Of(slices.IndexFunc(v.apart.Spec().Kinds, func(k store.Kind) bool {
		return k.Name == v.spec.Kinds[kind].Name
	}))
}

// Spec implements store.Definition.
func (v *variant) Spec() *store.Spec { return v.spec }

// Script returns the generated script, if there is one.
func (v *variant) Script(chain int) string {
	if s, ok := v.Resource.(scripter); ok && v.apart == nil {
		return s.Script(chain)
	}
	return ""
}

// definitions returns gpt-4 with s's numbers, and embeddings.
func (s schema) definitions(t T) (gpt4, embeddings *variant) {
	t.Helper()
	defs, err := definitions.Of(limits.New)
	if err != nil {
		t.Fatalf("%v", err)
	}
	for _, def := range defs {
		v := &variant{Resource: def.(codec.Resource), spec: def.Spec()}
		if v.spec.Resource == limits.Embeddings {
			embeddings = v
			continue
		}
		gpt4 = v
		v.spec.Cascade, v.spec.Kinds = s.cascade, slices.Clone(v.spec.Kinds)
		v.spec.Revision += s.revision
		s.vary(t, v)
		for i := range v.spec.Kinds {
			switch kind := &v.spec.Kinds[i]; kind.Name {
			case "user":
				kind.Limits, kind.Windows = s.user, calendars(s.windows.user)
			case "project":
				kind.Limits, kind.Windows = s.project, calendars(s.windows.project)
				if s.apart {
					kind.PerCall = []int64{0, 0}
				}
			}
		}
	}
	return gpt4, embeddings
}

// vary has v, the generated gpt-4, be another package's if s has windows or kinds that differ.
func (s schema) vary(t T, v *variant) {
	t.Helper()
	var others []store.Definition
	var err error
	switch {
	case s.holds == slotsHeld:
		others, err = definitions.Of(charging.New)
	case s.holds == bothHeld && s.apart:
		others, err = definitions.Of(parted.New)
	case s.windows.any():
		others, err = definitions.Of(windowed.New)
	case s.apart:
		others, err = definitions.Of(kinds.New)
	default:
		return
	}
	if err != nil {
		t.Fatalf("%v", err)
	}
	v.spec.Resource = s.resource()
	at := slices.IndexFunc(others, func(d store.Definition) bool { return d.Spec().Resource == v.spec.Resource })
	v.spec.Held = others[at].Spec().Held
	if s.apart {
		v.apart = others[at].(codec.ByKind)
		return
	}
	v.Resource = others[at].(codec.Resource)
}

// resource is the name of s's resource. One with holds has the same name in all packages, so that each may be
// a later revision of another.
func (s schema) resource() string {
	switch {
	case s.holds != nothingHeld:
		return windowed.GPT4InFlight
	case s.apart && s.windows.any():
		return windowed.GPT4ByKind
	}
	return limits.GPT4
}

// process opens w's store as a process of its own, with opts beside the options of all.
func (w *world) process(opts ...runtime.Option) *limits.Limiter {
	w.Helper()
	gpt4, embeddings := w.schema.definitions(w)
	var own *pauses
	clock := w.store.Clock
	if w.schema.holds != nothingHeld {
		own = newPauses(clock)
		clock = own
	}
	b := runtime.NewBuilder(w.spy, append([]runtime.Option{
		runtime.WithClock(clock), runtime.WithLogger(slog.New(slog.DiscardHandler)),
		runtime.WithCacheTTL(cacheTTL),
		runtime.WithSettleTimeout(2 * time.Minute), runtime.WithCallDefaults(runtime.Budget(time.Minute),
			runtime.OnUnavailable(store.Deny)),
	}, opts...)...)
	l := &limits.Limiter{
		GPT4:       runtime.Bind[limits.GPT4Entity](b, gpt4, vector, costOf),
		Embeddings: runtime.Bind[limits.EmbeddingsEntity](b, embeddings, batches, batchesOf),
		Config: limits.Config{
			GPT4: runtime.BindConfig[limits.GPT4Entity](b, gpt4, vector, limitsVector, limitsOf),
		},
	}
	var err error
	if l.Limiter, err = b.Limiter(); err != nil {
		w.Fatalf("%v", err)
	}
	if own != nil {
		w.processes[l] = own
	}
	return l
}

// cacheTTL is how long processes remember overrides and parents, unless a test says otherwise.
const cacheTTL = 1000 * 24 * time.Hour

// The functions by which generated code converts are not exported, so these do the same.
func vector(c limits.GPT4Cost, dst []int64) []int64 { return append(dst, c.RPM, c.TPM) }
func costOf(v []int64) limits.GPT4Cost              { return limits.GPT4Cost{RPM: v[0], TPM: v[1]} }

func batches(c limits.EmbeddingsCost, dst []int64) []int64 { return append(dst, c.RPS) }
func batchesOf(v []int64) limits.EmbeddingsCost            { return limits.EmbeddingsCost{RPS: v[0]} }

// rate returns l in whole tokens.
func rate(l bucket.Limit) *runtime.Rate {
	if l.Windowed() || l.InFlight() {
		return &runtime.Rate{Capacity: l.Capacity / bucket.Milli}
	}
	return &runtime.Rate{
		Capacity: l.Capacity / bucket.Milli, Burst: l.Burst / bucket.Milli, Refill: l.Refill / bucket.Milli,
		Every: time.Duration(l.Period) * time.Millisecond,
	}
}

func limitsVector(l limits.GPT4Limits, dst []*runtime.Rate) []*runtime.Rate {
	return append(dst, l.RPM, l.TPM)
}
func limitsOf(v []*runtime.Rate) limits.GPT4Limits { return limits.GPT4Limits{RPM: v[0], TPM: v[1]} }
