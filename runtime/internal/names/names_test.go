package names_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"maps"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluice-go/sluice/runtime/internal/background"
	"github.com/sluice-go/sluice/runtime/internal/names"
	"github.com/sluice-go/sluice/runtime/store"
)

// pause takes d of a bubble's time.
func pause(d time.Duration) { time.Sleep(d) } //nolint:forbidigo // a bubble's time

// template is resource model.
type template struct{ spec *store.Spec }

func (t template) Spec() *store.Spec { return t.spec }

// catalog is a Catalog in memory. A read takes a millisecond, or as long as its context if it hangs.
type catalog struct {
	mu      sync.Mutex
	entries map[string]store.Entry
	failure error
	hangs   atomic.Bool
	lists   int
	gets    int
}

// reads takes the time of a read.
func (c *catalog) reads(ctx context.Context) error {
	if c.hangs.Load() {
		<-ctx.Done()
		return &store.UnavailableError{Err: ctx.Err()}
	}
	pause(time.Millisecond)
	return nil
}

func (c *catalog) Get(ctx context.Context, _ *store.Spec, name string) (store.Entry, bool, error) {
	err := c.reads(ctx)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.gets++
	e, found := c.entries[name]
	return e, found, cmp.Or(err, c.failure)
}

func (c *catalog) Set(_ context.Context, _ *store.Spec, e store.Entry) (store.Revision, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	e.Version = c.entries[e.Name].Version + 1
	c.entries[e.Name] = e
	return store.Revision(strconv.FormatInt(e.Version, 10)), nil
}

func (c *catalog) Delete(_ context.Context, _ *store.Spec, name string, _ store.Revision) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.entries, name)
	return nil
}

func (c *catalog) List(ctx context.Context, _ *store.Spec) iter.Seq2[store.Entry, error] {
	return func(yield func(store.Entry, error) bool) {
		c.mu.Lock()
		c.lists++
		c.mu.Unlock()
		err := c.reads(ctx)
		c.mu.Lock()
		entries, err := maps.Clone(c.entries), cmp.Or(err, c.failure)
		c.mu.Unlock()
		if err != nil {
			yield(store.Entry{}, err)
			return
		}
		for _, name := range slices.Sorted(maps.Keys(entries)) {
			if !yield(entries[name], nil) {
				return
			}
		}
	}
}

// model is what is made for a name.
type model struct{ resource, name string }

type world struct {
	*testing.T
	*names.Names[model]

	catalog *catalog
	made    atomic.Int64
}

