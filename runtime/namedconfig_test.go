package runtime_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/sluice-go/sluice/internal/test/conformance/named"
	"github.com/sluice-go/sluice/runtime"
	"github.com/sluice-go/sluice/runtime/bucket"
	"github.com/sluice-go/sluice/runtime/money"
	"github.com/sluice-go/sluice/runtime/store"
)

// written is a Catalog in memory that is written, too. It counts reads of whole catalogs.
type written struct {
	entries map[string]store.Entry
	sets    int
	lists   int
}

func (w *written) Get(_ context.Context, _ *store.Spec, name string) (store.Entry, bool, error) {
	e, found := w.entries[name]
	return e, found, nil
}

func (w *written) List(context.Context, *store.Spec) iter.Seq2[store.Entry, error] {
	w.lists++
	return func(yield func(store.Entry, error) bool) {
		for _, e := range w.entries {
			if !yield(e, nil) {
				return
			}
		}
	}
}

func (w *written) Set(_ context.Context, spec *store.Spec, e store.Entry) (store.Revision, error) {
	if w.entries[e.Name].Revision != e.Revision {
		return "", &store.ConflictError{Resource: spec.Resource, At: e.Name}
	}
	w.sets++
	e.Revision, e.Version = store.Revision(strconv.Itoa(w.sets)), int64(w.sets)
	w.entries[e.Name] = e
	return e.Revision, nil
}

func (w *written) Delete(context.Context, *store.Spec, string, store.Revision) error {
	return errors.New("not deleted")
}

// byResource keeps the overrides of each resource.
type byResource struct {
	of     map[string]*overrides
	filled []string
}

func (o *byResource) resource(spec *store.Spec) *overrides {
	if o.of[spec.Resource] == nil {
		o.of[spec.Resource] = &overrides{}
	}
	return o.of[spec.Resource]
}

func (o *byResource) Get(ctx context.Context, spec *store.Spec, at ...string) ([]store.Stored, error) {
	return o.resource(spec).Get(ctx, spec, at...)
}

func (o *byResource) Set(ctx context.Context, spec *store.Spec, s store.Stored) (store.Revision, error) {
	return o.resource(spec).Set(ctx, spec, s)
}

func (o *byResource) List(ctx context.Context, spec *store.Spec) iter.Seq2[store.Stored, error] {
	return o.resource(spec).List(ctx, spec)
}

func (o *byResource) Fill(_ context.Context, spec *store.Spec, kind int, entity, root string) error {
	o.filled = append(o.filled, strings.Join([]string{spec.Template, spec.ResourceOf(kind), entity, root}, " "))
	return nil
}

func (o *byResource) Grant(_ context.Context, spec *store.Spec, g *store.Grant) error {
	o.filled = append(o.filled, fmt.Sprint(spec.ResourceOf(g.Kind), " ", g.Entity, " ", g.Root, " ", g.Amounts))
	return nil
}

func (*byResource) Heartbeat(context.Context) (store.Heartbeat, error) { return store.Heartbeat{}, nil }

// openNamed opens the templates of the suite with a catalog that has gpt-5, latest as an alias of it, and
// old, whose buckets are those of gpt-4.
func openNamed(t *testing.T) (*named.Limiter, *written, *byResource) {
	t.Helper()
	catalog := &written{entries: map[string]store.Entry{
		"gpt-5":  {Name: "gpt-5", Prices: []int64{-1, -1, 8_000_000_000}},
		"latest": {Name: "latest", Alias: "gpt-5"},
		"old":    {Name: "old", Buckets: "gpt-4"},
	}}
	stored := &byResource{of: map[string]*overrides{}}
	lim, err := named.New(&fake{catalog: catalog, overrides: stored, members: &members{}}, quiet())
	if err != nil {
		t.Fatal(err)
	}
	return lim, catalog, stored
}

func key1() named.Key { return named.Key{ID: "1", Org: named.Org{ID: "7"}} }

// TestPrices: a name has the catalog's prices, and those of limits.yaml for what that does not name.
func TestPrices(t *testing.T) {
	lim, _, _ := openNamed(t)
	gpt5, err := lim.Model.Named(t.Context(), "latest")
	equal(t, "error", err, nil)
	equal(t, "prices", gpt5.Prices.String(), "input 0.001, cached 100/1M, output 0.008 USD")
	equal(t, "name", gpt5.Name(), "model/gpt-5")
	usage := named.ModelUsage{Input: 10, Output: 5}
	equal(t, "cost", usage.Cost(gpt5.Prices), named.ModelCost{TPM: 15, Month: 5 * money.Cent})
	old, err := lim.Model.Named(t.Context(), "old")
	equal(t, "error", err, nil)
	equal(t, "prices", old.Prices.String(), "input 0.001, cached 100/1M, output 0.004 USD")
	equal(t, "cost", usage.Cost(old.Prices), named.ModelCost{TPM: 15, Month: 3 * money.Cent})
}

