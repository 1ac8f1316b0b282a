package dynamo

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	limits "github.com/sluice-go/sluice/generated"
	"github.com/sluice-go/sluice/internal/seal"
	"github.com/sluice-go/sluice/runtime"
	"github.com/sluice-go/sluice/runtime/bucket"
	"github.com/sluice-go/sluice/runtime/dynamo/codec"
)

// offsetClock is a host's clock, so much ahead of the table's.
type offsetClock time.Duration

func (c offsetClock) Now() time.Time                         { return time.Now().Add(time.Duration(c)) }
func (c offsetClock) After(d time.Duration) <-chan time.Time { return time.After(d.Truncate(turns)) }

// turns is what all of a history's spans are multiples of, in nanoseconds. Each writer begins at another remainder, so that
// no two are ever at work at the same instant and a seed gives one history.
const turns = 64

// generated returns the generated code of the demonstration's resources.
func generated(t testing.TB) (gpt4, embeddings codec.Resource) {
	t.Helper()
	var store capture
	if _, err := limits.New(&store); err != nil {
		t.Fatal(err)
	}
	return store.defs[0].(codec.Resource), store.defs[1].(codec.Resource)
}

// capture is a store that only looks at what is opened.
type capture struct{ defs []runtime.Definition }

func (c *capture) Sealed(seal.Sealed) {}
func (c *capture) Open(_ *runtime.Env, defs ...runtime.Definition) (runtime.Session, error) {
	c.defs = defs
	return nil, nil
}

// variant is a generated resource with other numbers.
type variant struct {
	codec.Resource
	spec *runtime.Spec
}

func (v *variant) Spec() *runtime.Spec { return v.spec }

// withNumbers returns the resource as if its schema had these limits under that revision.
func withNumbers(r codec.Resource, revision int64, limits ...bucket.Limit) *variant {
	spec := *r.Spec()
	spec.Revision = revision
	spec.Kinds = []runtime.Kind{{Name: "user", Prefix: "user-", Limits: limits, PerCall: make([]int64, len(limits))}}
	return &variant{Resource: r, spec: &spec}
}

// withChain returns the resource as if these limits were a user's, and each of its ancestors' so many times as much.
func withChain(r codec.Resource, revision int64, cascade runtime.Cascade, above []int64, limits ...bucket.Limit) *variant {
	v := withNumbers(r, revision, limits...)
	v.spec.Cascade = cascade
	kinds := v.spec.Kinds
	for i, name := range ancestors[:len(above)] {
		kinds[i].Parent = i + 1
		kinds = append(kinds, runtime.Kind{Name: name, Prefix: name + "-", Limits: times(above[i], limits), PerCall: kinds[0].PerCall})
	}
	kinds[len(above)].Parent = runtime.NoParent
	v.spec.Kinds = kinds
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
	return bucket.Limit{Capacity: l.Capacity * n / of, Burst: l.Burst * n / of, Refill: l.Refill * n / of, Period: l.Period}
}

// process is one of a service's processes: a store with a cache and a clock of its own.
type process struct {
	session *session
	clock   offsetClock
	rng     *rand.Rand
}

func newProcess(t testing.TB, api API, seed uint64, clock offsetClock, opt func(*options), defs ...runtime.Definition) *process {
	t.Helper()
	rng := rand.New(rand.NewPCG(seed, 2))
	var mu sync.Mutex
	store := New(api, "sim", func(o *options) error {
		o.jitter = func() float64 {
			mu.Lock()
			defer mu.Unlock()
			return rng.Float64()
		}
		if opt != nil {
			opt(o)
		}
		return nil
	})
	env := &runtime.Env{
		Clock: clock, Observer: &runtime.Observer{}, Logger: slog.New(slog.DiscardHandler),
		SettleTimeout: 5 * time.Second, CacheTTL: time.Minute,
	}
	s, err := store.Open(env, defs...)
	if err != nil {
		t.Fatal(err)
	}
	return &process{session: s.(*session), clock: clock, rng: rand.New(rand.NewPCG(seed, 3))}
}

// acquire takes cost (millitokens) for entity 1 and returns the call, to settle it.
func (p *process) acquire(ctx context.Context, def runtime.Definition, cost []int64) (*runtime.Call, error) {
	return p.acquireOf(ctx, def, cost, []runtime.Bucket{{Entity: "user-1"}})
}

