package dynamo

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/sluice-go/sluice/runtime/dynamo/internal/plan"
	"github.com/sluice-go/sluice/runtime/dynamo/internal/wire"

	"github.com/sluice-go/sluice/runtime/bucket"
	"github.com/sluice-go/sluice/runtime/dynamo/codec"
	"github.com/sluice-go/sluice/runtime/store"
)

// offsetClock is a host's clock, so much ahead of the table's.
type offsetClock time.Duration

func (c offsetClock) Now() time.Time                         { return time.Now().Add(time.Duration(c)) }
func (c offsetClock) After(d time.Duration) <-chan time.Time { return time.After(d.Truncate(turns)) }

// turns is what all of a history's spans are multiples of, in nanoseconds. Each caller begins at another
// remainder, and goes on at it after each call; so do requests on the way for it, and what a process does by
// itself. So no two are ever at work at the same instant, and a seed gives one history.
const turns = 128

// until returns d, prolonged to an instant of that turn.
func until(d, turn time.Duration) time.Duration {
	d = d.Truncate(turns)
	return d + (turn-time.Duration(time.Now().UnixNano()%turns)+turns)%turns
}

// turnClock is an offsetClock that wakes who waits at that turn.
type turnClock struct {
	offsetClock
	turn time.Duration
}

// at is an instant, in milliseconds.
func (c turnClock) at(t time.Time) int64 { return t.Add(time.Duration(c.offsetClock)).UnixMilli() }

func (c turnClock) After(d time.Duration) <-chan time.Time { return time.After(until(d, c.turn)) }

// withChain returns the resource as if these limits were a user's, and each of its ancestors' so many times
// as much.
func withChain(
	r codec.Resource,
	revision int64,
	cascade store.Cascade,
	above []int64,
	limits ...bucket.Limit,
) *variant {
	v := withNumbers(r, revision, limits...)
	v.Numbers.Cascade = cascade
	kinds := v.Numbers.Kinds
	for i, name := range ancestors[:len(above)] {
		kinds[i].Parent = i + 1
		kinds = append(
			kinds,
			store.Kind{Name: name, Prefix: name + "-", Limits: times(above[i], limits), PerCall: kinds[0].PerCall},
		)
	}
	kinds[len(above)].Parent = store.NoParent
	v.Numbers.Kinds = kinds
	return v
}

// ancestors are the kinds above a user, the nearest first.
var ancestors = [...]string{"project", "org"}

// times returns limits with n times the tokens, at n times the pace.
func times(n int64, limits []bucket.Limit) []bucket.Limit {
	all := slices.Clone(limits)
	for i := range all {
		all[i] = scaled(all[i], n, 1)
	}
	return all
}

// scaled returns l with so many times the tokens.
func scaled(l bucket.Limit, n, of int64) bucket.Limit {
	return bucket.Limit{
		Capacity: l.Capacity * n / of,
		Burst:    l.Burst * n / of,
		Refill:   l.Refill * n / of,
		Period:   l.Period,
	}
}

// process is one of a service's processes: a store with a cache and a clock of its own.
type process struct {
	session *session
	clock   turnClock
	rng     *rand.Rand
	names   []string // all limits of a history whose schemas have different ones; else nil
	held    func(*store.Bucket, []*acquired)

	mu     sync.Mutex // guards what follows
	calls  []*acquired
	leases map[*store.Call][]*acquired // what a lease took, oldest first
}

func newProcess(
	t testing.TB,
	api wire.API,
	seed uint64,
	offset offsetClock,
	opt func(*Store),
	defs ...store.Definition,
) *process {
	t.Helper()
	p := &process{
		clock: turnClock{offset, 0}, rng: rand.New(rand.NewPCG(seed, 3)), leases: map[*store.Call][]*acquired{},
	}
	rng := rand.New(rand.NewPCG(seed, 2))
	var mu sync.Mutex
	backend := newStore(api, "sim", func(store *Store) {
		store.seams.Jitter = func() float64 {
			mu.Lock()
			defer mu.Unlock()
			return rng.Float64()
		}
		store.seams.OnWrite = p.onWrite
		if opt != nil {
			opt(store)
		}
	})
	env := &store.Env{
		Clock: p.clock, Observer: &store.Observer{}, Logger: slog.New(slog.DiscardHandler),
		SettleTimeout: 5 * time.Second, CacheTTL: time.Minute, Answered: func() {},
	}
	s, err := backend.Open(env, defs...)
	if err != nil {
		t.Fatal(err)
	}
	p.session = s.(*session)
	return p
}

