package review

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluice-go/sluice/gen/internal/model"
	"github.com/sluice-go/sluice/gen/internal/schema"
	chains "github.com/sluice-go/sluice/gen/testdata/golden/chains/out"
	many "github.com/sluice-go/sluice/gen/testdata/golden/many/out"
	"github.com/sluice-go/sluice/generated"
	"github.com/sluice-go/sluice/runtime"
	"github.com/sluice-go/sluice/runtime/bucket"
	"github.com/sluice-go/sluice/runtime/limittest"
	"github.com/sluice-go/sluice/runtime/memdynamo"
)

// modelOf returns the model of a schema, and of it a resource and a kind that it charges.
func modelOf(t testing.TB, path, resource, kind string) (*model.Resource, *model.Charged) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	s, problems := schema.Read(path, text)
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	for _, r := range model.Of(s, filepath.Base(path)).Resources {
		for _, c := range r.Charged {
			if r.Name == resource && c.Kind.Name == kind {
				return r, c
			}
		}
	}
	t.Fatalf("%s has no %s for a %s", path, resource, kind)
	return nil, nil
}

// uuid is an id as long as the document assumes them.
const uuid = "0b2f6a54-9c1d-4e0e-8a3b-5d7f1c2e4a68"

// calls is what a process does for one entity, on one generated resource.
type calls struct {
	acquire  func(n int64) (lease, error)
	top      func(n int64) (lease, error) // for the last of its chain alone
	override func() error                 // gives the entity another number
}

// lease is what is left to do after an acquire.
type lease struct {
	settle  func(n int64) error
	release func()
}

// callsFor is the calls on a resource for who, whose chain ends with top. other is an override.
func callsFor[E runtime.Entity, C, L any](
	t *testing.T, r *runtime.Resource[E, C], config *runtime.Config[E, L], who, top E, cost func(int64) C, other L,
) calls {
	t.Helper()
	acquire := func(e E) func(n int64) (lease, error) {
		return func(n int64) (lease, error) {
			l, err := r.Acquire(t.Context(), e, cost(n))
			return lease{
				settle:  func(n int64) error { return l.Settle(t.Context(), cost(n)) },
				release: func() { l.Release(context.WithoutCancel(t.Context())) },
			}, err
		}
	}
	return calls{acquire: acquire(who), top: acquire(top), override: func() error {
		_, err := config.Entity(who).Set(t.Context(), other, "")
		return err
	}}
}

// subject is a generated resource, a kind that it charges, and how a process is made that calls for one of that kind.
type subject struct {
	schema, resource, kind string
	most                   int64         // what a bucket of the kind holds
	full                   time.Duration // how long it takes to be full
	process                func(*testing.T, runtime.Store, ...runtime.Option) calls
}

