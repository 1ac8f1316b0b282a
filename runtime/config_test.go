package runtime_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/sluice-go/sluice/runtime"
	"github.com/sluice-go/sluice/runtime/bucket"
	"github.com/sluice-go/sluice/runtime/store"
)

// numbers is what generated code would define for overrides of gpt-4.
type numbers struct{ RPM, TPM *runtime.Rate }

func toLimits(l numbers, dst []*runtime.Rate) []*runtime.Rate { return append(dst, l.RPM, l.TPM) }
func fromLimits(l []*runtime.Rate) numbers                    { return numbers{l[0], l[1]} }

// overrides is an OverrideStore in memory.
type overrides struct {
	failure error
	listed  []store.Stored // as they are listed
	written int
	beat    store.Heartbeat
	filled  []string // kind, entity and root
	granted []store.Grant
}

func (o *overrides) Get(_ context.Context, _ *store.Spec, at ...string) ([]store.Stored, error) {
	found := make([]store.Stored, len(at))
	for i, at := range at {
		found[i].At = at
		for _, level := range o.listed {
			if level.At == at {
				found[i] = level
			}
		}
	}
	return found, o.failure
}

func (o *overrides) Set(ctx context.Context, spec *store.Spec, s store.Stored) (runtime.Revision, error) {
	found, err := o.Get(ctx, spec, s.At)
	if err != nil {
		return "", err
	}
	if found[0].Revision != s.Revision {
		return "", &runtime.ConflictError{Resource: spec.Resource, At: s.At}
	}
	o.written++
	s.Revision = runtime.Revision(strconv.Itoa(o.written))
	if !s.Overrides() {
		s.Limits, s.Revision = nil, ""
	}
	o.listed = append(slices.DeleteFunc(o.listed, func(l store.Stored) bool { return l.At == s.At }), s)
	return s.Revision, nil
}

func (o *overrides) List(context.Context, *store.Spec) iter.Seq2[store.Stored, error] {
	return func(yield func(store.Stored, error) bool) {
		for _, level := range o.listed {
			if level.Limits != nil && !yield(level, nil) {
				return
			}
		}
		if o.failure != nil {
			yield(store.Stored{}, o.failure)
		}
	}
}

func (o *overrides) Fill(_ context.Context, _ *store.Spec, kind int, entity, root string) error {
	o.filled = append(o.filled, fmt.Sprint(kind, " ", entity, " ", root))
	return o.failure
}

func (o *overrides) Grant(_ context.Context, _ *store.Spec, g *store.Grant) error {
	o.granted = append(o.granted, *g)
	return o.failure
}

func (o *overrides) Heartbeat(context.Context) (store.Heartbeat, error) { return o.beat, o.failure }

func openConfig(t *testing.T, store *overrides) *runtime.Config[entity, cost, numbers] {
	t.Helper()
	return openConfigOf(t, store, gpt4())
}

func openConfigOf(t *testing.T, store *overrides, def definition) *runtime.Config[entity, cost, numbers] {
	t.Helper()
	b := runtime.NewBuilder(&fake{overrides: store})
	runtime.Bind[entity](b, def, toVector, fromVector)
	config := runtime.BindConfig[entity](b, def, toVector, toLimits, fromLimits)
	if _, err := b.Limiter(); err != nil {
		t.Fatal(err)
	}
	return config
}

func per(n int64) *bucket.Limit {
	l := bucket.Per(n, time.Minute)
	return &l
}

// rate is per as users have it, in full.
func rate(n int64) *runtime.Rate {
	return &runtime.Rate{Capacity: n, Burst: n, Refill: n, Every: time.Minute}
}

// TestRefill: Set fills the entity's bucket after it has written, and a kind's override fills none.
func TestRefill(t *testing.T) {
	stored := &overrides{}
	config := openConfig(t, stored)
	ctx := t.Context()
	rev, err := config.Entity(user{"1"}).Set(ctx, numbers{RPM: rate(5)}, "", runtime.Refill())
	equal(t, "error", err, nil)
	equal(t, "revision", rev, "1")
	equal(t, "filled", fmt.Sprint(stored.filled), "[0 user-1 user-1]")
	_, err = config.Kind(user{"1"}).Set(ctx, numbers{RPM: rate(5)}, "", runtime.Refill())
	invalid, ok := errors.AsType[*runtime.InvalidError](err)
	if !ok || invalid.Value != "Refill" || stored.written != 1 {
		t.Errorf("of a kind: %v, and %d writes", err, stored.written)
	}
	equal(t, "error", config.Reset(ctx, user{"2"}), nil)
	equal(t, "filled", fmt.Sprint(stored.filled), "[0 user-1 user-1 0 user-2 user-2]")
}

