package conformance

import (
	"context"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/sluice-go/sluice/runtime/store"
)

// planFault is a way for a store to be wrong about plans, and the behaviour that sees it.
type planFault struct {
	name, only string
	want       string // a pattern of what the suite says of it

	// The fault does these instead of what is right, but for those that are nil. found changes the plan that a
	// call has found for a bucket.
	found   func(context.Context, *wrongSession, *store.Part, *store.Bucket)
	member  func(context.Context, *wrongSession, string) (store.Member, bool, error)
	members func(store.MemberStore) store.MemberStore
	writes  bool // a session forgets what it has read of what it writes
}

// planFaults are what the suite has to see.
var planFaults = []planFault{
	{name: "a version for each plan", only: "an edited plan and one that is not", found: byPlan,
		want: `^user-1 has \d+ of 150 rpm, want \d of 5`},
	{name: "no record of whose plan it is", only: "another project", found: byVersion,
		want: `^user-1 has \d+ of 100 rpm, want \d of 5`},
	{name: "a Put that deletes the plan", only: "beside other data", members: putOver,
		want: `^change 0 leaves plan "", <nil>`},
	{name: "a Reshape that refills", only: "up and down", found: refilled,
		want: `^user-1 has 9\d of 100 rpm, want \d of 100`},
	{name: "an unknown plan on free numbers", only: "an unknown plan", found: onFree,
		want: `has the bursts \[5 \d+\] by the older program, want \[100 2000\]`},
	{name: "a plan that no other process notices", only: "a plan noticed", member: forever, writes: true,
		want: `^1 rpm and 40 tpm of user-1 of project-a: denied .*, want admitted`},
	{name: "a plan that this process does not notice", only: "a plan raised", member: forATime,
		want: `^1 rpm and 400 tpm of user-1 of project-a: too large .*, want admitted`},
	{name: "a plan that is moved from any", only: "conflicts", members: fromAny,
		want: `^from "": <nil>, want a ConflictError`},
	{name: "a look-up for each call", only: "no reads", found: lookedUp,
		want: `^60 requests for 30 calls, of which 30 read`},
}

// runPlanControls holds that every fault is seen by the behaviour that is about it.
func runPlanControls(t *testing.T, open Open) {
	t.Helper()
	for i := range planFaults {
		f := &planFaults[i]
		t.Run(f.name, func(t *testing.T) {
			at := slices.IndexFunc(planBehaviours, func(b planBehaviour) bool { return b.name == f.only })
			caught(t, &fault{want: f.want}, f.only, 1, func(w T, _ int) {
				store := open(t)
				store.Store = &wrongPlans{Store: store.Store, fault: f, edited: map[string]int64{},
					buckets: map[string]decided{}}
				planBehaviours[at].run(newPlanWorld(w, store))
			})
		})
	}
}

// wrongPlans is a store with a fault.
type wrongPlans struct {
	store.Store
	fault *planFault

	mu      sync.Mutex
	edited  map[string]int64   // by plan, when its numbers were changed last
	buckets map[string]decided // by entity
}

// decided is what decided a bucket's numbers last.
type decided struct {
	version int64
	plan    store.OnPlan
}

// Open implements store.Store.
func (f *wrongPlans) Open(env *store.Env, defs ...store.Definition) (store.Session, error) {
	session, err := f.Store.Open(env, defs...)
	return &wrongSession{Session: session, of: f, clock: env.Clock, known: map[string]known{}}, err
}

// wrongSession is a session of wrongPlans.
type wrongSession struct {
	store.Session

	of    *wrongPlans
	clock store.Clock
	known map[string]known // by entity
}

// known is what a session has read of an entity.
type known struct {
	store.Member

	found bool
	at    int64 // ms
}

// find has the fault change what call has found.
func (s *wrongSession) find(ctx context.Context, call *store.Call) {
	if s.of.fault.found == nil {
		return
	}
	s.of.mu.Lock()
	defer s.of.mu.Unlock()
	for i := range call.Parts {
		part := &call.Parts[i]
		for j := range part.Buckets {
			s.of.fault.found(ctx, s, part, &part.Buckets[j])
		}
	}
}

// Acquire implements store.Session.
func (s *wrongSession) Acquire(ctx context.Context, call *store.Call) error {
	s.find(ctx, call)
	return s.Session.Acquire(ctx, call)
}

// Peek implements store.Session.
func (s *wrongSession) Peek(ctx context.Context, call *store.Call) error {
	s.find(ctx, call)
	return s.Session.Peek(ctx, call)
}

// Member implements store.Session.
func (s *wrongSession) Member(ctx context.Context, entity string) (store.Member, bool, error) {
	if s.of.fault.member == nil {
		return s.Session.Member(ctx, entity)
	}
	return s.of.fault.member(ctx, s, entity)
}

// Members implements store.Session.
func (s *wrongSession) Members() store.MemberStore {
	members := s.Session.Members()
	switch {
	case s.of.fault.writes:
		return &wrongMembers{MemberStore: members, wrote: func(entity string) { delete(s.known, entity) }}
	case s.of.fault.members != nil:
		return s.of.fault.members(members)
	}
	return members
}