// acquireOf takes cost from a chain.
func (p *process) acquireOf(ctx context.Context, def runtime.Definition, cost []int64, chain []runtime.Bucket) (*runtime.Call, error) {
	call := &runtime.Call{Called: p.clock.Now(), Parts: []runtime.Part{{Def: def, Buckets: chain, Cost: cost}}}
	where := tag{began: time.Now(), called: call.Called.UnixMilli(), legs: 1}
	if def.Spec().Cascade == runtime.CascadeAtomic {
		where.legs = len(chain)
	}
	ctx, cancel := context.WithTimeout(tagged(ctx, where), time.Second)
	defer cancel()
	return call, p.session.Acquire(ctx, call)
}

// settle turns a call's cost into actual.
func (p *process) settle(ctx context.Context, call *runtime.Call, actual []int64) error {
	part := call.Parts[0]
	part.Actual = actual
	again := &runtime.Call{Called: p.clock.Now(), Parts: []runtime.Part{part}}
	where := tag{began: time.Now(), called: again.Called.UnixMilli(), settle: true, legs: 1}
	ctx, cancel := context.WithTimeout(tagged(ctx, where), 5*time.Second)
	defer cancel()
	return p.session.Settle(ctx, again)
}

// history is one seeded run of writers on one bucket, or on chains that meet in it.
type history struct {
	seed     uint64
	writers  int
	duration time.Duration
	spend    int              // ends when so many acquires are admitted, if that is sooner
	skew     time.Duration    // clocks are up to so much off, either way
	limits   [][]bucket.Limit // by revision; processes go from one to the next at about the same time
	think    func(*rand.Rand) time.Duration
	cost     func(*rand.Rand) []int64
	actual   func(*rand.Rand) []int64 // what a call comes to; nil: up to twice the cost
	settle   float64                  // share of admitted calls that settle, up or down; as many release
	cancel   float64                  // share of acquires whose caller gives up within 10 ms
	faults   faults                   // of the network
	ttlLag   time.Duration            // at most, between an item's ttl and its deletion

	above    []int64 // the limits of each of a user's ancestors, in multiples of the user's
	cascade  runtime.Cascade
	children int           // users, who share their ancestors
	direct   float64       // share of calls that charge the nearest ancestor alone
	override time.Duration // two operators change the limits of some level as often as that, at most; 0 for never
	cache    time.Duration // processes remember that for half as long to as long; 0 for a minute

	choose func(*want, view, int64) plan
	wrap   func(API) API                             // for each process
	told   func([]runtime.Refusal) []runtime.Refusal // what callers learn of a denial
	decode func(*bucket.Image)                       // what a broken variant makes of an image
	edit   func(path, *codec.Write)                  // and of a condition
}

// calm reports that every call learns what became of it.
func (h *history) calm() bool {
	f := h.faults
	f.conflict = 0
	return f == faults{} && h.cancel == 0
}

// chain returns the buckets of the n-th user's calls. The topmost ancestor is everybody's, those between are shared by
// every other user.
func (h *history) chain(n int) []runtime.Bucket {
	chain := []runtime.Bucket{{Entity: fmt.Sprint("user-", n+1)}}
	for i := range h.above {
		id := 1
		if i < len(h.above)-1 {
			id += n % 2
		}
		chain = append(chain, runtime.Bucket{Entity: fmt.Sprint(ancestors[i], "-", id), Kind: i + 1})
	}
	return chain
}

// definitions are the resource of each revision.
func (h *history) definitions(r codec.Resource) []runtime.Definition {
	if h.decode != nil {
		r = &mangled{Resource: r, mangle: h.decode}
	}
	if h.edit != nil {
		r = &edited{Resource: r, edit: h.edit}
	}
	defs := make([]runtime.Definition, len(h.limits))
	for i, l := range h.limits {
		defs[i] = withChain(r, int64(i+1), h.cascade, h.above, l...)
	}
	return defs
}

// result is what a history did.
type result struct {
	verdict           verdictOf
	admitted, denied  int
	contended, failed int
	writes, reads     int
	creates, reshapes int
	charged, owed     tally // by the table; at least by what callers were told
	calm              bool  // exactly so much, and nothing may fail
	denials           []denial
	wrong             string // with a denial, or with a write that was applied twice
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
	skew         time.Duration
	cost         []int64
	chain        []runtime.Bucket
	refusals     []runtime.Refusal
}