// TestGrant: a grant is to the entity's own bucket, in millitokens, with the calendars of its windows. Bad
// grants do not get to the store.
func TestGrant(t *testing.T) {
	def, never := gpt4(), &bucket.Calendar{Unit: bucket.Never}
	for i := range def.spec.Kinds {
		kind := &def.spec.Kinds[i]
		kind.Limits[1].Refill, kind.Limits[1].Period = 0, bucket.Never.Nominal()
		kind.Windows = []*bucket.Calendar{nil, never}
	}
	stored := &overrides{}
	config := openConfigOf(t, stored, def)
	ctx := t.Context()
	for what, test := range map[string]struct {
		more cost
		id   string
		want string
	}{
		"a rate":    {cost{RPM: 1, TPM: 5}, "a", "grant of rpm 1"},
		"negative":  {cost{TPM: -1}, "a", "grant of tpm -1"},
		"nothing":   {cost{}, "a", "grant a"},
		"too much":  {cost{TPM: math.MaxInt64}, "a", "grant of tpm"},
		"no id":     {cost{TPM: 5}, "", "id of the grant"},
		"a bad id":  {cost{TPM: 5}, "a#b", "id of the grant a#b"},
		"no entity": {cost{TPM: 5}, "a", "id of user"},
	} {
		of := user{"1"}
		if what == "no entity" {
			of = user{""}
		}
		err := config.Grant(ctx, of, test.more, test.id)
		invalid, ok := errors.AsType[*runtime.InvalidError](err)
		if !ok || !strings.HasPrefix(strings.TrimSpace(invalid.Field+" "+invalid.Value), test.want) {
			t.Errorf("%s: %v, want an *InvalidError about %s", what, err, test.want)
		}
	}
	if stored.granted != nil {
		t.Fatalf("bad grants got to the store: %+v", stored.granted)
	}
	equal(t, "error", config.Grant(ctx, user{"1"}, cost{TPM: 5}, "invoice-1"), nil)
	g := stored.granted[0]
	if g.ID != "invoice-1" || g.Kind != 0 || g.Entity != "user-1" || g.Root != "user-1" ||
		!slices.Equal(g.Amounts, []int64{0, 5000}) || !slices.Equal(g.Windows, []*bucket.Calendar{nil, never}) {
		t.Errorf("%+v", g)
	}
	equal(t, "repeated", g.Repeated(def.spec, []int64{0, 5000}), nil)
	if err := g.Repeated(def.spec, []int64{0, 6000}); err == nil {
		t.Error("another amount is the same grant")
	}
	stored.failure = errors.New("no table")
	equal(t, "error", config.Grant(ctx, user{"1"}, cost{TPM: 5}, "invoice-1"), stored.failure)
}

