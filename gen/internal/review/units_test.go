package review

import (
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluice-go/sluice/gen/internal/model"
	"github.com/sluice-go/sluice/runtime"
	"github.com/sluice-go/sluice/runtime/limittest"
	"github.com/sluice-go/sluice/runtime/memdynamo"
)

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

// How long a process denies by what it has seen, and how long it remembers overrides where they are to be
// due.
const seen, cached = time.Second, 500 * time.Millisecond

// kept is how long an idle bucket is kept, whenever it is full.
const kept = 8 * 24 * time.Hour

// act brings an outcome about.
type act struct {
	outcome outcome
	before  func(*scene) // not counted
	do      func(*scene)
	with    []outcome       // what is billed besides
	more    memdynamo.Units // the same, in units
	skip    func(subject) bool
	passes  bool // so much time that quotas are due
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
		{outcome: admit, before: func(s *scene) { warm(s); pass(s.full) }, do: warm, passes: true}, // claims refill
		{outcome: denySeen, before: func(s *scene) { drained(s); refused(s) }, do: refused, skip: quick},
		{outcome: deny, before: drained, do: refused, skip: quick},
		{outcome: reverse, before: func(s *scene) { warm(s); s.take(s.there.top, s.most-5) }, do: refused,
			skip: alone},
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
		// The overrides of the bucket that has new ones are also read again, together, and the revision is written
		// to the table.
		{outcome: reshape, before: func(s *scene) {
			warm(s)
			if err := s.there.override(); err != nil {
				s.Error(err)
			}
			pass(cached + time.Millisecond)
		}, do: func(s *scene) {
			warm(
				s)
			synctest.Wait()
		}, with: []outcome{overrides}, more: memdynamo.Units{Read: 2, Write: 1}},
		{outcome: contended, before: func(s *scene) { warm(s); pass(s.full); s.take(s.there.top, 1) }, do: warm,
			with: []outcome{admit}, passes: true},
		{outcome: cold, before: func(s *scene) { s.take(s.there.acquire, 1) }, do: warm, with: []outcome{admit}},
		{outcome: fresh, do: warm, with: []outcome{cold, admit}},
		{outcome: expired, before: func(s *scene) { warm(s); pass(kept + 3*s.full) }, do: warm,
			with: []outcome{admit}, passes: true},
		{outcome: overrides, before: func(s *scene) { warm(s); pass(cached + time.Millisecond) }, do: warm,
			with: []outcome{admit}},
		{outcome: parents, before: func(s *scene) {
			warm(s)
			if err := s.here.know(); err != nil {
				s.Error(err)
			}
		}, do: func(s *scene) { s.take(s.here.byID, 1) }, with: []outcome{admit}},
	}
}

// billed returns what the engine bills for an act, in a bubble of testing/synctest.
func billed(t *testing.T, s subject, a act) (units memdynamo.Units) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		engine := memdynamo.New()
		addVoice(t, engine)
		remember := 1000 * time.Hour
		if a.outcome == overrides || a.outcome == reshape {
			remember = cached
		}
		opts := []runtime.Option{runtime.WithCacheTTL(remember)}
		on := &scene{T: t, subject: s}
		on.here, on.there = s.process(t, limittest.StoreOn(t, engine), opts...), s.process(t,
			limittest.StoreOn(t, engine), opts...)
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
	with := append([]outcome{a.outcome}, a.with...)
	if r.Regions != nil && a.passes {
		with = append(with, overrides)
	}
	if r.Regions != nil && a.outcome == reshape {
		want.Read -= 2 // a quota that is due is read together with all that it depends on
	}
	if c.OnPlans() && a.outcome == reshape {
		want.Read += 2 // so are the numbers of plans, and whose plan it is
	}
	if r.Template != nil && a.outcome == reshape {
		want.Read += 2 // so are the override of all names, and the entry of the name
	}
	for _, o := range with {
		said := cost(o, r, c)
		want.Read += float64(said.HalfReads) / 2
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
			tried := make(map[outcome]bool)
			for _, a := range acts() {
				tried[a.outcome] = true
				if a.skip != nil && a.skip(s) {
					continue
				}
				if wrong := off(a, r, c, billed(t, s, a)); wrong != "" {
					t.Error(wrong)
				}
			}
			for _, o := range outcomes() {
				if !tried[o] {
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
			admit, deny, settle, release, reshape, contended, cold, fresh, overrides, parents,
		}},
		{"a smaller item", wide, single, []outcome{admit, settle, release, reshape, contended}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			r, c := modelOf(t, tc.said.schema, tc.said.resource, tc.said.kind)
			for _, a := range acts() {
				for _, o := range tc.outcomes {
					if a.outcome == o && off(a, r, c, billed(t, tc.of, a)) == "" {
						t.Errorf("%s: costs of %s %s pass for those of %s %s", o, tc.said.resource, tc.said.kind,
							tc.of.resource, tc.of.kind)
					}
				}
			}
		})
	}
}
