// Package audited holds what a store promises of the records of changes: each change has one, which is
// written with it or not at all.
package audited

import (
	"context"
	"fmt"
	"iter"
	"maps"
	"slices"
	"time"

	"github.com/sluice-go/sluice/runtime/bucket"
	"github.com/sluice-go/sluice/runtime/store"
)

// Spec is a template with one limit by name and one for all names together, for keys of orgs on plans.
func Spec() *store.Spec {
	rpm, month := bucket.Per(60, time.Minute), bucket.InWindows(100, 30*24*time.Hour)
	return &store.Spec{
		Resource: "model", Limits: []string{"rpm", "month"}, Usages: []string{"input", "output"},
		Kinds: []store.Kind{
			{Name: "org", Prefix: "org-", Parent: store.NoParent},
			{Name: "key", Prefix: "key-", Parent: 0, Limits: []bucket.Limit{rpm, {}}},
			{Name: "org", Prefix: "org-", Parent: store.NoParent, AllNames: true, Limits: []bucket.Limit{{}, month}},
		},
		Plans: &store.Plans{Kind: 0, Names: []string{"pro", "free"}},
	}
}

// World is an empty store that can be killed.
type World struct {
	Overrides store.OverrideStore
	Members   store.MemberStore
	Catalog   store.Catalog
	Changes   func(ctx context.Context, of store.Audited, since time.Time) iter.Seq2[store.Change, error]

	// Kill has the process die once n requests of it have arrived. The reply of the last one is lost, and later
	// requests do not arrive. The context that it returns ends then. revive starts another process.
	Kill func(ctx context.Context, n int) (killed context.Context, revive func())
}

// thing is what can be changed: once from nothing, and then again and again.
type thing struct {
	name   string
	of     store.Audited
	at     string
	change func(ctx context.Context, w *World, n int64) error
	stored func(ctx context.Context, w *World) (map[string]string, error)
}

// limit returns a limit of n a minute.
func limit(n int64) []*bucket.Limit { l := bucket.Per(n, time.Minute); return []*bucket.Limit{&l, nil} }

// override is the thing of an override at a place.
func override(at string, of store.Audited) thing {
	get := func(ctx context.Context, w *World) (store.Stored, error) {
		all, err := w.Overrides.Get(ctx, Spec(), at)
		if err != nil {
			return store.Stored{}, err
		}
		return all[0], nil
	}
	return thing{
		name: "override at " + at, at: at, of: of,
		change: func(ctx context.Context, w *World, n int64) error {
			s, err := get(context.WithoutCancel(ctx), w)
			if err != nil {
				return err
			}
			if s.Limits = limit(n); n == 0 {
				s.Limits = make([]*bucket.Limit, 2)
			}
			_, err = w.Overrides.Set(ctx, Spec(), s)
			return err
		},
		stored: func(ctx context.Context, w *World) (map[string]string, error) {
			s, err := get(ctx, w)
			return s.Fields(Spec()), err
		},
	}
}

// things returns all kinds of things.
func things() []thing {
	return []thing{
		override("key-1", store.Audited{Entity: "key-1"}), override("key", store.Audited{Kind: "key"}),
		override("pro.key", store.Audited{Plans: "model"}),
		{
			name: "plan of org-7", at: "org-7", of: store.Audited{Entity: "org-7"},
			change: func(ctx context.Context, w *World, n int64) error {
				return w.Members.SetPlan(ctx, "org-7", []string{"", "pro", "free"}[n], nil)
			},
			stored: func(ctx context.Context, w *World) (map[string]string, error) {
				m, _, err := w.Members.Get(ctx, "org-7")
				return store.PlanFields(m.Plan), err
			},
		},
		{
			name: "entry gpt-5", at: "gpt-5", of: store.Audited{Catalog: "model"},
			change: func(ctx context.Context, w *World, n int64) error {
				e, _, err := w.Catalog.Get(context.WithoutCancel(ctx), Spec(), "gpt-5")
				if err != nil {
					return err
				}
				if n == 0 {
					return w.Catalog.Delete(ctx, Spec(), "gpt-5", e.Revision)
				}
				e.Name, e.Prices = "gpt-5", []int64{-1, n}
				e.Numbers = []store.Stored{{At: "key", Limits: limit(n)}}
				_, err = w.Catalog.Set(ctx, Spec(), e)
				return err
			},
			stored: func(ctx context.Context, w *World) (map[string]string, error) {
				e, _, err := w.Catalog.Get(ctx, Spec(), "gpt-5")
				return e.Fields(Spec()), err
			},
		},
	}
}

