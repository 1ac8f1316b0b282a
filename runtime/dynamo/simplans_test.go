package dynamo

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/sluice-go/sluice/internal/test/longform"
	"github.com/sluice-go/sluice/internal/test/simulated"
	"github.com/sluice-go/sluice/runtime/bucket"
	"github.com/sluice-go/sluice/runtime/dynamo/codec"
	"github.com/sluice-go/sluice/runtime/dynamo/internal/override"
	"github.com/sluice-go/sluice/runtime/dynamo/lean"
	"github.com/sluice-go/sluice/runtime/dynamo/operator"
	"github.com/sluice-go/sluice/runtime/internal/item"
	"github.com/sluice-go/sluice/runtime/store"
)

// planState is what the bucket of a key is to be: whose plan it has, and its limits a minute.
type planState struct {
	of       string
	rpm, tpm int64
}

// planModel is what is stored, in the simplest form.
type planModel struct {
	parents map[string]string   // by key and team, as stored
	plans   map[string]string   // by org that ever was on one: "" for none any more
	numbers map[string][2]int64 // rpm and tpm, 0 for none: by key, by kind, by plan and kind
	blind   bool                // no bucket says whose plan it has
}

// schemaNumbers are those of planned.
var schemaNumbers = map[string][2]int64{
	"key": {100, 1000}, "free.key": {10, 0}, "pro.key": {200, 5000}, "gold.key": {400, 9000},
}

// of returns the state that a key's bucket is to have in an org.
func (m *planModel) of(key, org string) (s planState) {
	plan, planned := m.plans[org]
	if planned && !m.blind {
		s.of = org
	}
	first := func(i int) int64 {
		all := [][2]int64{m.numbers[key]}
		if plan != "" {
			all = append(all, m.numbers[plan+".key"], schemaNumbers[plan+".key"])
		}
		for _, n := range append(all, m.numbers["key"], schemaNumbers["key"]) {
			if n[i] != 0 {
				return n[i]
			}
		}
		return 0
	}
	s.rpm, s.tpm = first(0), first(1)
	return s
}

// org returns the org that a key is in, "" for none.
func (m *planModel) org(key string) string { return m.parents[m.parents[key]] }

// stay is the time for which an entity had a parent.
type stay struct {
	parent string
	left   int64 // when it ended, ms; 0 for not yet
}

// stayRemembered is how long a process may go by a stored parent that has changed, ms.
const stayRemembered = 60_000

// stays are those of one entity, in order.
type stays []stay

// note notes the parent that the entity has at now, "" for none.
func (all stays) note(parent string, now int64) stays {
	if n := len(all); n > 0 && all[n-1].left == 0 {
		if all[n-1].parent == parent {
			return all
		}
		all[n-1].left = now
	}
	if parent == "" {
		return all
	}
	return append(all, stay{parent: parent})
}

// remembered yields the stays that a process may go by at now, and their indexes.
func (all stays) remembered(now int64) iter.Seq2[int, string] {
	return func(yield func(int, string) bool) {
		for i, one := range all {
			if (one.left == 0 || now-one.left <= stayRemembered) && !yield(i, one.parent) {
				return
			}
		}
	}
}

// place is the model after an edit, for a process that remembers a stay of the key in a team, and one of that
// team in an org.
type place struct{ edit, team, org int }

// before reports whether a bucket may go from p to q: edits and links are later, or the same.
func (p place) before(q place) bool {
	return p.edit <= q.edit && (p.team < q.team || p.team == q.team && p.org <= q.org)
}

// planHistory is what a test has seen of one bucket, and what it was to be.
type planHistory struct {
	model  map[planState][]place // where the bucket was to be like that
	places []place               // where it may be: the least ones; later ones come next
	last   planState
	cv     map[string]int64 // the last version, by whose plan the bucket has
}