// subjects are resources of every cascade, with chains of one, two and three buckets, and one whose items pass 1 KB.
func subjects() []subject {
	const demo, nested, wide = "../../../limits.yaml", "../../testdata/golden/chains/limits.yaml", "../../testdata/golden/many/limits.yaml"
	opened := func(t *testing.T, err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	project := generated.Project{ID: uuid}
	gpt4 := func(who generated.GPT4Entity) func(*testing.T, runtime.Store, ...runtime.Option) calls {
		return func(t *testing.T, store runtime.Store, opts ...runtime.Option) calls {
			l, err := generated.New(store, opts...)
			opened(t, err)
			return callsFor(t, l.GPT4, l.Config.GPT4, who, generated.GPT4Entity(project),
				func(n int64) generated.GPT4Cost { return generated.GPT4Cost{RPM: n} },
				generated.GPT4Limits{RPM: new(bucket.Per(2000, time.Minute))})
		}
	}
	org := chains.Org{ID: uuid}
	team := chains.Project{ID: uuid, Team: chains.Team{Org: org}}
	chat := func(who chains.ChatEntity) func(*testing.T, runtime.Store, ...runtime.Option) calls {
		return func(t *testing.T, store runtime.Store, opts ...runtime.Option) calls {
			l, err := chains.New(store, opts...)
			opened(t, err)
			return callsFor(t, l.Chat, l.Config.Chat, who, chains.ChatEntity(org),
				func(n int64) chains.ChatCost { return chains.ChatCost{RPM: n} },
				chains.ChatLimits{RPM: new(bucket.Per(200, time.Minute))})
		}
	}
	return []subject{
		{demo, "gpt-4", "user", 100, time.Minute, gpt4(generated.User{ID: uuid, Project: project})},
		{demo, "gpt-4", "project", 1000, time.Minute, gpt4(project)},
		{demo, "embeddings", "project", 20, time.Second, func(t *testing.T, store runtime.Store, opts ...runtime.Option) calls {
			l, err := generated.New(store, opts...)
			opened(t, err)
			return callsFor(t, l.Embeddings, l.Config.Embeddings, generated.EmbeddingsEntity(project), generated.EmbeddingsEntity(project),
				func(n int64) generated.EmbeddingsCost { return generated.EmbeddingsCost{RPS: n} },
				generated.EmbeddingsLimits{RPS: new(bucket.Per(40, time.Second))})
		}},
		{nested, "chat", "user", 100, time.Minute, chat(chains.User{ID: uuid, Project: team})},
		{nested, "chat", "project", 100, time.Minute, chat(team)},
		{nested, "jobs", "user", 100, 24 * time.Hour, func(t *testing.T, store runtime.Store, opts ...runtime.Option) calls {
			l, err := chains.New(store, opts...)
			opened(t, err)
			return callsFor(t, l.Jobs, l.Config.Jobs, chains.JobsEntity(chains.User{ID: uuid, Project: team}), chains.JobsEntity(org),
				func(n int64) chains.JobsCost { return chains.JobsCost{RPD: n} },
				chains.JobsLimits{RPD: new(bucket.Per(200, 24*time.Hour))})
		}},
		{wide, "api", "user", 24, time.Minute, func(t *testing.T, store runtime.Store, opts ...runtime.Option) calls {
			l, err := many.New(store, opts...)
			opened(t, err)
			user := many.APIEntity(many.User{ID: uuid})
			return callsFor(t, l.API, l.Config.API, user, user,
				func(n int64) many.APICost { return many.APICost{Axx: n} },
				many.APILimits{Axx: new(bucket.Per(48, time.Minute))})
		}},
	}
}

// scene is where an outcome comes about: two processes on one table.
type scene struct {
	*testing.T
	subject
	here, there calls
}

// take acquires n.
func (s *scene) take(acquire func(int64) (lease, error), n int64) lease {
	s.Helper()
	l, err := acquire(n)
	if err != nil {
		s.Fatal(err)
	}
	return l
}

// denied is refused n.
func (s *scene) denied(n int64) {
	s.Helper()
	_, err := s.here.acquire(n)
	if _, ok := errors.AsType[*runtime.DeniedError](err); !ok {
		s.Fatalf("got %v, want a denial", err)
	}
}

// pass lets time go by, and what is due then happen.
func pass(d time.Duration) {
	time.Sleep(d) //nolint:forbidigo // in a bubble of testing/synctest
	synctest.Wait()
}

// How long a process denies by what it has seen, and how long it remembers overrides where they are to be due.
const seen, cached = time.Second, 500 * time.Millisecond

// act brings an outcome about.
type act struct {
	outcome outcome
	before  func(*scene) // not counted
	do      func(*scene)
	with    []outcome       // what is billed besides
	more    memdynamo.Units // the same, in units
	skip    func(subject) bool
}

// acts has one of each outcome.
func acts() []act {
	warm := func(s *scene) { s.take(s.here.acquire, 1) }
	drained := func(s *scene) { s.take(s.here.acquire, s.most); pass(seen + time.Millisecond) }
	refused := func(s *scene) { s.denied(s.most / 2) }
	quick := func(s subject) bool { return s.full <= seen }
	alone := func(s subject) bool { return s.resource != "chat" }
	var held lease
	holding := func(s *scene) { held = s.take(s.here.acquire, 10) }
	return []act{
		{outcome: admit, before: warm, do: warm},
		{outcome: admit, before: func(s *scene) { warm(s); pass(s.full) }, do: warm}, // claims refill
		{outcome: denySeen, before: func(s *scene) { drained(s); refused(s) }, do: refused, skip: quick},
		{outcome: deny, before: drained, do: refused, skip: quick},
		{outcome: undo, before: func(s *scene) { warm(s); s.take(s.there.top, s.most-5) }, do: refused, skip: alone},
		{outcome: settle, before: holding, do: func(s *scene) {
			if err := held.settle(20); err != nil {
				s.Error(err)
			}
			pass(time.Second)
		}},
		{outcome: settle, before: holding, do: func(s *scene) {
			if err := held.settle(5); err != nil {
				s.Error(err)
			}
			pass(time.Second)
		}},
		{outcome: release, before: holding, do: func(*scene) { held.release(); pass(time.Second) }},
		// Besides, the overrides of the bucket that has new ones are read again, together, and the table is told of the revision.
		{outcome: reshape, before: func(s *scene) {
			warm(s)
			if err := s.there.override(); err != nil {
				s.Error(err)
			}
			pass(cached + time.Millisecond)
		}, do: func(s *scene) { warm(s); synctest.Wait() }, with: []outcome{overrides}, more: memdynamo.Units{Read: 2, Write: 1}},
		{outcome: contended, before: func(s *scene) { warm(s); pass(s.full); s.take(s.there.top, 1) }, do: warm,
			with: []outcome{admit}},
		{outcome: cold, before: func(s *scene) { s.take(s.there.acquire, 1) }, do: warm, with: []outcome{admit}},
		{outcome: fresh, do: warm, with: []outcome{cold, admit}},
		{outcome: expired, before: func(s *scene) { warm(s); pass(3*s.full + time.Second) }, do: warm,
			with: []outcome{admit}},
		{outcome: overrides, before: func(s *scene) { warm(s); pass(cached + time.Millisecond) }, do: warm, with: []outcome{admit}},
	}
}

// billed returns what the engine bills for an act, in a bubble of testing/synctest.
func billed(t *testing.T, s subject, a act) (units memdynamo.Units) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		engine := memdynamo.New()
		remember := 1000 * time.Hour
		if a.outcome == overrides || a.outcome == reshape {
			remember = cached
		}
		opts := []runtime.Option{runtime.WithCacheTTL(remember)}
		on := &scene{T: t, subject: s}
		on.here, on.there = s.process(t, limittest.StoreOn(t, engine), opts...), s.process(t, limittest.StoreOn(t, engine), opts...)
		if a.before != nil {
			a.before(on)
		}
		engine.ResetConsumed()
		a.do(on)
		units = engine.Consumed().Total().Total()
	})
	return units
}