// caller is one of those at work in a process, and its turn.
type caller struct {
	*process
	turn time.Duration
}

// acquire takes cost (millitokens) for entity 1 and returns the call, to settle it.
func (p *process) acquire(ctx context.Context, def store.Definition, cost []int64) (*store.Call, error) {
	return caller{process: p}.acquireOf(ctx, def, cost, []store.Bucket{{Entity: "user-1"}})
}

// settle turns a call's cost into actual.
func (p *process) settle(ctx context.Context, call *store.Call, actual []int64) error {
	return caller{process: p}.settleOr(ctx, call, actual, nil)
}

// dropCalls drops what is noted of calls, for a test that does not judge them.
func (p *process) dropCalls() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.calls = nil
	clear(p.leases)
}

// patient is how long an acquire may take: so long that no race is lost for want of time.
const patient = 5 * time.Second

// acquireOf takes cost from a chain, unless memory denies it.
func (c caller) acquireOf(
	ctx context.Context,
	def store.Definition,
	cost []int64,
	chain []store.Bucket,
) (*store.Call, error) {
	call := &store.Call{
		Called: c.clock.Now(), Deadline: time.Now().Add(patient),
		Parts: []store.Part{{Def: def, Buckets: chain, Cost: cost}},
	}
	var links []store.Link
	for _, b := range chain {
		links = append(
			links,
			store.Link{Kind: b.Kind, ID: strings.TrimPrefix(b.Entity, def.Spec().Kinds[b.Kind].Prefix)},
		)
	}
	if denied := c.session.Refused(def, links, cost, call.Called.UnixMilli()); denied != nil {
		return call, denied
	}
	a := &acquired{
		chain: chain, cost: c.spread(def.Spec(), cost), times: map[string]int{}, undone: map[string]int{},
		windows: map[string][]int{}, tried: map[string][]int64{},
	}
	c.mu.Lock()
	c.calls, c.leases[call] = append(c.calls, a), []*acquired{a}
	c.mu.Unlock()
	where := tag{turn: c.turn, began: time.Now(), by: c.process, call: a}
	err := c.session.Acquire(tagged(ctx, where), call)
	a.admitted = err == nil
	return call, err
}

// acquired is an acquire as it was reported to its caller, and how often a write that charged one of its
// buckets included it.
type acquired struct {
	chain    []store.Bucket
	cost     []int64 // of all limits
	admitted bool
	times    map[string]int // less those that were given back
	undone   map[string]int
	windows  map[string][]int   // that the last of these writes charged, by limit: numbers of the oracle
	tried    map[string][]int64 // the ends of windows that the last one sent was to charge; of a control alone
}

// wrong says what is wrong with a, in the buckets that have a limit of which it takes anything. Calm is where
// nothing is sent again that was applied.
func (a *acquired) wrong(calm bool, absent limitsOf) string {
	for _, b := range a.chain {
		takes := false
		for i, n := range a.cost {
			takes = takes || n > 0 && !absent(b.Entity)[i]
		}
		if n := a.times[b.Entity]; a.admitted && takes && (n == 0 || calm && n > 1) {
			return fmt.Sprintf("an admitted call was charged %d times by %s", n, b.Entity)
		}
	}
	return ""
}

// settleOr settles, or, where later is not nil, leaves that for later, which is told then.
func (c caller) settleOr(ctx context.Context, call *store.Call, actual []int64, later func(error)) error {
	part := call.Parts[0]
	part.Buckets, part.Actual = slices.Clone(part.Buckets), actual
	c.mu.Lock()
	lease := c.leases[call]
	delete(c.leases, call)
	c.mu.Unlock()
	for i := range part.Buckets {
		b := &part.Buckets[i]
		if b.After, b.Charges = nil, chargesOf(&part, b); c.held != nil {
			c.held(b, lease)
		}
	}
	call.Parts[0].Buckets = part.Buckets // for the caller, which learns how they were left
	again := &store.Call{Called: c.clock.Now(), Parts: []store.Part{part}}
	where := tag{turn: c.turn, began: time.Now(), by: c.process, settle: true, lease: lease}
	ctx, cancel := context.WithTimeout(tagged(ctx, where), 5*time.Second)
	if later == nil {
		defer cancel()
		return c.session.Settle(ctx, again)
	}
	again.Later = func(err error) {
		cancel()
		later(err)
	}
	err := c.session.Settle(ctx, again)
	if again.Later != nil {
		panic("a settle was not left for later")
	}
	return err
}