// TestNamedOverrides: an override of a name is that of the one that it is an alias of, or of the resource
// that had its buckets. One of all names is another.
func TestNamedOverrides(t *testing.T) {
	lim, _, stored := openNamed(t)
	ctx, config := t.Context(), lim.Config.Model
	for name, at := range map[string]string{
		"gpt-5": "model/gpt-5", "latest": "model/gpt-5", "old": "gpt-4",
	} {
		limits := named.ModelLimits{RPM: rate(5)}
		rev, err := config.Named(name).Entity(key1()).Set(ctx, limits, "")
		equal(t, "error", err, nil)
		equal(t, "stored at "+at, len(stored.of[at].listed), 1)
		got, _, err := config.Named(name).Entity(key1()).Get(ctx)
		equal(t, "error", err, nil)
		equal(t, name, got.String(), limits.String())
		equal(t, "error", config.Named(name).Entity(key1()).Delete(ctx, rev), nil)
	}
	_, err := config.Entity(key1()).Set(ctx, named.ModelLimits{TPM: rate(7)}, "")
	equal(t, "error", err, nil)
	_, err = config.Plan(named.PlanPro, key1().Org).Set(ctx, named.ModelLimits{Month: new(7 * money.Unit)}, "")
	equal(t, "of all names", errors.Join(err) == nil && len(stored.of["model"].listed) == 2, true)
}

// TestNamedInvalid: what a kind, a name or all names do not have is refused, and so are unknown names.
func TestNamedInvalid(t *testing.T) {
	lim, _, _ := openNamed(t)
	ctx, config, voice := t.Context(), lim.Config.Model, lim.Config.Voice
	set := func(o *runtime.Override[named.ModelLimits], limits named.ModelLimits) error {
		_, err := o.Set(ctx, limits, "")
		return err
	}
	month := named.ModelLimits{Month: new(7 * money.Unit)}
	_, day := voice.Named("a").Entity(key1()).Set(ctx, named.VoiceLimits{Day: new(int64(5))}, "")
	for what, test := range map[string]struct {
		err         error
		field, says string
	}{
		"another kind's": {
			set(config.Entity(key1()), month), "limit month of key-1", "kind key does not have it",
		},
		"all names', by name": {day, "limit day of key-1", "all names have it together"},
		"a bad name": {
			set(config.Named("a#b").Entity(key1()), named.ModelLimits{}), "name", "contains '#'",
		},
		"a bad name's entry": {set(config.Named("").Kind(key1()), named.ModelLimits{}), "name", "is empty"},
		"reset of all names": {config.Reset(ctx, key1()), "entity", "has limits by name alone"},
		"reset of a name":    {config.Named("gpt-5").Reset(ctx, key1().Org), "entity", "all names together alone"},
		"a grant by refilling": {
			config.Named("gpt-5").Grant(ctx, key1(), named.ModelCost{TPM: 5}, "1"), "grant of tpm", "no window",
		},
	} {
		invalid, ok := errors.AsType[*runtime.InvalidError](test.err)
		if !ok || invalid.Field != test.field || !strings.Contains(invalid.Reason, test.says) {
			t.Errorf("%s: %v, want an InvalidError of %s that says %q", what, test.err, test.field, test.says)
		}
	}
	unknown := set(config.Named("gpt-6").Kind(key1()), named.ModelLimits{RPM: rate(5)})
	if err, ok := errors.AsType[*runtime.UnknownNameError](unknown); !ok || err.Name != "gpt-6" {
		t.Errorf("a name that there is not: %v", unknown)
	}
}