// see notes the bucket as it is. The error says that it went back, or that it has what never was.
func (h *planHistory) see(key string, img *bucket.Image) error {
	rpm, _ := img.Find("rpm")
	tpm, _ := img.Find("tpm")
	next := planState{img.PlanOf, rpm.Capacity / bucket.Milli, tpm.Capacity / bucket.Milli}
	if old := h.cv[next.of]; img.Version < old {
		return fmt.Errorf("version: that of %s by the plan of %q is %d after %d", key, next.of, img.Version, old)
	}
	h.cv[next.of] = img.Version
	if next == h.last {
		return nil
	}
	var places []place
	for _, p := range h.model[next] {
		after := func(q place) bool { return q.before(p) }
		if slices.ContainsFunc(h.places, after) && !slices.ContainsFunc(places, after) {
			places = append(places, p)
		}
	}
	before := h.last
	h.last = next
	switch {
	case places != nil:
		h.places = places
	case before == (planState{}): // created, by a process that knows one plan less or remembers something old
	case h.model[next] != nil:
		return fmt.Errorf("flap: the bucket of %s went from %v back to %v", key, before, next)
	default:
		return fmt.Errorf("wrong: the bucket of %s has %v, which it never was to have", key, next)
	}
	return nil
}

// planWorld is a table, processes with caches of different ages, and the model.
type planWorld struct {
	*engine
	planModel
	client    *lean.Client // of all calls, in place of the engine's
	t         testing.TB
	rand      *rand.Rand
	processes []*office
	seen      map[string]*planHistory // by key
	stays     map[string]stays        // by key and team
	edits     int
	put       func(ctx context.Context, o *office, m store.Member) error
	wrong     error
}

// Entities of a world, as stored.
var (
	simOrgs  = []string{"org-1", "org-2", "org-3", "org-4"}
	simTeams = []string{"team-1", "team-2", "team-3", "team-4"}
	simKeys  = []string{"key-1", "key-2", "key-3", "key-4", "key-5"}
)

// planFault breaks the store of all processes.
type planFault struct {
	seams storeChange
	wrap  func(store.Session) store.Session
	put   func(ctx context.Context, o *office, m store.Member) error
	blind bool
}

// newPlanWorld returns a world in which each key has an org. The last process knows one plan less.
func newPlanWorld(t testing.TB, seed uint64, fault planFault) *planWorld {
	t.Helper()
	e, memory := newFaulty(t)
	w := &planWorld{
		engine: e, client: simulated.Client(memory), t: t, rand: rand.New(rand.NewPCG(seed, 1)), put: fault.put,
		seen: map[string]*planHistory{}, stays: map[string]stays{},
		planModel: planModel{map[string]string{}, map[string]string{}, map[string][2]int64{}, fault.blind},
	}
	if w.put == nil {
		w.put = func(ctx context.Context, o *office, m store.Member) error {
			return o.session.Members().Put(ctx, m)
		}
	}
	for i, ttl := range []time.Duration{time.Second, 10 * time.Second, time.Minute, 30 * time.Second} {
		e.ttl = ttl
		def := planned(t, "free", "pro", "gold")
		if i == 3 {
			def = planned(t, "free", "pro")
		}
		s := newStore(w.client, e.table)
		if fault.seams != nil {
			fault.seams(s)
		}
		w.processes = append(w.processes, e.officeOn(t, &opened{Store: s, wrap: fault.wrap}, def))
	}
	for i, key := range simKeys {
		w.seen[key] = &planHistory{
			model: map[planState][]place{}, places: []place{{}}, cv: map[string]int64{},
		}
		w.link(key, simTeams[i%len(simTeams)])
	}
	for i, team := range simTeams {
		w.link(team, simOrgs[i])
	}
	w.clock.set(1)
	w.note()
	return w
}

func one[T any](w *planWorld, of []T) T { return of[w.rand.IntN(len(of))] }

// must notes an error that no edit should have.
func (w *planWorld) must(err error) {
	if err != nil && w.wrong == nil {
		w.wrong = fmt.Errorf("edit: %w", err)
	}
}

// link stores the parent of an entity.
func (w *planWorld) link(entity, parent string) {
	m := store.Member{Entity: entity, Parent: parent, Cascade: true}
	w.must(w.put(w.t.Context(), one(w, w.processes), m))
	if parent != "" {
		w.parents[entity] = parent
	}
}