// history is one seeded run of writers on one bucket, or on chains that meet in it.
type history struct {
	seed     uint64
	writers  int // processes
	callers  int // of each, at work side by side; 0 for one
	duration time.Duration
	spend    int              // ends when so many acquires are admitted, if that is sooner
	skew     time.Duration    // clocks are up to so much off, either way
	limits   [][]bucket.Limit // by revision; processes go from one to the next at about the same time
	versions []codec.Resource // with these limits, where schemas differ in more than numbers; else nil
	resource codec.Resource   // nil for that of the test
	// for how long versions are at work side by side, as a share of each one's time; 0 for a fifth
	beside float64
	think  func(*rand.Rand) time.Duration
	cost   func(*rand.Rand) []int64
	actual func(*rand.Rand) []int64 // what a call comes to; nil: up to twice the cost
	settle float64                  // share of admitted calls that settle, up or down; as many release
	lazy   float64                  // share of these that may wait for the next write
	cancel float64                  // share of acquires whose caller gives up within 10 ms
	faults faults                   // of the network
	ttlLag time.Duration            // at most, between an item's ttl and its deletion

	above    []int64 // the limits of each of a user's ancestors, in multiples of the user's
	cascade  store.Cascade
	children int     // users, who share their ancestors
	own      bool    // each caller is for a user of its own
	direct   float64 // share of calls that charge the nearest ancestor alone
	// two operators change the limits of some level as often as that, at most; 0 for never
	override time.Duration
	cache    time.Duration // processes remember that for half as long to as long; 0 for a minute

	windows func(place, version int) []*bucket.Calendar // by which a process opens windows; nil for none
	late    float64                                     // share of leases that are settled at a later call
	more    float64                                     // share of leases that take more, at that call
	reset   time.Duration                               // an operator fills windows as often as that, at most

	choose  func(*plan.Demand, plan.State, int64) plan.Plan
	wrap    func(wire.API) wire.API               // for each process
	env     func(*store.Env)                      // of each process
	reports func([]store.Refusal) []store.Refusal // what callers learn of a denial
	mistake map[string]string                     // what a broken variant takes a kind for, by name
	resets  func(wire.API) wire.API               // for who fills windows
	held    func(*store.Bucket, []*acquired)      // what a broken variant makes of a lease's charges
	decode  func(*bucket.Image)                   // what a broken variant makes of an image
	edit    func(plan.Path, *codec.Write)         // and of a condition
}

// calm reports that every call learns what became of it, unless its caller leaves.
func (h *history) calm() bool {
	f := h.faults
	f.conflict = 0
	return f == faults{}
}

// chain returns the buckets of the n-th user's calls. The topmost ancestor is everybody's, those between are
// shared by every other user.
func (h *history) chain(n int) []store.Bucket {
	chain := []store.Bucket{{Entity: fmt.Sprint("user-", n+1)}}
	for i := range h.above {
		id := 1
		if i < len(h.above)-1 {
			id += n % 2
		}
		chain = append(chain, store.Bucket{Entity: fmt.Sprint(ancestors[i], "-", id), Kind: i + 1})
	}
	return chain
}

// definitions are the resource of each revision.
func (h *history) definitions(r codec.Resource) []store.Definition {
	defs := make([]store.Definition, len(h.limits))
	for i, l := range h.limits {
		of, revision := r, int64(i+1)
		if h.versions != nil {
			of, revision = h.versions[i], h.versions[i].Spec().Revision
		}
		if kinds, ok := of.(*apart); ok {
			defs[i] = h.apart(kinds, withChain(of, revision, h.cascade, h.above, l...))
			continue
		}
		defs[i] = withChain(h.broken(of), revision, h.cascade, h.above, l...)
	}
	return defs
}

// broken returns generated code as h breaks it.
func (h *history) broken(of codec.Resource) codec.Resource {
	if h.decode != nil {
		of = &mangled{Resource: of, mangle: h.decode}
	}
	if h.edit != nil {
		of = &edited{Resource: of, edit: h.edit}
	}
	return of
}