// off says how r's costs for a c differ from what the engine billed for an act: "" if they do not.
func off(a act, r *model.Resource, c *model.Charged, got memdynamo.Units) string {
	want := a.more
	for _, o := range append([]outcome{a.outcome}, a.with...) {
		said := cost(o, r, c)
		want.Read += float64(said.Read)
		want.Write += float64(said.Write)
	}
	if got == want {
		return ""
	}
	return fmt.Sprintf("%s: the engine bills %+v, the document says %+v", a.outcome, got, want)
}

// TestCosts holds the costs in the document against what the engine bills for generated packages.
func TestCosts(t *testing.T) {
	for _, s := range subjects() {
		t.Run(s.resource+" "+s.kind, func(t *testing.T) {
			r, c := modelOf(t, s.schema, s.resource, s.kind)
			told := make(map[outcome]bool)
			for _, a := range acts() {
				told[a.outcome] = true
				if a.skip != nil && a.skip(s) {
					continue
				}
				if wrong := off(a, r, c, billed(t, s, a)); wrong != "" {
					t.Error(wrong)
				}
			}
			for _, o := range outcomes() {
				if !told[o] {
					t.Errorf("no act brings %q about", o)
				}
			}
		})
	}
}

// TestCostsSeesOthers: costs of another cascade, or of items of another size, are told from what is billed.
func TestCostsSeesOthers(t *testing.T) {
	all := subjects()
	atomic, single, wide := all[0], all[1], all[len(all)-1]
	for _, tc := range []struct {
		name     string
		of       subject // whose calls are billed
		said     subject // whose costs are said
		outcomes []outcome
	}{
		{"another chain", atomic, single, []outcome{
			admit, deny, settle, release, reshape, contended, cold, fresh, overrides,
		}},
		{"a smaller item", wide, single, []outcome{admit, settle, release, reshape, contended}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			r, c := modelOf(t, tc.said.schema, tc.said.resource, tc.said.kind)
			for _, a := range acts() {
				for _, o := range tc.outcomes {
					if a.outcome == o && off(a, r, c, billed(t, tc.of, a)) == "" {
						t.Errorf("%s: costs of %s %s pass for those of %s %s", o, tc.said.resource, tc.said.kind, tc.of.resource, tc.of.kind)
					}
				}
			}
		})
	}
}