// Things returns the names of all that can be changed.
func Things() (names []string) {
	for _, t := range things() {
		names = append(names, t.name)
	}
	return names
}

// Problems returns what is wrong with the records of worlds that open returns.
func Problems(ctx context.Context, open func() *World) (found []string) {
	note := func(text string, args ...any) { found = append(found, fmt.Sprintf(text, args...)) }
	for _, t := range things() {
		w := open()
		for i, n := range []int64{1, 2, 0, 1} { // made, changed, ended, and made again
			if err := t.change(because(ctx, fmt.Sprint("reason ", i)), w, n); err != nil {
				note("%s: %v", t.name, err)
			}
		}
		all, err := t.holds(ctx, w)
		if err != nil {
			note("%v", err)
		}
		if len(all) != 4 {
			note("%s has %d records, want 4", t.name, len(all))
			continue
		}
		for i, c := range all {
			if want := fmt.Sprint("reason ", i); c.At != t.at || c.Reason != want || c.By == "" || c.Time.IsZero() ||
				i > 0 && !c.Time.After(all[i-1].Time) {
				note("%s: record %d is %+v", t.name, i, c)
			}
		}
		if late := collect(w.Changes(ctx, t.of, all[2].Time)); len(late) != 2 {
			note("%s: %d records since the third, want 2", t.name, len(late))
		}
	}
	return append(append(found, killed(ctx, open)...), mixed(ctx, open)...)
}

// because returns ctx with a reason.
func because(ctx context.Context, reason string) context.Context {
	by, _ := store.ActorOf(ctx)
	return store.ChangedBy(ctx, by, reason)
}

// requests is the number after which a process is killed at the latest. No change takes more.
const requests = 6

// killed returns what is wrong with records of changes in the midst of which a process is killed.
func killed(ctx context.Context, open func() *World) (found []string) {
	for _, t := range things() {
		for n := 1; n <= requests; n++ {
			w := open()
			for _, change := range []struct {
				to   int64
				kill bool
			}{{1, false}, {2, true}, {0, true}, {1, true}} {
				now, revive := ctx, func() {}
				if change.kill {
					now, revive = w.Kill(ctx, n)
				}
				err := t.change(now, w, change.to)
				if revive(); err != nil && !change.kill {
					found = append(found, fmt.Sprintf("%s: %v", t.name, err))
				}
				if _, err := t.holds(ctx, w); err != nil {
					found = append(found, fmt.Sprintf("killed after %d requests: %v", n, err))
				}
			}
		}
	}
	return found
}

// holds returns the records of t, and how they differ from what has become of it.
func (t *thing) holds(ctx context.Context, w *World) (all []store.Change, err error) {
	was := map[string]string{}
	for c, err := range w.Changes(ctx, t.of, time.Time{}) {
		if err != nil {
			return nil, fmt.Errorf("%s: %w", t.name, err)
		}
		if all = append(all, c); !maps.Equal(c.Before, was) {
			return all, fmt.Errorf("%s: record %d is from %v, and the one before it to %v", t.name, len(all), c.Before,
				was)
		}
		was = c.After
	}
	now, err := t.stored(ctx, w)
	if err == nil && !maps.Equal(now, was) {
		err = fmt.Errorf("%s: the records end with %v, and it is %v", t.name, was, now)
	}
	return all, err
}

func collect(changes iter.Seq2[store.Change, error]) (all []store.Change) {
	for c, err := range changes {
		if err != nil {
			return nil
		}
		all = append(all, c)
	}
	return slices.Clip(all)
}