// result is what a history did.
type result struct {
	findings              findingsOf
	admitted, denied      int
	contended, failed     int
	writes, reads         int
	creates, reshapes     int
	generic               int   // writes built from the image
	commits, served       int   // applied writes of calls, and calls included
	charged, leastCharged tally // by the table; at least by what callers were told
	calm                  bool  // exactly so much
	waited                bool  // by all callers for their replies, so that nothing may fail
	failure               error // of the first that failed
	denials               []denial
	wrong                 string // with a denial, or with a write that was applied twice
}

// tally is what was charged, by entity.
type tally map[string][]int64

func (t tally) add(entity string, cost []int64) {
	if t[entity] == nil {
		t[entity] = make([]int64, len(cost))
	}
	for i, c := range cost {
		t[entity][i] += c
	}
}

// denial is an acquire that was denied.
type denial struct {
	began, ended time.Time // by the table's clock
	by           *process
	cost         []int64
	chain        []store.Bucket
	refusals     []store.Refusal
}

// run plays h in a bubble of virtual time.
func (h history) run(t *testing.T, r codec.Resource) (out result) {
	t.Helper()
	skipOnLocal(t)
	if h.resource != nil {
		r = h.resource
	}
	synctest.Test(t, func(t *testing.T) {
		table := newSimTable(h.seed, r.Decode)
		table.faults, table.ttlLag = h.faults, h.ttlLag
		defs := h.opening(h.definitions(r), 0)
		out.leastCharged, out.charged = tally{}, tally{}
		var mu sync.Mutex // guards out
		var wg sync.WaitGroup
		seeds := rand.New(rand.NewPCG(h.seed, 4))
		var processes []*process
		process := func(clock turnClock, api wire.API, defs []store.Definition) *process {
			p := newProcess(t, api, seeds.Uint64(), clock.offsetClock, func(store *Store) {
				if h.choose != nil {
					store.seams.Choose = h.choose
				}
			}, defs...)
			p.clock, p.session.conn.Env.Clock, p.held = clock, clock, h.held
			if h.versions != nil {
				p.names = r.Spec().Limits
			}
			if h.cache > 0 {
				p.session.conn.Env.CacheTTL = h.cache/2 + time.Duration(seeds.Int64N(int64(h.cache/2)))
			}
			if h.env != nil {
				h.env(p.session.conn.Env)
			}
			return p
		}
		callers := max(1, h.callers)
		last := time.Duration(
			turns,
		) // turn that is taken: callers come first, processes and operators have the last
		taken := func() time.Duration { last--; return last }
		for n := range h.writers {
			var skew time.Duration
			if h.skew > 0 {
				skew = time.Duration(seeds.Int64N(int64(2*h.skew))) - h.skew
			}
			var api wire.API = table
			if h.wrap != nil {
				api = h.wrap(table)
			}
			defs := h.opening(h.definitions(r), n)
			p := process(turnClock{offsetClock(skew), taken()}, api, defs)
			processes = append(processes, p)
			var of sync.WaitGroup
			for k := range callers {
				w := &writer{history: &h, defs: defs, mu: &mu, out: &out, rng: p.rng, place: n*callers + k}
				w.caller = caller{p, time.Duration(w.place)}
				if callers > 1 {
					w.rng = rand.New(rand.NewPCG(h.seed, uint64(1000+n*callers+k)))
				}
				of.Go(func() { w.run(t.Context()) })
			}
			wg.Go(func() {
				of.Wait()
				_ = p.session.Close(t.Context())
			})
		}
		if h.override > 0 {
			for _, clock := range []offsetClock{-offsetClock(3 * time.Second), offsetClock(3 * time.Second)} {
				at := taken()
				o := &simOperator{
					history: &h,
					process: process(turnClock{clock, at}, table, defs),
					def:     defs[len(defs)-1],
					turn:    at,
				}
				wg.Go(func() { o.run(t.Context()) })
			}
		}
		if h.reset > 0 {
			f := &filler{history: &h, table: table, turn: taken(), rng: rand.New(rand.NewPCG(h.seed, 5))}
			wg.Go(func() { f.run(t.Context()) })
		}
		wg.Wait()
		<-time.After(time.Minute) // until late copies have arrived
		table.mu.Lock()
		defer table.mu.Unlock()
		out.judge(&h, table, processes, defs, r.Spec())
	})
	return out
}

