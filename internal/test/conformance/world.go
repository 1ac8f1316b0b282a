package conformance

import (
	"context"
	"errors"

	limits "github.com/sluice-go/sluice/generated"
	"github.com/sluice-go/sluice/runtime/bucket"
	"github.com/sluice-go/sluice/runtime/store"
)

// T is what a test of the suite needs of *testing.T, so that controls can watch one fail.
type T interface {
	Helper()
	Errorf(format string, args ...any)
	Fatalf(format string, args ...any)
	Context() context.Context
}

// world is one store, a process that uses it, and the model, by which every call is judged.
type world struct {
	T
	*limits.Limiter

	store  Store
	spy    *spy
	schema schema
	judge  judge
	// calls are in shadow: what would have refused one is held against the model as if it had
	shadow  bool
	shared  bool                 // the store remembers, and several processes have charged it
	buckets map[[2]string]*ideal // by resource and entity
	parents map[string]string    // of users that are looked up; "" for one without

	processes map[*limits.Limiter]*pauses // where limits count holds
	leases    []*held                     // that hold something, or did
	extended  int                         // writes that extended holds, as the model has them
}

func newWorld(t T, store Store, s schema) *world {
	t.Helper()
	w := &world{
		T: t, store: store, schema: s,
		spy:     &spy{Store: store.Store, extended: make(chan struct{}, 1000)},
		judge:   judge{store.Slack},
		buckets: map[[2]string]*ideal{}, parents: map[string]string{}, processes: map[*limits.Limiter]*pauses{},
	}
	w.Limiter = w.process()
	return w
}

// Entities of behaviours.
var (
	project = limits.Project{ID: "p"}
	alice   = limits.User{ID: "alice", Project: project}
	bob     = limits.User{ID: "bob", Project: project}
)

// cost is short for what a call takes.
func cost(rpm, tpm int64) limits.GPT4Cost { return limits.GPT4Cost{RPM: rpm, TPM: tpm} }

// milli returns c as the store is charged for it: of 0 rpm, 1.
func milli(c limits.GPT4Cost) []int64 {
	return []int64{max(1, c.RPM) * bucket.Milli, c.TPM * bucket.Milli}
}

// chain returns the stored ids of whom a call of who charges, nearest first.
func (w *world) chain(who limits.GPT4Entity) []string {
	var chain []string
	switch who := who.(type) {
	case limits.User:
		chain = []string{"user-" + who.ID, "project-" + who.Project.ID}
		if parent, looked := w.parents[who.ID]; looked && who.Project.ID == "" {
			chain[1] = "project-" + parent
			if parent == "" {
				chain = chain[:1]
			}
		}
	case limits.Project:
		chain = []string{"project-" + who.ID}
	}
	if w.schema.cascade == store.CascadeNone {
		chain = chain[:1]
	}
	return chain
}

// bucket returns the model of gpt-4's bucket of a stored id.
func (w *world) bucket(entity string) *ideal {
	key := [2]string{w.schema.resource(), entity}
	if w.buckets[key] == nil {
		numbers, window := w.schema.project, w.schema.windows.project
		if entity[0] == 'u' {
			numbers, window = w.schema.user, w.schema.windows.user
		}
		w.buckets[key] = newIdeal(numbers, calendars(window))
	}
	return w.buckets[key]
}

// portions returns what a call of who for c asks of each bucket.
func (w *world) portions(who limits.GPT4Entity, c limits.GPT4Cost) []portion {
	var portions []portion
	for _, entity := range w.chain(who) {
		portions = append(portions, portion{w.bucket(entity), w.schema.resource(), entity, names, milli(c), nil})
	}
	return portions
}

// as returns err as an E, which it has to be.
func as[E error](w *world, what string, err error) E {
	w.Helper()
	got, ok := errors.AsType[E](err)
	if !ok {
		w.Fatalf("%s: got %v, want a %T", what, err, got)
	}
	return got
}

// failed holds that err is an E.
func failed[E error](w *world, what string, err error) {
	w.Helper()
	_ = as[E](w, what, err)
}