// edit changes something at random.
func (w *planWorld) edit() {
	ctx, o, org := w.t.Context(), one(w, w.processes), one(w, simOrgs)
	switch n := w.rand.IntN(40); {
	case n < 8:
		w.override(o, one(w, []string{"free.key", "pro.key", "gold.key"}))
	case n < 11:
		w.override(o, "key")
	case n < 14:
		w.override(o, one(w, simKeys))
	case n < 24:
		plan := one(w, []string{"", "free", "pro", "gold"})
		w.must(o.session.Members().SetPlan(ctx, org, plan, nil))
		if _, ever := w.plans[org]; ever || plan != "" {
			w.plans[org] = plan
		}
	case n < 28:
		w.link(one(w, simKeys), one(w, simTeams))
	case n < 34:
		w.link(one(w, simTeams), org)
	case n < 36:
		w.link(org, "") // it has no parent, but may be stored
	case n < 39:
		entity := one(w, slices.Concat(simKeys, simTeams))
		w.must(o.session.Members().Delete(ctx, entity))
		delete(w.parents, entity)
	default:
		_, err := o.session.Members().Erase(ctx, org, store.Erasing{LeaveChildren: true})
		w.must(err)
		delete(w.plans, org)
	}
	w.note()
}

// note notes what the buckets are to be. A process may still go by a parent that a key or a team has left.
func (w *planWorld) note() {
	w.edits++
	now := w.clock.Since.Load()
	for _, entity := range slices.Concat(simTeams, simKeys) {
		w.stays[entity] = w.stays[entity].note(w.parents[entity], now)
	}
	for _, key := range simKeys {
		h := w.seen[key]
		add := func(org string, p place) {
			s := w.of(key, org)
			h.model[s] = append(h.model[s], p)
		}
		for i, team := range w.stays[key].remembered(now) {
			for j, org := range w.stays[team].remembered(now) {
				add(org, place{w.edits, i, j})
			}
		}
		if w.org(key) == "" { // without a link, the bucket keeps the plan that it has
			for _, p := range h.places {
				add(h.last.of, place{w.edits, p.team, p.org})
			}
		}
	}
}

// override sets numbers, or deletes them. A plan that the process does not know is edited by another.
func (w *planWorld) override(o *office, at string) {
	if strings.HasPrefix(at, "gold") {
		o = w.processes[0]
	}
	numbers := [2]int64{
		w.rand.Int64N(3) * (50 + w.rand.Int64N(50)), w.rand.Int64N(2) * (500 + w.rand.Int64N(500)),
	}
	o.changes(w.t, at, perMinute(numbers[0], numbers[1]))
	w.numbers[at] = numbers
}

// call has a process take something of a key, which the caller may give with its org. It looks at the bucket.
func (w *planWorld) call(o *office, id string, given bool) {
	k := key{id: strings.TrimPrefix(id, "key-")}
	if team := w.parents[id]; given && w.parents[team] != "" {
		k.team, k.org = strings.TrimPrefix(team, "team-"), strings.TrimPrefix(w.parents[team], "org-")
	}
	_, err := o.Acquire(w.t.Context(), k, tokens{1, 0})
	_, orphan := errors.AsType[*store.InvalidError](err)
	_, denied := errors.AsType[*store.DeniedError](err)
	if err != nil && !orphan && !denied {
		w.must(err)
	}
	img, err := operator.Inspect(w.t.Context(), w.client, w.table, id, "gpt-4")
	if w.must(err); img != nil && w.wrong == nil {
		w.wrong = w.seen[id].see(id, img)
	}
}

// run makes random edits, and calls between them. In the end, once all caches are due, each process calls for
// each key, and each bucket is what it is to be.
func (w *planWorld) run(edits int) error {
	for i := 0; i < edits && w.wrong == nil; i++ {
		w.edit()
		for range w.rand.IntN(4) {
			w.call(one(w, w.processes), one(w, simKeys), w.rand.IntN(3) == 0)
		}
		w.clock.set(w.clock.Since.Load() + w.rand.Int64N(one(w, []int64{1, 1, 500, 3000, 40_000})))
	}
	for i, key := range simKeys {
		if w.parents[key] == "" {
			w.link(key, simTeams[i%len(simTeams)])
		}
	}
	for i, team := range simTeams {
		if w.parents[team] == "" {
			w.link(team, simOrgs[i])
		}
	}
	w.note()
	w.clock.set(w.clock.Since.Load() + 61_000)
	for _, o := range w.processes {
		for _, key := range simKeys {
			w.call(o, key, false)
		}
	}
	for _, key := range simKeys {
		if s := w.of(key, w.org(key)); w.wrong == nil && w.seen[key].last != s {
			return fmt.Errorf("end: the bucket of %s has %v, want %v", key, w.seen[key].last, s)
		}
	}
	return w.wrong
}