// run calls test with names a and b, and c as an alias of b, in a bubble.
func run(t *testing.T, test func(*world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := &world{T: t, catalog: &catalog{entries: map[string]store.Entry{
			"a": {Name: "a", Version: 1}, "b": {Name: "b", Version: 1, Buckets: "old-b"},
			"c": {Name: "c", Version: 1, Alias: "b"}, "d": {Name: "d", Version: 1, Alias: "gone"},
		}}}
		tasks := &background.Tasks{}
		var err error
		w.Names, err = names.New(names.Config[model]{
			Env: &store.Env{
				Clock: store.SystemClock(), CacheTTL: time.Minute, SettleTimeout: time.Second,
				Logger: slog.New(slog.DiscardHandler), Observer: &store.Observer{},
			},
			Template: template{&store.Spec{Resource: "model"}}, Tasks: tasks,
			Catalog: func() store.Catalog { return w.catalog },
			Make: func(def *store.Named) *model {
				w.made.Add(1)
				return &model{def.Spec().Resource, def.Spec().Entry.Name}
			},
		})
		if err != nil {
			t.Fatal(err)
		}
		test(w)
		synctest.Wait()
		if err := tasks.Wait(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

// is holds that a name is of resource, and returns what was made for it.
func (w *world) is(name, resource string) *model {
	w.Helper()
	m, err := w.Get(w.Context(), name)
	if err != nil || m.resource != resource {
		w.Errorf("%s is %v, %v, want of %s", name, m, err, resource)
	}
	return m
}

// isUnknown holds that there is no name like this.
func (w *world) isUnknown(name string, unread bool) {
	w.Helper()
	_, err := w.Get(w.Context(), name)
	unknown, ok := errors.AsType[*store.UnknownNameError](err)
	if !ok || *unknown != (store.UnknownNameError{Resource: "model", Name: name, Unread: unread}) {
		w.Errorf("%s: %v, want an UnknownNameError, unread: %v", name, err, unread)
	}
}

// reads holds how often the catalog was read since the last call.
func (w *world) reads(lists, gets int) {
	w.Helper()
	synctest.Wait()
	w.catalog.mu.Lock()
	defer w.catalog.mu.Unlock()
	if w.catalog.lists != lists || w.catalog.gets != gets {
		w.Errorf("%d lists and %d gets, want %d and %d", w.catalog.lists, w.catalog.gets, lists, gets)
	}
	w.catalog.lists, w.catalog.gets = 0, 0
}

func TestNames(t *testing.T) {
	run(t, func(w *world) {
		a := w.is("a", "model/a")
		if b := w.is("b", "old-b"); b != w.is("c", "old-b") {
			w.Error("an alias has another resource than its name")
		}
		w.reads(1, 0)
		w.isUnknown("d", false)
		w.isUnknown("e", false)
		w.isUnknown("e", false)
		w.reads(0, 3) // d, and the name that it was an alias of; e once
		for _, name := range []string{"", "a#b", "a\x00", string(make([]byte, 129))} {
			_, err := w.Get(w.Context(), name)
			if invalid, ok := errors.AsType[*store.InvalidError](err); !ok || invalid.Field != "name" {
				w.Errorf("%q: %v, want an InvalidError of the name", name, err)
			}
		}
		w.reads(0, 0)
		if w.is("a", "model/a") != a {
			w.Error("what was made for a name is made again")
		}
	})
}

// TestRefresh: a change is in force within a minute, and a busy process does not wait for it.
func TestRefresh(t *testing.T) {
	run(t, func(w *world) {
		a, b := w.is("a", "model/a"), w.is("b", "old-b")
		w.isUnknown("e", false)
		w.reads(1, 1)
		for _, e := range []store.Entry{{Name: "a", Buckets: "old-a"}, {Name: "e"}} {
			if _, err := w.catalog.Set(w.Context(), nil, e); err != nil {
				w.Fatal(err)
			}
		}
		pause(29 * time.Second)
		w.is("a", "model/a")
		w.reads(0, 0)
		pause(2 * time.Second)
		began := time.Now()
		w.is("a", "model/a")
		if took := time.Since(began); took != 0 {
			w.Errorf("a call waited %v for a refresh", took)
		}
		w.reads(1, 0)
		pause(time.Second)
		if w.is("a", "old-a") == a || w.is("b", "old-b") != b {
			w.Error("a changed entry has the old resource, or one that has not changed a new one")
		}
		w.is("e", "model/e")
		pause(time.Hour)
		w.is("a", "old-a") // idle for long: it waits
		w.reads(1, 0)
	})
}

// TestOwnChange: the process that changes an entry goes by it at once.
func TestOwnChange(t *testing.T) {
	run(t, func(w *world) {
		w.is("a", "model/a")
		if _, err := w.catalog.Set(w.Context(), nil, store.Entry{Name: "a", Buckets: "old-a"}); err != nil {
			w.Fatal(err)
		}
		w.Invalidate("a")
		w.is("a", "old-a")
	})
}

// TestOutage: without an answer, what is known stays in use.
func TestOutage(t *testing.T) {
	run(t, func(w *world) {
		w.catalog.failure = &store.UnavailableError{Err: errors.New("down")}
		_, err := w.Get(w.Context(), "a")
		if _, down := errors.AsType[*store.UnavailableError](err); !down {
			w.Errorf("nothing is known: %v, want an UnavailableError", err)
		}
		w.catalog.failure = nil
		w.is("a", "model/a")
		w.catalog.failure = &store.UnavailableError{Err: errors.New("down")}
		for range 5 {
			pause(20 * time.Minute)
			w.is("a", "model/a")
		}
		w.Invalidate("a")
		w.is("a", "model/a")
		w.catalog.failure = &store.SetupError{What: "malformed"}
		pause(time.Hour)
		_, err = w.Get(w.Context(), "a")
		if _, malformed := errors.AsType[*store.SetupError](err); !malformed {
			w.Errorf("a malformed catalog: %v, want a SetupError", err)
		}
	})
}

// TestInvented: names that callers make up cost at most 50 reads a second, and names that there are go on.
func TestInvented(t *testing.T) {
	run(t, func(w *world) {
		w.is("a", "model/a")
		w.reads(1, 0)
		began := time.Now()
		for second := range 3 {
			for i := range 1000 {
				name := fmt.Sprintf("invented-%d-%d", second, i)
				w.isUnknown(name, i >= 50)
				if i%100 == 0 {
					w.is("a", "model/a")
				}
			}
			w.reads(0, 50)
			pause(time.Duration(second+1)*time.Second - time.Since(began))
		}
		if w.made.Load() != 2 {
			w.Errorf("made %d names, want 2", w.made.Load())
		}
	})
}

// TestAllocates: a known name costs a look at a map.
func TestAllocates(t *testing.T) {
	run(t, func(w *world) {
		w.is("a", "model/a")
		if n := testing.AllocsPerRun(100, func() { w.is("a", "model/a") }); n != 0 {
			w.Errorf("%v allocations for a known name", n)
		}
	})
}

// BenchmarkNamed looks for a name of ten thousand.
func BenchmarkNamed(b *testing.B) {
	c := &catalog{entries: map[string]store.Entry{}}
	for i := range 10_000 {
		name := fmt.Sprint("gpt-", i)
		c.entries[name] = store.Entry{Name: name, Version: 1}
	}
	all, err := names.New(names.Config[model]{
		Env: &store.Env{
			Clock: store.SystemClock(), CacheTTL: time.Hour, SettleTimeout: time.Second,
			Logger: slog.New(slog.DiscardHandler), Observer: &store.Observer{},
		},
		Template: template{&store.Spec{Resource: "model"}}, Tasks: &background.Tasks{},
		Catalog: func() store.Catalog { return c },
		Make:    func(def *store.Named) *model { return &model{name: def.Spec().Entry.Name} },
	})
	if err != nil {
		b.Fatal(err)
	}
	ctx := b.Context()
	b.ReportAllocs()
	for b.Loop() {
		if _, err := all.Get(ctx, "gpt-77"); err != nil {
			b.Fatal(err)
		}
	}
}