// TestCatalogNumbers: the numbers of a name at a kind and at a plan are those of its entry, which keeps the
// rest, and this Limiter goes by them at once.
func TestCatalogNumbers(t *testing.T) {
	lim, catalog, _ := openNamed(t)
	ctx, config := t.Context(), lim.Config.Model.Named("latest")
	_, err := lim.Model.Named(ctx, "gpt-5")
	equal(t, "error", err, nil)
	rev, err := config.Kind(key1()).Set(ctx, named.ModelLimits{RPM: rate(5)}, "")
	equal(t, "error", err, nil)
	_, err = config.Plan(named.PlanPro, key1()).Set(ctx, named.ModelLimits{TPM: rate(9)}, "")
	conflict, ok := errors.AsType[*runtime.ConflictError](err)
	equal(t, "conflict", ok && conflict.At == "gpt-5", true)
	rev, err = config.Plan(named.PlanPro, key1()).Set(ctx, named.ModelLimits{TPM: rate(9)}, rev)
	equal(t, "error", err, nil)
	e := catalog.entries["gpt-5"]
	var at []string
	for _, n := range e.Numbers {
		at = append(at, n.At)
	}
	equal(t, "numbers", fmt.Sprint(at), "[key pro.key]")
	equal(t, "price", fmt.Sprint(e.Prices), "[-1 -1 8000000000]")
	lists := catalog.lists
	_, err = lim.Model.Named(ctx, "gpt-5")
	equal(t, "error", err, nil)
	equal(t, "reads after a change", catalog.lists-lists, 1)
	equal(t, "error", config.Kind(key1()).Delete(ctx, rev), nil)
	got, _, err := config.Kind(key1()).Get(ctx)
	equal(t, "error", err, nil)
	equal(t, "deleted", got, named.ModelLimits{})
}

// TestNamedExplain: every source of a name's limits is there, in order.
func TestNamedExplain(t *testing.T) {
	lim, catalog, stored := openNamed(t)
	catalog.entries["gpt-5"] = store.Entry{Name: "gpt-5", Numbers: []store.Stored{
		{At: "pro.key", Limits: []*bucket.Limit{per(3), nil, nil}},
		{At: "key", Limits: []*bucket.Limit{nil, per(5), nil}},
	}}
	stored.of["model"] = &overrides{listed: []store.Stored{
		{At: "key-1", Limits: []*bucket.Limit{nil, per(4), nil}},
	}}
	config := lim.Config.Model
	explained[named.ModelEntity](t, config.Named("gpt-5"), key1(),
		"key-1[] all.key-1[tpm] catalog.key[] key[] schema[rpm]")
	explained[named.ModelEntity](t, config, key1().Org, "org-7[] org[] schema[month]")
	pro := openPro(t, catalog)
	explained[named.ModelEntity](t, pro.Config.Model.Named("gpt-5"), key1(), "key-1[] all.key-1[] "+
		"catalog.pro.key[rpm] catalog.key[tpm] pro.key[] schema.pro.key[] key[] schema[]")
	explained[named.ModelEntity](t, pro.Config.Model, key1().Org,
		"org-7[] pro.org[] schema.pro.org[month] org[] schema[]")
	explained[named.VoiceEntity](t, pro.Config.Voice, key1(), "key-1[] key[] schema[rpm day]")
}

// explained holds the sources of an entity's limits, with those that each decides.
func explained[E runtime.Entity, L any](t *testing.T, config interface {
	Explain(ctx context.Context, entity E) ([]runtime.Explained[L], error)
}, entity E, want string,
) {
	t.Helper()
	entries, err := config.Explain(t.Context(), entity)
	equal(t, "error", err, nil)
	var at []string
	for _, e := range entries {
		at = append(at, e.At+fmt.Sprint(e.Wins))
	}
	equal(t, "sources", strings.Join(at, " "), want)
}

// openPro is openNamed where org 7 is on plan pro.
func openPro(t *testing.T, catalog *written) *named.Limiter {
	t.Helper()
	stored := &byResource{of: map[string]*overrides{}}
	plans := &members{known: map[string]store.Member{"org-7": {Entity: "org-7", Plan: "pro", PlanVersion: 1}}}
	lim, err := named.New(&fake{catalog: catalog, overrides: stored, members: plans}, quiet())
	if err != nil {
		t.Fatal(err)
	}
	return lim
}

// TestNamedReset: Reset and Grant of a name are of its bucket, and without a name of that of all names.
func TestNamedReset(t *testing.T) {
	lim, _, stored := openNamed(t)
	ctx, config := t.Context(), lim.Config.Model
	err := cmp.Or(config.Named("latest").Reset(ctx, key1()), config.Named("old").Reset(ctx, key1()),
		config.Reset(ctx, key1().Org), lim.Config.Voice.Reset(ctx, key1()),
		config.Grant(ctx, key1().Org, named.ModelCost{Month: 3}, "1"),
		lim.Config.Voice.Grant(ctx, key1(), named.VoiceCost{Day: 3}, "1"))
	equal(t, "error", err, nil)
	want := []string{
		"model model/gpt-5 key-1 org-7", "model gpt-4 key-1 org-7", "model model org-7 org-7",
		"voice voice key-1 key-1", "model org-7 org-7 [0 0 3]", "voice key-1 key-1 [0 3000]",
	}
	if !slices.Equal(stored.filled, want) {
		t.Errorf("%q, want %q", stored.filled, want)
	}
}