// TestPlansRandomly: random edits of overrides, kinds and plans, moves of keys, teams and orgs, and processes
// that remember them for different times. One of them knows one plan less. Versions rise, no bucket goes back
// to numbers that were replaced, and in the end each has the numbers of the model.
func TestPlansRandomly(t *testing.T) {
	t.Parallel() // its worlds share nothing
	longform.NoRace(t, "one call comes after the other")
	edits := longform.Count(t, "edits", 100_000, 1500)
	const inWorld, together = 500, 4
	for first := range uint64(together) {
		t.Run(fmt.Sprint("worlds from ", first), func(t *testing.T) {
			t.Parallel()
			edited, reshapes := 0, 0
			for seed := first; seed < uint64(edits/inWorld); seed += together {
				w := newPlanWorld(t, seed, planFault{})
				if err := w.run(inWorld); err != nil {
					t.Fatalf("seed %d: %v", seed, err)
				}
				edited += inWorld
				for _, o := range w.processes {
					reshapes += o.Count("reshape applied")
				}
			}
			t.Logf("%d edits, %d reshapes", edited, reshapes)
			if reshapes < edited/10 {
				t.Errorf("%d reshapes after %d edits: the test shows nothing", reshapes, edited)
			}
		})
	}
}

// given has calls claim that their callers gave the org that was looked up.
type given struct{ store.Session }

// Acquire implements store.Session.
func (g given) Acquire(ctx context.Context, call *store.Call) error {
	for i := range call.Parts {
		for j := range call.Parts[i].Buckets {
			call.Parts[i].Buckets[j].Plan.From = ""
		}
	}
	return g.Session.Acquire(ctx, call)
}

// resolved replaces how a store resolves numbers.
func resolved(by func(*store.Spec, int, *override.Sources, int64) (*override.Resolved, error)) storeChange {
	return func(s *Store) { s.seams.Resolve = by }
}

// TestPlansRandomlyCatches: what breaks a rule of plans is found, each by what it does.
func TestPlansRandomlyCatches(t *testing.T) {
	longform.Control(t)
	for name, test := range map[string]struct {
		fault planFault
		want  string
	}{
		"a version per plan": {planFault{seams: resolved(func(
			spec *store.Spec, kind int, from *override.Sources, now int64,
		) (*override.Resolved, error) {
			own := *from
			if from.Plans != nil && (from.On == nil || from.On.Name != "pro") {
				plans := *from.Plans // as if pro alone had been edited
				plans.Version = 0
				own.Plans = &plans
			}
			return override.Resolve(spec, kind, &own, now)
		})}, "version: "},
		"no record of whose plan a bucket has": {planFault{seams: resolved(func(
			spec *store.Spec, kind int, from *override.Sources, now int64,
		) (*override.Resolved, error) {
			r, err := override.Resolve(spec, kind, from, now)
			r.PlanOf, r.HasPlans = "", false
			return r, err
		}), blind: true}, "end: "},
		"an entity's Put replaces its item": {planFault{put: func(
			ctx context.Context, o *office, m store.Member,
		) error {
			stored := item.EntityKey(m.Entity)
			stored["entity_id"] = codec.S(m.Entity)
			stored["cascade"] = &types.AttributeValueMemberBOOL{Value: m.Cascade}
			if m.Parent != "" {
				stored["parent_id"] = codec.S(m.Parent)
			}
			s := o.session.(*session)
			_, err := s.conn.API.PutItem(ctx, &dynamodb.PutItemInput{TableName: &s.conn.Table, Item: stored})
			s.lookups.Invalidate(m.Entity)
			return err
		}}, "flap: "}, // to the numbers of no plan
		"links are not read again": {planFault{
			wrap: func(s store.Session) store.Session { return given{s} },
		}, "flap: "},
	} {
		t.Run(name, func(t *testing.T) {
			found := map[string]int{}
			for seed := range uint64(12) {
				if err := newPlanWorld(t, seed, test.fault).run(150); err != nil {
					reason, _, _ := strings.Cut(err.Error(), " ")
					found[reason+" "]++
				}
			}
			t.Log(found)
			if most := slices.MaxFunc(slices.Sorted(maps.Keys(found)), func(a, b string) int {
				return found[a] - found[b]
			}); most != test.want {
				t.Errorf("found %v, want most often %q", found, test.want)
			}
		})
	}
}