// judge draws the balance of what table has a log of, and what processes were told. All has the limits of all
// schemas.
func (r *result) judge(
	h *history,
	table *simTable,
	processes []*process,
	defs []store.Definition,
	all *store.Spec,
) {
	r.writes, r.reads, r.calm, r.waited = table.writes, table.reads, h.calm(), h.calm() && h.cancel == 0
	logs, absent, removed := map[string][]commit{}, h.absent(all), h.removing(all)
	for _, c := range table.log {
		logs[c.entity] = append(logs[c.entity], c)
		r.note(c)
		r.find(c.other(removed(c.entity)))
		if c.charges() {
			for _, a := range c.tag.calls {
				a.times[c.entity]++
			}
		}
		for _, p := range c.tag.parts { // what is given back to a bucket that is not there is there already
			if h.windows != nil && c.before == nil && p.settle {
				r.leastCharged.add(c.entity, bucket.Negated(lowered(p.cost)))
			}
		}
		for _, a := range c.tag.undone {
			a.times[c.entity]--
			a.undone[c.entity]++
		}
		if undone, _ := c.values[":undo"].(*types.AttributeValueMemberS); undone != nil || table.cut[c.after.Op] {
			// Whose caller left while it alone was at work: it is given back if nobody wrote to the bucket since.
			r.leastCharged.add(c.entity, c.costs())
		}
	}
	for _, p := range processes {
		for _, a := range p.calls {
			r.find(a.wrong(r.calm, absent))
		}
	}
	r.leastCharged.forgive(removed)
	r.charged.forgive(removed)
	for _, entity := range slices.Sorted(maps.Keys(logs)) {
		r.findings.add(entity, judge(logs[entity]))
		r.findings.add(entity, h.judgeWindows(logs[entity]))
		r.find(repeated(logs[entity]))
		r.find(flapping(logs[entity], h.raised()+affecting(table.changes, entity)))
		r.find(h.misshapen(logs[entity], all))
	}
	settled := r.waited && len(h.limits) == 1 && h.override == 0 // the bucket that denies is known to all
	r.find(unfounded(r.denials, logs, all, settled, h.override > 0))
	r.find(divided(table.log, h.faults.late == 0, absent))
	if h.override > 0 && h.versions == nil { // an old binary goes by what the bucket has
		r.find(outOfForce(table.log, table.changes, defs[0].Spec(), h.cache))
	}
}

// find keeps the first thing that is wrong.
func (r *result) find(wrong string) {
	if r.wrong == "" {
		r.wrong = wrong
	}
}

// note books a commit.
func (r *result) note(c commit) {
	switch {
	case c.before == nil:
		r.creates++
	case c.before.Version != c.after.Version:
		r.reshapes++
	}
	if c.generic {
		r.generic++
	}
	r.charged.add(c.entity, c.costs())
	if c.tag.included > 0 {
		r.commits++
		r.served += c.tag.included
	}
}

// simOperator changes overrides, by a clock that is seconds off.
type simOperator struct {
	*history
	*process
	def  store.Definition
	turn time.Duration
}

func (o *simOperator) run(ctx context.Context) {
	<-time.After(o.turn)
	spec := o.def.Spec()
	for began := time.Now(); ; {
		<-time.After(upTo(2 * o.history.override)(o.rng).Truncate(turns))
		if time.Since(began) > o.duration {
			return
		}
		chain := o.chain(o.rng.IntN(o.children))
		link := chain[o.rng.IntN(len(chain))]
		at := link.Entity
		if o.rng.IntN(2) == 0 {
			at = spec.Kinds[link.Kind].Name
		}
		store := o.session.Overrides()
		stored, err := store.Get(ctx, spec, at)
		if err != nil {
			continue // and so does the operator
		}
		next := stored[0]
		next.Limits = make([]*bucket.Limit, len(spec.Limits))
		for i, l := range spec.Kinds[link.Kind].Limits {
			if !l.Absent() && o.rng.IntN(2) == 0 {
				l = scaled(l, 1+o.rng.Int64N(12), 8)
				next.Limits[i] = &l
			}
		}
		_, _ = store.Set(ctx, spec, next) // the other operator may have been faster
	}
}

// writer is one caller at work in a history.
type writer struct {
	*history
	caller
	defs []store.Definition
	mu   *sync.Mutex
	out  *result
	rng  *rand.Rand

	place int          // among all callers
	open  []*lateLease // that are to be settled later
}