// run plays h in a bubble of virtual time.
func (h history) run(t *testing.T, r codec.Resource) (out result) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		table := newSimTable(h.seed, r.Decode)
		table.faults, table.ttlLag = h.faults, h.ttlLag
		defs := h.definitions(r)
		out.owed, out.charged = tally{}, tally{}
		var mu sync.Mutex // guards out
		var wg sync.WaitGroup
		seeds := rand.New(rand.NewPCG(h.seed, 4))
		process := func(clock offsetClock, api API) *process {
			p := newProcess(t, api, seeds.Uint64(), clock, func(o *options) {
				if h.choose != nil {
					o.choose = h.choose
				}
			}, defs...)
			if h.cache > 0 {
				p.session.env.CacheTTL = h.cache/2 + time.Duration(seeds.Int64N(int64(h.cache/2)))
			}
			return p
		}
		for n := range h.writers {
			var skew time.Duration
			if h.skew > 0 {
				skew = time.Duration(seeds.Int64N(int64(2*h.skew))) - h.skew
			}
			var api API = table
			if h.wrap != nil {
				api = h.wrap(table)
			}
			w := &writer{
				history: &h, defs: defs, mu: &mu, out: &out, turn: time.Duration(n % turns),
				process: process(offsetClock(skew), api),
			}
			wg.Go(func() { w.run(t.Context()) })
		}
		if h.override > 0 {
			for n, clock := range []offsetClock{-offsetClock(3 * time.Second), offsetClock(3 * time.Second)} {
				o := &operator{
					history: &h, process: process(clock, table), def: defs[0], turn: time.Duration((h.writers + n) % turns),
				}
				wg.Go(func() { o.run(t.Context()) })
			}
		}
		wg.Wait()
		<-time.After(time.Minute) // until late copies have arrived
		table.mu.Lock()
		defer table.mu.Unlock()
		out.judge(&h, table, defs)
	})
	return out
}

// judge draws the balance of what table has a log of.
func (r *result) judge(h *history, table *simTable, defs []runtime.Definition) {
	r.writes, r.reads, r.calm = table.writes, table.reads, h.calm()
	logs := map[string][]commit{}
	for _, c := range table.log {
		logs[c.entity] = append(logs[c.entity], c)
		r.note(c)
	}
	for _, entity := range slices.Sorted(maps.Keys(logs)) {
		r.verdict.add(entity, judge(logs[entity]))
		r.find(repeated(logs[entity]))
		r.find(flapping(logs[entity], len(h.limits)-1+affecting(table.changes, entity)))
	}
	settled := h.calm() && len(h.limits) == 1 && h.override == 0 // whoever refuses is known to all
	r.find(unfounded(r.denials, logs, defs[0].Spec(), settled))
	r.find(divided(table.log, h.faults.late == 0))
	if h.override > 0 {
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
	r.charged.add(c.entity, c.costs())
}

// operator changes overrides, by a clock that is seconds off.
type operator struct {
	*history
	*process
	def  runtime.Definition
	turn time.Duration
}

func (o *operator) run(ctx context.Context) {
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
			if o.rng.IntN(2) == 0 {
				l = scaled(l, 1+o.rng.Int64N(12), 8)
				next.Limits[i] = &l
			}
		}
		_, _ = store.Set(ctx, spec, next) // the other operator may have been faster
	}
}

// writer is one process at work in a history.
type writer struct {
	*history
	*process
	defs []runtime.Definition
	mu   *sync.Mutex
	out  *result
	turn time.Duration
}

// upTo is a span below most.
func (w *writer) upTo(most time.Duration) time.Duration { return upTo(most)(w.rng).Truncate(turns) }

func (w *writer) run(ctx context.Context) {
	<-time.After(w.upTo(5*time.Millisecond) + w.turn)
	began := time.Now()
	for time.Since(began) < w.duration && !w.spent() {
		share := float64(time.Since(began)) / float64(w.duration)
		at := share*float64(len(w.defs)) + (w.rng.Float64()-0.5)*0.2 // old and new binaries for a while
		w.call(ctx, w.defs[max(0, min(len(w.defs)-1, int(at)))])
		<-time.After(w.think(w.rng).Truncate(turns))
	}
	_ = w.session.Close(ctx)
}