func TestOverride(t *testing.T) {
	store := &overrides{}
	config := openConfig(t, store)
	ctx := t.Context()
	equal(t, "name", config.Name(), "gpt-4")
	for _, test := range []struct {
		at       string
		override *runtime.Override[numbers]
	}{
		{"user-1", config.Entity(user{"1"})},
		{"project-1", config.Entity(project{"1"})},
		{"user-7", config.Entity(lookedUp(0, "7"))},
		{"user", config.Kind(user{})},
		{"project", config.Kind(project{"anything # at all"})},
	} {
		t.Run(test.at, func(t *testing.T) {
			o := test.override
			got, rev, err := o.Get(ctx)
			check(t, err, "")
			equal(t, "limits", got, numbers{})
			equal(t, "revision", rev, "")
			rev, err = o.Set(ctx, numbers{TPM: rate(5)}, rev)
			check(t, err, "")
			equal(t, "level", store.listed[len(store.listed)-1].At, test.at)
			got, read, err := o.Get(ctx)
			check(t, err, "")
			if diff := cmp.Diff(numbers{TPM: rate(5)}, got); diff != "" {
				t.Errorf("limits (-want +got):\n%s", diff)
			}
			equal(t, "revision", read, rev)

			_, err = o.Set(ctx, numbers{RPM: rate(7)}, "")
			check(t, err, "conflict gpt-4 "+test.at)
			if _, ok := errors.AsType[*runtime.ConflictError](err); !ok {
				t.Errorf("error is a %T", err)
			}
			check(t, o.Delete(ctx, "stale"), "conflict gpt-4 "+test.at)
			rev, err = o.Set(ctx, numbers{RPM: rate(7)}, rev)
			check(t, err, "")
			check(t, o.Delete(ctx, rev), "")
			got, rev, err = o.Get(ctx)
			check(t, err, "")
			equal(t, "limits", got, numbers{})
			equal(t, "revision", rev, "")
		})
	}
}

func TestBadOverrides(t *testing.T) {
	store := &overrides{}
	config := openConfig(t, store)
	of := func(capacity, burst int64) *runtime.Rate { return &runtime.Rate{Capacity: capacity, Burst: burst} }
	wrong := func(capacity, burst int64) string {
		return bucket.Per(capacity, time.Minute).WithBurst(burst).Check(0)
	}
	for _, test := range []struct {
		name     string
		override *runtime.Override[numbers]
		limits   numbers
		want     string
	}{
		{"burst below capacity", config.Entity(user{"1"}), numbers{TPM: of(5, 3)},
			"invalid gpt-4 limit tpm user-1 is not possible: " + wrong(5, 3)},
		{"the first of several", config.Kind(user{}), numbers{RPM: of(0, 1), TPM: of(5, 3)},
			"invalid gpt-4 limit rpm user is not possible: " + wrong(0, 1)},
		{"empty id", config.Entity(user{}), numbers{TPM: of(5, 5)},
			"invalid gpt-4 id user"},
		{"bad id", config.Entity(project{"a#b"}), numbers{TPM: of(5, 5)},
			`invalid gpt-4 id project "a#b"`},
		{"nil entity", config.Entity(nil), numbers{TPM: of(5, 5)}, "invalid gpt-4 entity is nil"},
		{"nil kind", config.Kind(nil), numbers{TPM: of(5, 5)}, "invalid gpt-4 entity is nil"},
	} {
		t.Run(test.name, func(t *testing.T) {
			_, err := test.override.Set(t.Context(), test.limits, "")
			checkReason(t, err, test.want)
			if _, ok := errors.AsType[*runtime.InvalidError](err); !ok {
				t.Errorf("error is a %T", err)
			}
			equal(t, "written", store.written, 0)
			if test.limits.TPM.Burst == 5 { // it is who that is wrong
				_, _, err = test.override.Get(t.Context())
				checkReason(t, err, test.want)
				checkReason(t, test.override.Delete(t.Context(), ""), test.want)
			}
		})
	}
	_, err := config.Explain(t.Context(), user{})
	check(t, err, "invalid gpt-4 id user")
}

// TestOverrideBelowPerCall: a project has no per_call, a user's calls take 2 requests.
func TestOverrideBelowPerCall(t *testing.T) {
	def := gpt4()
	def.spec.Kinds[0].PerCall[0] = 2
	config := openConfigOf(t, &overrides{}, def)
	one := numbers{RPM: &runtime.Rate{Capacity: 1}}
	_, err := config.Entity(project{"1"}).Set(t.Context(), one, "")
	check(t, err, "")
	_, err = config.Entity(user{"1"}).Set(t.Context(), one, "")
	checkReason(t, err,
		"invalid gpt-4 limit rpm user-1 is not possible: "+bucket.Per(1, time.Minute).Check(2))
}