// upTo is a span below most.
func (w *writer) upTo(most time.Duration) time.Duration { return upTo(most)(w.rng).Truncate(turns) }

// sleep lasts until the writer's next turn after d, never before the next instant: others may be at work now.
func (w *writer) sleep(d time.Duration) { <-time.After(until(max(d, 1)+turns-1, w.caller.turn)) }

func (w *writer) run(ctx context.Context) {
	w.sleep(w.upTo(5 * time.Millisecond))
	began := time.Now()
	for time.Since(began) < w.duration && !w.spent() {
		elapsed := float64(time.Since(began)) / float64(w.duration)
		at := elapsed*float64(
			len(w.defs),
		) + (w.rng.Float64()-0.5)*cmp.Or(
			w.beside,
			0.2,
		) // old and new binaries for a while
		w.call(ctx, w.defs[max(0, min(len(w.defs)-1, int(at)))])
		w.sleep(w.think(w.rng))
		w.resume(ctx)
	}
	for _, l := range w.open { // which stay as they are
		w.book(l.call.Parts[0].Buckets, w.spread(l.def.Spec(), l.cost), w.spread(l.def.Spec(), l.cost), nil)
	}
}

func (w *writer) spent() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.spend > 0 && w.out.admitted >= w.spend
}

// call acquires, and settles or releases a share.
func (w *writer) call(ctx context.Context, def store.Definition) {
	cost := w.pick(def, w.cost(w.rng))
	asked := ctx
	if dice := w.rng.Float64(); dice < w.cancel {
		after := w.upTo(10 * time.Millisecond)
		var cancel context.CancelFunc
		if dice < w.cancel/2 {
			asked, cancel = context.WithTimeout(ctx, after)
		} else {
			asked, cancel = context.WithCancel(ctx)
			defer time.AfterFunc(after, cancel).Stop()
		}
		defer cancel()
	}
	chain := w.chain(0)
	switch {
	case w.own:
		chain = w.chain(w.place)
	case w.children > 0:
		chain = w.chain(w.rng.IntN(w.children))
	}
	if w.direct > 0 && w.rng.Float64() < w.direct {
		chain = chain[1:2]
	}
	began := time.Now()
	call, err := w.acquireOf(asked, def, cost, chain)
	w.count(
		err,
		denial{began: began, ended: time.Now(), by: w.process, cost: w.spread(def.Spec(), cost), chain: chain},
	)
	if err != nil {
		return
	}
	if w.history.late > 0 && w.rng.Float64() < w.history.late {
		w.open = append(w.open, &lateLease{def, call, cost})
		return
	}
	w.end(ctx, def, call, cost)
}

// end settles or releases a share of leases.
func (w *writer) end(ctx context.Context, def store.Definition, call *store.Call, cost []int64) {
	book := func(actual []int64, err error) {
		w.book(call.Parts[0].Buckets, w.spread(def.Spec(), cost), w.spread(def.Spec(), actual), err)
	}
	dice := w.rng.Float64()
	if dice >= 2*w.history.settle {
		book(cost, nil)
		return
	}
	w.sleep(w.upTo(20 * time.Millisecond))
	actual := make([]int64, len(cost))
	if dice < w.history.settle {
		actual = w.comesTo(def, cost)
	}
	if w.history.lazy > 0 && w.rng.Float64() < w.history.lazy {
		if err := w.settleOr(ctx, call, actual, func(err error) { book(actual, err) }); err != nil {
			panic(err)
		}
		return
	}
	book(actual, w.settleOr(ctx, call, actual, nil))
}

// book books what an admitted call of that cost comes to, whose settle has ended with err.
func (w *writer) book(chain []store.Bucket, cost, actual []int64, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	leastCharged := slices.Clone(actual)
	if err != nil { // whether it was applied is unknown
		w.out.fail(err)
		for i := range leastCharged {
			leastCharged[i] = min(leastCharged[i], cost[i])
		}
	}
	for _, b := range chain {
		// Nothing is given back to a bucket that is not there: it is full. A lazy settle has no image yet.
		if w.history.windows != nil && b.After == nil && err == nil {
			w.out.leastCharged.add(b.Entity, largerOf(leastCharged, cost))
			continue
		}
		w.out.leastCharged.add(b.Entity, leastCharged)
	}
}

