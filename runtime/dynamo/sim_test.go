package dynamo

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
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
	call := &runtime.Call{Called: p.clock.Now(), Parts: []runtime.Part{{
		Def: def, Buckets: []runtime.Bucket{{Entity: "user-1"}}, Cost: cost,
	}}}
	ctx, cancel := context.WithTimeout(tagged(ctx, tag{called: call.Called.UnixMilli()}), time.Second)
	defer cancel()
	return call, p.session.Acquire(ctx, call)
}

// settle turns a call's cost into actual.
func (p *process) settle(ctx context.Context, call *runtime.Call, actual []int64) error {
	part := call.Parts[0]
	part.Actual = actual
	again := &runtime.Call{Called: p.clock.Now(), Parts: []runtime.Part{part}}
	ctx, cancel := context.WithTimeout(tagged(ctx, tag{called: again.Called.UnixMilli(), settle: true}), 5*time.Second)
	defer cancel()
	return p.session.Settle(ctx, again)
}

// history is one seeded run of writers on one bucket.
type history struct {
	seed     uint64
	writers  int
	duration time.Duration
	spend    int              // ends when so many acquires are admitted, if that is sooner
	skew     time.Duration    // clocks are up to so much off, either way
	limits   [][]bucket.Limit // by revision; processes go from one to the next at about the same time
	think    func(*rand.Rand) time.Duration
	cost     func(*rand.Rand) []int64
	settle   float64       // share of admitted calls that settle, up or down; as many release
	cancel   float64       // share of acquires whose caller gives up within 10 ms
	faults   faults        // of the network
	ttlLag   time.Duration // at most, between an item's ttl and its deletion
	choose   func(*want, view, int64) plan
	wrap     func(API) API
	decode   func(*bucket.Image)      // what a broken variant makes of an image
	edit     func(path, *codec.Write) // and of a condition
}

// calm reports that every call learns what became of it.
func (h *history) calm() bool { return h.faults == faults{} && h.cancel == 0 }

// result is what a history did.
type result struct {
	verdict           verdictOf
	admitted, denied  int
	contended, failed int
	writes, reads     int
	creates, reshapes int
	charged, owed     []int64 // by the table; at least by what callers were told
	calm              bool    // exactly so much, and nothing may fail
	denials           []denial
	wrong             string // with a denial, or with a write that was applied twice
}

// denial is an acquire that was denied.
type denial struct {
	began, ended time.Time // by the table's clock
	skew         time.Duration
	cost         []int64
}

// run plays h in a bubble of virtual time.
func (h history) run(t *testing.T, r codec.Resource) (out result) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		table := newSimTable(h.seed, r.Decode)
		table.faults, table.ttlLag = h.faults, h.ttlLag
		var api API = table
		if h.wrap != nil {
			api = h.wrap(table)
		}
		if h.decode != nil {
			r = &mangled{Resource: r, mangle: h.decode}
		}
		if h.edit != nil {
			r = &edited{Resource: r, edit: h.edit}
		}
		defs := make([]runtime.Definition, len(h.limits))
		for i, l := range h.limits {
			defs[i] = withNumbers(r, int64(i+1), l...)
		}
		out.owed, out.charged = make([]int64, len(h.limits[0])), make([]int64, len(h.limits[0]))
		var mu sync.Mutex // guards out
		var wg sync.WaitGroup
		seeds := rand.New(rand.NewPCG(h.seed, 4))
		for n := range h.writers {
			var skew time.Duration
			if h.skew > 0 {
				skew = time.Duration(seeds.Int64N(int64(2*h.skew))) - h.skew
			}
			w := &writer{
				history: &h, defs: defs, mu: &mu, out: &out, turn: time.Duration(n % turns),
				process: newProcess(t, api, seeds.Uint64(), offsetClock(skew), func(o *options) {
					if h.choose != nil {
						o.choose = h.choose
					}
				}, defs...),
			}
			wg.Go(func() { w.run(t.Context()) })
		}
		wg.Wait()
		<-time.After(time.Minute) // until late copies have arrived
		table.mu.Lock()
		defer table.mu.Unlock()
		out.verdict = judge(table.log)
		out.writes, out.reads = table.writes, table.reads
		out.calm = h.calm()
		for _, c := range table.log {
			out.note(c)
		}
		if out.wrong = repeated(table.log); out.wrong == "" {
			out.wrong = unfounded(out.denials, table.log)
		}
	})
	return out
}

// note books a commit.
func (r *result) note(c commit) {
	switch {
	case c.before == nil:
		r.creates++
	case c.before.Version != c.after.Version:
		r.reshapes++
	}
	for i := range c.after.Balances {
		r.charged[i] += (&entry{commit: c, limit: i}).cost()
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
	began := time.Now()
	call, err := w.acquire(asked, def, cost)
	w.count(err, denial{began: began, ended: time.Now(), skew: time.Duration(w.clock), cost: cost})
	if err != nil {
		return
	}
	owed := cost
	if dice := w.rng.Float64(); dice < 2*w.history.settle {
		<-time.After(w.upTo(20 * time.Millisecond))
		actual := make([]int64, len(cost))
		if dice < w.history.settle {
			for i, c := range cost {
				actual[i] = w.rng.Int64N(2*c + 1)
			}
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
	for i := range owed {
		w.out.owed[i] += owed[i]
	}
}

func (w *writer) count(err error, d denial) {
	_, denied := errors.AsType[*runtime.DeniedError](err)
	_, contended := errors.AsType[*runtime.ContendedError](err)
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case err == nil:
		w.out.admitted++
	case denied:
		w.out.denied++
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
	for i := range r.charged {
		if r.charged[i] < r.owed[i] || r.calm && r.charged[i] > r.owed[i] {
			return fmt.Sprintf("limit %d: charged %d for what comes to %d", i, r.charged[i], r.owed[i])
		}
	}
	return ""
}

func (r result) String() string {
	return fmt.Sprintf("admitted %d denied %d contended %d failed %d; writes %d (%.3f per admitted) reads %d creates %d reshapes %d; %v",
		r.admitted, r.denied, r.contended, r.failed, r.writes, r.perAdmitted(), r.reads, r.creates, r.reshapes, r.verdict)
}