func TestExplain(t *testing.T) {
	store := &overrides{}
	config := openConfig(t, store)
	ctx := t.Context()
	schema := numbers{rate(60), rate(6000)}
	explain := func(want ...runtime.Explained[numbers]) {
		t.Helper()
		got, err := config.Explain(ctx, user{"1"})
		check(t, err, "")
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("explained (-want +got):\n%s", diff)
		}
		*got[2].Limits.RPM = runtime.Rate{} // belongs to the caller
	}
	explain(runtime.Explained[numbers]{At: "user-1"}, runtime.Explained[numbers]{At: "user"},
		runtime.Explained[numbers]{At: "schema", Limits: schema, Wins: []string{"rpm", "tpm"}})
	if _, err := config.Kind(user{}).Set(ctx, numbers{RPM: rate(1), TPM: rate(2)}, ""); err != nil {
		t.Fatal(err)
	}
	explain(runtime.Explained[numbers]{At: "user-1"},
		runtime.Explained[numbers]{At: "user", Limits: numbers{rate(1), rate(2)}, Wins: []string{"rpm", "tpm"}},
		runtime.Explained[numbers]{At: "schema", Limits: schema})
	rev, err := config.Entity(user{"1"}).Set(ctx, numbers{TPM: rate(3)}, "")
	check(t, err, "")
	explain(runtime.Explained[numbers]{At: "user-1", Limits: numbers{TPM: rate(3)}, Wins: []string{"tpm"}},
		runtime.Explained[numbers]{At: "user", Limits: numbers{rate(1), rate(2)}, Wins: []string{"rpm"}},
		runtime.Explained[numbers]{At: "schema", Limits: schema})

	var all []runtime.Overridden[numbers]
	for o, err := range config.All(ctx) {
		check(t, err, "")
		all = append(all, o)
	}
	want := []runtime.Overridden[numbers]{
		{At: "user", Limits: numbers{rate(1), rate(2)}, Revision: "1"},
		{At: "user-1", Limits: numbers{TPM: rate(3)},
			Revision: rev},
	}
	if diff := cmp.Diff(want, all); diff != "" {
		t.Errorf("all (-want +got):\n%s", diff)
	}
	for _, err := range config.All(ctx) {
		check(t, err, "")
		break // who has seen enough may stop
	}
}

func TestOverridesPassErrorsOn(t *testing.T) {
	backend := &overrides{failure: errors.New("down")}
	config := openConfig(t, backend)
	o := config.Entity(user{"1"})
	_, _, err := o.Get(t.Context())
	check(t, err, "down")
	_, err = o.Set(t.Context(), numbers{}, "")
	check(t, err, "down")
	check(t, o.Delete(t.Context(), ""), "down")
	_, err = config.Explain(t.Context(), user{"1"})
	check(t, err, "down")
	backend.listed = []store.Stored{{At: "user", Limits: []*bucket.Limit{per(1), nil}}}
	var got []string
	for o, err := range config.All(t.Context()) {
		if err != nil {
			got = append(got, err.Error())
		} else {
			got = append(got, o.At)
		}
	}
	if want := []string{"user", "down"}; !slices.Equal(got, want) {
		t.Errorf("all: %q, want %q", got, want)
	}
}

// TestResolve holds Resolve to precedence, limit by limit, and to leaving its arguments alone.
func TestResolve(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 4).Draw(t, "limits")
		schema := make([]bucket.Limit, n)
		for i := range schema {
			schema[i] = bucket.Per(int64(1+i), time.Minute)
		}
		before := slices.Clone(schema)
		all := make([]store.Stored, rapid.IntRange(0, 3).Draw(t, "all"))
		next := int64(100)
		want, overridden := slices.Clone(schema), make([]bool, n)
		for j := range all {
			if !rapid.Bool().Draw(t, "stored") {
				continue
			}
			all[j].Limits = make([]*bucket.Limit, n)
			for i := range n {
				if rapid.Bool().Draw(t, "named") {
					next++
					all[j].Limits[i] = per(next)
					if !overridden[i] {
						want[i], overridden[i] = *per(next), true
					}
				}
			}
		}
		got := store.Resolve(schema, all...)
		if !slices.Equal(got, want) {
			t.Fatalf("resolved %v, want %v", got, want)
		}
		if !slices.Equal(schema, before) {
			t.Fatalf("schema has become %v", schema)
		}
		if same := &got[0] == &schema[0]; same != !slices.Contains(overridden, true) {
			t.Fatalf("schema itself returned: %v", same)
		}
	})
}
