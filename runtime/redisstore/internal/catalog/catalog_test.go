package catalog_test

import (
	"errors"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sluice-go/sluice/internal/test/redistest"
	"github.com/sluice-go/sluice/runtime/bucket"
	"github.com/sluice-go/sluice/runtime/redisstore/internal/audit"
	"github.com/sluice-go/sluice/runtime/redisstore/internal/catalog"
	"github.com/sluice-go/sluice/runtime/redisstore/internal/database"
	"github.com/sluice-go/sluice/runtime/store"
)

// model is a template with one limit by name and one for all names together, for keys of orgs on plans.
func model() *store.Spec {
	rpm, month := bucket.Per(60, time.Minute), bucket.InWindows(100, 30*24*time.Hour)
	return &store.Spec{
		Resource: "model", Limits: []string{"rpm", "month"}, Usages: []string{"input", "output"},
		Kinds: []store.Kind{
			{Name: "org", Prefix: "org-", Parent: store.NoParent},
			{Name: "key", Prefix: "key-", Parent: 0, Limits: []bucket.Limit{rpm, {}}},
			{Name: "org", Prefix: "org-", Parent: store.NoParent, AllNames: true, Limits: []bucket.Limit{{}, month}},
		},
		Plans: &store.Plans{Kind: 0, Names: []string{"pro"}},
	}
}

type world struct {
	*testing.T
	*catalog.Catalog

	spec  *store.Spec
	redis *redistest.Redis
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{T: t, spec: model(), redis: redistest.New(t)}
	w.Catalog = &catalog.Catalog{
		DB: &database.DB{Client: w.redis.Client, Keys: database.Keys{Prefix: w.redis.Prefix}},
	}
	return w
}

// set sets e, and holds that it comes back with a version that is after ms from now.
func (w *world) set(e store.Entry, after int64) store.Entry {
	w.Helper()
	rev, err := w.Set(w.Context(), w.spec, e)
	if err != nil {
		w.Fatalf("setting %s: %v", e.Name, err)
	}
	got, found, err := w.Get(w.Context(), w.spec, e.Name)
	e.Version, e.Revision = w.redis.Now().UnixMilli()+after, rev
	if diff := cmp.Diff(e, got); diff != "" || !found || err != nil {
		w.Errorf("%s is found: %v, %v\n%s", e.Name, found, err, diff)
	}
	if want := strconv.FormatInt(e.Version, 10); string(rev) != want {
		w.Errorf("revision %s, want %s", rev, want)
	}
	return e
}

func (w *world) conflicts(what string, err error) {
	w.Helper()
	if _, ok := errors.AsType[*store.ConflictError](err); !ok {
		w.Errorf("%s: %v, want a ConflictError", what, err)
	}
}

func perMinute(n int64) *bucket.Limit {
	l := bucket.Per(n, time.Minute)
	return &l
}

// TestCatalog: an entry comes back as it was set, and of two who change it one gets a conflict.
func TestCatalog(t *testing.T) {
	w := newWorld(t)
	if _, found, err := w.Get(t.Context(), w.spec, "gpt-5"); found || err != nil {
		t.Errorf("without an entry: %v, %v", found, err)
	}
	old := w.set(store.Entry{
		Name: "gpt-5", Buckets: "gpt-4", Prices: []int64{250_000, -1},
		Numbers: []store.Stored{
			{At: "key", Limits: []*bucket.Limit{perMinute(10), nil}},
			{At: "pro.key", Limits: []*bucket.Limit{perMinute(200), nil}},
		},
	}, 0)
	w.set(store.Entry{Name: "gpt-5-2026", Alias: "gpt-5"}, 0)
	next := store.Entry{Name: "gpt-5", Revision: old.Revision}
	w.set(next, 1)
	_, err := w.Set(t.Context(), w.spec, next)
	w.conflicts("an old revision", err)
	next.Revision = ""
	_, err = w.Set(t.Context(), w.spec, next)
	w.conflicts("no revision", err)

	var names []string
	for e, err := range w.List(t.Context(), w.spec) {
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, e.Name)
	}
	if !slices.Equal(names, []string{"gpt-5", "gpt-5-2026"}) {
		t.Errorf("listed %q", names)
	}
}

// TestDelete: a removed name is not found, and its version goes on from where it was.
func TestDelete(t *testing.T) {
	w := newWorld(t)
	w.conflicts("nothing there", w.Delete(t.Context(), w.spec, "gpt-5", "7"))
	e := w.set(store.Entry{Name: "gpt-5"}, 0)
	w.conflicts("another revision", w.Delete(t.Context(), w.spec, "gpt-5", "7"))
	if err := w.Delete(t.Context(), w.spec, "gpt-5", e.Revision); err != nil {
		t.Fatal(err)
	}
	if _, found, err := w.Get(t.Context(), w.spec, "gpt-5"); found || err != nil {
		t.Errorf("after a removal: %v, %v", found, err)
	}
	for e, err := range w.List(t.Context(), w.spec) {
		t.Errorf("listed %v, %v", e, err)
	}
	w.set(store.Entry{Name: "gpt-5"}, 2)
}

// TestMalformed: what another program has left is an error that names it.
func TestMalformed(t *testing.T) {
	w := newWorld(t)
	for name, value := range map[string]string{
		"no version": "x", "no entry": "7 op {", "no limit": `7 op {"numbers":{"key":{"rpm":"1 2"}}}`,
	} {
		w.redis.Client.HSet(t.Context(), w.redis.Prefix+"#catalog:model", name, value)
		_, _, err := w.Get(t.Context(), w.spec, name)
		if _, ok := errors.AsType[*store.SetupError](err); !ok {
			t.Errorf("%s: %v, want a SetupError", name, err)
		}
		failed := false
		for _, err := range w.List(t.Context(), w.spec) {
			failed = failed || err != nil
		}
		if !failed {
			t.Errorf("%s: the list does not fail", name)
		}
		w.redis.Client.HDel(t.Context(), w.redis.Prefix+"#catalog:model", name)
	}
}

// TestRecordOfOthers: the record of a change has what another binary's schema has of an entry before and
// after, since the change leaves it.
func TestRecordOfOthers(t *testing.T) {
	w := newWorld(t)
	e := w.set(store.Entry{Name: "a", Prices: []int64{7, 8}}, 0)
	older := model()
	older.Usages = []string{"output"}
	e.Prices = []int64{9}
	if _, err := w.Set(t.Context(), older, e); err != nil {
		t.Fatal(err)
	}
	of := store.Audited{Catalog: "model"}
	var last store.Change
	for c, err := range audit.List(t.Context(), w.DB, of, time.Time{}, catalog.Fields) {
		if err != nil {
			t.Fatal(err)
		}
		last = c
	}
	want := [2]map[string]string{
		{"price input": "7", "price output": "8"}, {"price input": "7", "price output": "9"},
	}
	if diff := cmp.Diff(want, [2]map[string]string{last.Before, last.After}); diff != "" {
		t.Error(diff)
	}
}