// Overrides implements store.Session.
func (s *wrongSession) Overrides() store.OverrideStore { return &noted{s.Session.Overrides(), s} }

// noted is an override store that notes when numbers of plans change.
type noted struct {
	store.OverrideStore
	of *wrongSession
}

// Set implements store.OverrideStore.
func (o *noted) Set(ctx context.Context, spec *store.Spec, s store.Stored) (store.Revision, error) {
	if on, _, ofPlan := store.SplitPlanAt(s.At); ofPlan {
		o.of.of.mu.Lock()
		o.of.of.edited[on] = o.of.clock.Now().UnixMilli()
		o.of.of.mu.Unlock()
	}
	return o.OverrideStore.Set(ctx, spec, s)
}

// keep has b stay on the plan that it has, unless the version of the present one is at least as high.
func (s *wrongSession) keep(b *store.Bucket, version int64) {
	last, has := s.of.buckets[b.Entity]
	if has && version < last.version {
		b.Plan = last.plan
		return
	}
	s.of.buckets[b.Entity] = decided{version, b.Plan}
}

// byPlan goes by the version of the plan's own numbers, and of the move.
func byPlan(_ context.Context, s *wrongSession, _ *store.Part, b *store.Bucket) {
	s.keep(b, b.Plan.Version+s.of.edited[b.Plan.Name])
}

// byVersion does not look at whose plan it is.
func byVersion(_ context.Context, s *wrongSession, _ *store.Part, b *store.Bucket) {
	s.keep(b, b.Plan.Version)
}

// refilled fills a bucket that gets another plan.
func refilled(ctx context.Context, s *wrongSession, part *store.Part, b *store.Bucket) {
	last, has := s.of.buckets[b.Entity]
	s.of.buckets[b.Entity] = decided{plan: b.Plan}
	if !has || last.plan == b.Plan {
		return
	}
	root := part.Buckets[len(part.Buckets)-1].Entity
	if err := s.Session.Overrides().Fill(ctx, part.Def.Spec(), b.Kind, b.Entity, root); err != nil {
		panic(err)
	}
}

// onFree takes a plan that it does not know for the first one.
func onFree(_ context.Context, _ *wrongSession, part *store.Part, b *store.Bucket) {
	if plans := part.Def.Spec().Plans; b.Plan.Name != "" && !slices.Contains(plans.Names, b.Plan.Name) {
		b.Plan.Name = plans.Names[0]
	}
}

// lookedUp reads the plan for each bucket of a call, of which one has it.
func lookedUp(ctx context.Context, s *wrongSession, _ *store.Part, b *store.Bucket) {
	if b.Entity == b.Plan.Of {
		_ = s.Session.Members().SetCalendar(ctx, b.Plan.Of, time.UnixMilli(0).UTC()) // it forgets what was read
		_, _, _ = s.Session.Member(ctx, b.Plan.Of)
	}
}

// look returns what the session has read of entity, at most age ms ago.
func (s *wrongSession) look(ctx context.Context, entity string, age int64) (store.Member, bool, error) {
	now := s.clock.Now().UnixMilli()
	if k, ok := s.known[entity]; ok && now-k.at < age {
		return k.Member, k.found, nil
	}
	m, found, err := s.Session.Member(ctx, entity)
	if err == nil {
		s.known[entity] = known{m, found, now}
	}
	return m, found, err
}

// forever never reads an entity again.
func forever(ctx context.Context, s *wrongSession, entity string) (store.Member, bool, error) {
	return s.look(ctx, entity, 1<<62)
}

// forATime reads an entity again after the time of a cache alone.
func forATime(ctx context.Context, s *wrongSession, entity string) (store.Member, bool, error) {
	return s.look(ctx, entity, planCacheTTL.Milliseconds())
}

// wrongMembers is a member store with a fault.
type wrongMembers struct {
	store.MemberStore
	put     func(context.Context, store.MemberStore, store.Member) error
	wrote   func(entity string)
	fromAny bool
}

// putOver has Put replace all that is stored.
func putOver(m store.MemberStore) store.MemberStore {
	put := func(ctx context.Context, m store.MemberStore, one store.Member) error {
		if err := m.SetPlan(ctx, one.Entity, "", nil); err != nil {
			return err
		}
		return m.Put(ctx, one)
	}
	return &wrongMembers{MemberStore: m, put: put}
}

// fromAny has SetPlan move entities from whichever plan they are on.
func fromAny(m store.MemberStore) store.MemberStore {
	return &wrongMembers{MemberStore: m, fromAny: true}
}

// Put implements store.MemberStore.
func (m *wrongMembers) Put(ctx context.Context, one store.Member) error {
	if m.put == nil {
		return m.MemberStore.Put(ctx, one)
	}
	return m.put(ctx, m.MemberStore, one)
}

// SetPlan implements store.MemberStore.
func (m *wrongMembers) SetPlan(ctx context.Context, entity, plan string, from *string) error {
	if m.fromAny {
		from = nil
	}
	if m.wrote != nil {
		defer m.wrote(entity)
	}
	return m.MemberStore.SetPlan(ctx, entity, plan, from)
}