// comesTo is what a call of that cost turns out to take.
func (w *writer) comesTo(def store.Definition, cost []int64) []int64 {
	if w.actual != nil {
		return w.pick(def, w.actual(w.rng))
	}
	actual := make([]int64, len(cost))
	for i, c := range cost {
		actual[i] = w.rng.Int64N(2*c + 1)
	}
	return actual
}

func (w *writer) count(err error, d denial) {
	refused, denied := errors.AsType[*store.DeniedError](err)
	_, contended := errors.AsType[*store.ContendedError](err)
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case err == nil:
		w.out.admitted++
	case denied:
		w.out.denied++
		d.refusals = refused.Refusals
		if w.reports != nil {
			d.refusals = w.reports(d.refusals)
		}
		w.out.denials = append(w.out.denials, d)
	case contended:
		w.out.contended++
	default:
		w.out.fail(err)
	}
}

// fail counts a call that failed, which is told why in the terms of the API.
func (r *result) fail(err error) {
	if r.failed++; r.failure == nil {
		r.failure = err
	}
	if u, ok := errors.AsType[*store.UnavailableError](err); !errors.Is(err, context.Canceled) &&
		(!ok || u.Err == nil) {
		r.find(fmt.Sprintf("a call failed with %T: %v", err, err))
	}
}

// mangled is a resource whose images are not what the table has.
type mangled struct {
	codec.Resource
	mangle func(*bucket.Image)
}

func (m *mangled) Decode(dst *bucket.Image, item codec.Item) error {
	err := m.Resource.Decode(dst, item)
	m.mangle(dst)
	return err
}

func (m *mangled) DecodeBalances(dst *bucket.Image, item codec.Item) error {
	err := m.Resource.DecodeBalances(dst, item)
	m.mangle(dst)
	return err
}

// edited is a resource whose conditions are not what was generated.
type edited struct {
	codec.Resource
	edit func(plan.Path, *codec.Write)
}

func (e *edited) Normal(w *codec.Write)  { e.Resource.Normal(w); e.edit(plan.Normal, w) }
func (e *edited) Retry(w *codec.Write)   { e.Resource.Retry(w); e.edit(plan.Retry, w) }
func (e *edited) Reshape(w *codec.Write) { e.Resource.Reshape(w); e.edit(plan.Reshape, w) }

// perAdmitted is the number of writes for each admitted acquire.
func (r result) perAdmitted() float64 { return float64(r.writes) / float64(max(1, r.admitted)) }

// exact says what is wrong with a result, or nothing.
func (r result) exact() string {
	if !r.findings.exact() {
		return r.findings.String()
	}
	if r.wrong != "" {
		return r.wrong
	}
	if r.waited && r.failed > 0 {
		return fmt.Sprintf("%d calls failed: %v", r.failed, r.failure)
	}
	for _, entity := range slices.Sorted(maps.Keys(r.leastCharged)) {
		charged := r.charged[entity]
		for i, leastCharged := range r.leastCharged[entity] {
			if charged == nil || charged[i] < leastCharged || r.calm && charged[i] > leastCharged {
				return fmt.Sprintf("%s, limit %d: charged %d for what comes to %d", entity, i, charged, leastCharged)
			}
		}
	}
	return ""
}

// sum adds another history's figures.
func (r *result) sum(of result) {
	r.admitted, r.denied = r.admitted+of.admitted, r.denied+of.denied
	r.contended, r.failed = r.contended+of.contended, r.failed+of.failed
	r.writes, r.reads = r.writes+of.writes, r.reads+of.reads
	r.creates, r.reshapes, r.generic = r.creates+of.creates, r.reshapes+of.reshapes, r.generic+of.generic
	r.commits, r.served = r.commits+of.commits, r.served+of.served
	r.findings.add("", of.findings)
}

func (r result) String() string {
	return fmt.Sprintf(
		"admitted %d denied %d contended %d failed %d; writes %d (%.3f per admitted) reads %d creates %d "+
			"reshapes %d generic %d, %.2f calls per commit; %v",
		r.admitted,
		r.denied,
		r.contended,
		r.failed,
		r.writes,
		r.perAdmitted(),
		r.reads,
		r.creates,
		r.reshapes,
		r.generic,
		float64(r.served)/float64(max(1, r.commits)),
		r.findings,
	)
}