func (w *writer) spent() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.spend > 0 && w.out.admitted >= w.spend
}

// call acquires, and settles or releases a share.
func (w *writer) call(ctx context.Context, def runtime.Definition) {
	cost := w.cost(w.rng)
	asked := ctx
	if w.rng.Float64() < w.cancel {
		var cancel context.CancelFunc
		asked, cancel = context.WithTimeout(ctx, w.upTo(10*time.Millisecond))
		defer cancel()
	}
	chain := w.chain(0)
	if w.children > 0 {
		chain = w.chain(w.rng.IntN(w.children))
	}
	if w.direct > 0 && w.rng.Float64() < w.direct {
		chain = chain[1:2]
	}
	began := time.Now()
	call, err := w.acquireOf(asked, def, cost, chain)
	w.count(err, denial{began: began, ended: time.Now(), skew: time.Duration(w.clock), cost: cost, chain: chain})
	if err != nil {
		return
	}
	owed := cost
	if dice := w.rng.Float64(); dice < 2*w.history.settle {
		<-time.After(w.upTo(20 * time.Millisecond))
		actual := make([]int64, len(cost))
		if dice < w.history.settle {
			actual = w.comesTo(cost)
		}
		err = w.process.settle(ctx, call, actual)
		owed = actual
		if err != nil { // whether it was applied is unknown
			for i := range owed {
				owed[i] = min(owed[i], cost[i])
			}
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if err != nil {
		w.out.failed++
	}
	for _, b := range chain {
		w.out.owed.add(b.Entity, owed)
	}
}

// comesTo is what a call of that cost turns out to take.
func (w *writer) comesTo(cost []int64) []int64 {
	if w.actual != nil {
		return w.actual(w.rng)
	}
	actual := make([]int64, len(cost))
	for i, c := range cost {
		actual[i] = w.rng.Int64N(2*c + 1)
	}
	return actual
}

func (w *writer) count(err error, d denial) {
	refused, denied := errors.AsType[*runtime.DeniedError](err)
	_, contended := errors.AsType[*runtime.ContendedError](err)
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case err == nil:
		w.out.admitted++
	case denied:
		w.out.denied++
		d.refusals = refused.Refusals
		if w.told != nil {
			d.refusals = w.told(d.refusals)
		}
		w.out.denials = append(w.out.denials, d)
	case contended:
		w.out.contended++
	default:
		w.out.failed++
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

// edited is a resource whose conditions are not what was generated.
type edited struct {
	codec.Resource
	edit func(path, *codec.Write)
}

func (e *edited) Normal(w *codec.Write)  { e.Resource.Normal(w); e.edit(normal, w) }
func (e *edited) Retry(w *codec.Write)   { e.Resource.Retry(w); e.edit(retry, w) }
func (e *edited) Reshape(w *codec.Write) { e.Resource.Reshape(w); e.edit(reshape, w) }

// perAdmitted is the number of writes for each admitted acquire.
func (r result) perAdmitted() float64 { return float64(r.writes) / float64(max(1, r.admitted)) }

// exact says what is wrong with a result, or nothing.
func (r result) exact() string {
	if !r.verdict.exact() {
		return r.verdict.String()
	}
	if r.wrong != "" {
		return r.wrong
	}
	if r.calm && r.failed > 0 {
		return fmt.Sprintf("%d calls failed", r.failed)
	}
	for _, entity := range slices.Sorted(maps.Keys(r.owed)) {
		charged := r.charged[entity]
		for i, owed := range r.owed[entity] {
			if charged == nil || charged[i] < owed || r.calm && charged[i] > owed {
				return fmt.Sprintf("%s, limit %d: charged %d for what comes to %d", entity, i, charged, owed)
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
	r.creates, r.reshapes = r.creates+of.creates, r.reshapes+of.reshapes
	r.verdict.add("", of.verdict)
}

func (r result) String() string {
	return fmt.Sprintf("admitted %d denied %d contended %d failed %d; writes %d (%.3f per admitted) reads %d creates %d reshapes %d; %v",
		r.admitted, r.denied, r.contended, r.failed, r.writes, r.perAdmitted(), r.reads, r.creates, r.reshapes, r.verdict)
}
