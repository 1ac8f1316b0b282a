package dynamo

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/sluice-go/sluice/internal/test/longform"
	"github.com/sluice-go/sluice/runtime"
	"github.com/sluice-go/sluice/runtime/bucket"
	"github.com/sluice-go/sluice/runtime/dynamo/codec"
	"github.com/sluice-go/sluice/runtime/dynamo/internal/wire"
	"github.com/sluice-go/sluice/runtime/dynamo/lean"
	"github.com/sluice-go/sluice/runtime/dynamo/operator"
	"github.com/sluice-go/sluice/runtime/internal/item"
	"github.com/sluice-go/sluice/runtime/memdynamo"
	"github.com/sluice-go/sluice/runtime/store"
)

// kin is an entity: the ids of its ancestors, the highest first, and its own.
type kin []string

func (k kin) Chain(dst []store.Link) []store.Link {
	for kind, id := range slices.Backward(k) {
		dst = append(dst, store.Link{Kind: kind, ID: id})
	}
	return dst
}

// lineage returns r as if its schema gave kinds these limits, each the parent of the next.
func lineage(r codec.Resource, cascade store.Cascade, limits ...[]bucket.Limit) *variant {
	spec := *r.Spec()
	spec.Cascade, spec.Kinds = cascade, nil
	for i, own := range limits {
		name := []string{"org", "project", "user"}[i]
		spec.Kinds = append(spec.Kinds, store.Kind{
			Name: name, Prefix: name + "-", Parent: i - 1, Limits: own, PerCall: make([]int64, len(own)),
		})
	}
	return &variant{Resource: r, Numbers: &spec}
}

// bubble is an engine and a table of it, within a bubble of testing/synctest.
type bubble struct {
	*memdynamo.Engine
	client *dynamodb.Client // without retries of its own
	stream string
}

// inBubble runs f on virtual time.
func inBubble(t *testing.T, seed uint64, f func(*testing.T, *bubble)) {
	t.Helper()
	skipOnLocal(t)
	synctest.Test(t, func(t *testing.T) {
		b := &bubble{Engine: memdynamo.New(memdynamo.WithSeed(seed))}
		b.client = b.Client(wire.NoRetry)
		made, err := b.client.CreateTable(t.Context(), operator.Table("faults"))
		if err != nil {
			t.Fatal(err)
		}
		b.stream = *made.TableDescription.LatestStreamArn
		f(t, b)
	})
}

// post is a process: a limiter with a store of its own.
type post struct {
	*runtime.Limiter
	at []*runtime.Resource[kin, tokens]
}

func (b *bubble) post(t testing.TB, opts []runtime.Option, defs ...store.Definition) *post {
	t.Helper()
	return newPost(t, New(b.client, "faults"), opts, defs...)
}

func newPost(t testing.TB, backend store.Store, opts []runtime.Option, defs ...store.Definition) *post {
	t.Helper()
	p := &post{}
	builder := runtime.NewBuilder(backend, append([]runtime.Option{
		runtime.WithLogger(slog.New(slog.DiscardHandler)),
		runtime.WithCallDefaults(runtime.OnUnavailable(store.Deny)),
	}, opts...)...)
	for _, def := range defs {
		p.at = append(p.at, runtime.Bind[kin](builder, def,
			func(c tokens, dst []int64) []int64 { return append(dst, c...) }, func(v []int64) tokens { return v }))
	}
	var err error
	if p.Limiter, err = builder.Limiter(); err != nil {
		t.Fatal(err)
	}
	return p
}

// consumed returns tc of every bucket, by limit as resources have them.
func (b *bubble) consumed(t testing.TB, limits map[string][]string) map[item.Key][]int64 {
	t.Helper()
	all := map[item.Key][]int64{}
	out, err := b.client.Scan(t.Context(), &dynamodb.ScanInput{TableName: new("faults")})
	if err != nil || out.LastEvaluatedKey != nil {
		t.Fatal(err, out)
	}
	for _, raw := range out.Items {
		at := item.KeyOf(raw)
		if resource, ok := strings.CutPrefix(at.SK, "#BUCKET#"); ok {
			for _, limit := range limits[resource] {
				all[at] = append(all[at], number(raw["b_"+limit+"_tc"]))
			}
		}
	}
	return all
}

// storm is a history of processes on shared buckets, through faults.
type storm struct {
	cascade store.Cascade
	depth   int   // of chains
	claims  bool  // acquires are of several resources, of whose parts some meet in a bucket
	inOrder bool  // one call at a time, and what comes after it has ended
	upward  bool  // nothing is given back
	calls   int   // acquires
	rate    int64 // of each bucket, in tokens a second

	faults map[memdynamo.Fault]float64     // shares of requests
	chance func(*memdynamo.Faults, *books) // others
	cancel float64                         // share of acquires whose caller leaves meanwhile
	wrap   func(wire.API) wire.API         // a broken store
}

const (
	stormPosts   = 4
	stormWorkers = 12
)

// run plays a storm and returns what its books come to.
func (s storm) run(t *testing.T, seed uint64) (a audit, fell map[string]int) {
	t.Helper()
	inBubble(t, seed, func(t *testing.T, b *bubble) {
		t.Helper()
		books := &books{writes: map[string][]*try{}, fell: map[string]int{}}
		gpt4, embeddings := generated(t)
		defs := s.defs(gpt4, embeddings)
		posts := s.posts(t, b, books, seed, defs)
		b.Faults().Script(s.script(seed, books))
		if s.chance != nil {
			s.chance(b.Faults(), books)
		}
		turn := make(chan struct{}, 1) // in order: whose it is
		var running sync.WaitGroup
		for i := range stormWorkers {
			w := &worker{
				storm: s, books: books, post: posts[i%stormPosts], all: posts, turn: turn,
				rng: rand.New(rand.NewPCG(seed, uint64(i+10))),
			}
			running.Go(func() {
				for range s.calls / stormWorkers {
					w.call(t)
				}
			})
		}
		running.Wait()
		b.Faults().Clear()
		for _, p := range posts {
			if err := p.Close(t.Context()); err != nil {
				t.Error(err)
			}
		}
		<-time.After(time.Minute) // the last copies arrive
		limits := map[string][]string{}
		for _, def := range defs {
			limits[def.Spec().Resource] = def.Spec().Limits
		}
		books.enter(t, b.Streams(), b.stream, limits)
		a, fell = books.audit(b.consumed(t, limits), s.inOrder), books.fell
	})
	return a, fell
}

// defs are embeddings and, for claims, gpt-4. There is not enough for all.
func (s storm) defs(gpt4, embeddings codec.Resource) []store.Definition {
	many := bucket.Per(s.rate, time.Second)
	each := func(limits ...bucket.Limit) (kinds [][]bucket.Limit) {
		for range s.depth {
			kinds = append(kinds, limits)
		}
		return kinds
	}
	defs := []store.Definition{lineage(embeddings, s.cascade, each(many)...)}
	if s.claims {
		defs = append(defs, lineage(gpt4, s.cascade, each(many, many)...))
	}
	return defs
}

func (s storm) posts(t *testing.T, b *bubble, books *books, seed uint64, defs []store.Definition) []*post {
	t.Helper()
	var api wire.API = b.client
	if s.wrap != nil {
		api = s.wrap(api)
	}
	posts := make([]*post, stormPosts)
	for i := range posts {
		var mu sync.Mutex
		rng := rand.New(rand.NewPCG(seed, uint64(i+1)))
		backend := newStore(&scribe{API: api, books: books}, "faults", func(store *Store) {
			store.seams.Jitter = func() float64 {
				mu.Lock()
				defer mu.Unlock()
				return rng.Float64()
			}
			store.seams.OnWrite = books.onWrite
		})
		clock := offsetClock(time.Duration(i-stormPosts/2) * 25 * time.Millisecond)
		posts[i] = newPost(t, backend, []runtime.Option{
			runtime.WithClock(
				clock,
			), runtime.WithLogger(slog.New(books)), runtime.WithObserver(&store.Observer{Store: books.answer}),
		}, defs...)
	}
	return posts
}

// script has faults befall requests, and counts them.
func (s storm) script(seed uint64, books *books) func(memdynamo.Request) memdynamo.Fault {
	var mu sync.Mutex
	rng := rand.New(rand.NewPCG(seed, 99))
	kinds := []memdynamo.Fault{
		memdynamo.LoseRequest, memdynamo.LoseReply, memdynamo.Duplicate, memdynamo.InternalError,
		memdynamo.LateInternalError, memdynamo.Throttle,
	}
	names := []string{"lost requests", "lost replies", "duplicates", "500s before", "500s after", "throttled"}
	return func(memdynamo.Request) memdynamo.Fault {
		mu.Lock()
		dice := rng.Float64()
		mu.Unlock()
		for i, kind := range kinds {
			if dice -= s.faults[kind]; dice < 0 {
				books.befell(names[i])
				return kind
			}
		}
		return memdynamo.None
	}
}

// worker is a goroutine of a process.
type worker struct {
	storm
	books *books
	post  *post
	all   []*post
	turn  chan struct{}
	rng   *rand.Rand
}

// alone runs f when it is its turn, where there are turns, and until what f has left behind has ended.
func (w *worker) alone(t *testing.T, f func()) {
	t.Helper()
	if !w.inOrder {
		f()
		return
	}
	w.turn <- struct{}{}
	defer func() { <-w.turn }()
	f()
	if err := w.post.Close(t.Context()); err != nil {
		t.Error(err)
	}
}

// who draws an entity: of two at each link of its chain.
func (w *worker) who() kin {
	k := make(kin, w.depth)
	for i := range k {
		k[i] = fmt.Sprint(w.rng.IntN(2))
		if i > 0 {
			k[i] = k[i-1] + k[i]
		}
	}
	return k
}

// part is what a worker asks of one resource.
type part struct {
	resource *runtime.Resource[kin, tokens]
	limits   int
	who      kin
	cost     tokens
}

func (w *worker) part(at int, who kin) part {
	p := part{w.post.at[at], at + 1, who, nil} // embeddings have one limit, gpt-4 two
	for range p.limits {
		p.cost = append(p.cost, 1+w.rng.Int64N(5))
	}
	return p
}

// adds what costs change to a bucket's consumption.
func (p part) adds(change map[item.Key][]int64, cost tokens) {
	for i := range p.who {
		at := item.Key{
			PK: "ENTITY#" + []string{"org", "project", "user"}[i] + "-" + p.who[i],
			SK: "#BUCKET#" + p.resource.Name(),
		}
		if change[at] == nil {
			change[at] = make([]int64, p.limits)
		}
		for j, n := range cost {
			change[at][j] += n * bucket.Milli
		}
	}
}

// call acquires, and mostly closes the lease after a while.
func (w *worker) call(t *testing.T) {
	t.Helper()
	parts := []part{w.part(0, w.who())}
	if w.claims {
		parts = append(parts, w.part(0, w.who()), w.part(1, w.who()))
	}
	change := map[item.Key][]int64{}
	for _, p := range parts {
		p.adds(change, p.cost)
	}
	d := w.books.open("acquire", change)
	var leases []*runtime.Lease[tokens]
	w.alone(t, func() {
		ctx, cancel := context.WithCancel(d.within(t.Context()))
		defer cancel()
		if w.rng.Float64() < w.cancel {
			stop := time.AfterFunc(time.Duration(w.rng.Int64N(int64(10*time.Millisecond))), cancel)
			defer stop.Stop()
		}
		leases, d.failed = w.acquire(ctx, parts)
	})
	<-time.After(time.Duration(w.rng.Int64N(int64(20 * time.Millisecond))))
	for i, lease := range leases {
		w.alone(t, func() { w.close(t, parts[i], lease) })
	}
}

func (w *worker) acquire(ctx context.Context, parts []part) ([]*runtime.Lease[tokens], error) {
	if len(parts) == 1 {
		lease, err := parts[0].resource.Acquire(ctx, parts[0].who, parts[0].cost)
		if err != nil {
			return nil, err
		}
		return []*runtime.Lease[tokens]{lease}, nil
	}
	claims := make([]*runtime.Claim[tokens], len(parts))
	all := make([]runtime.AnyClaim, len(parts))
	for i, p := range parts {
		claims[i] = p.resource.Claim(p.who, p.cost)
		all[i] = claims[i]
	}
	if err := w.post.AcquireAll(ctx, all...); err != nil {
		return nil, err
	}
	leases := make([]*runtime.Lease[tokens], len(parts))
	for i, c := range claims {
		leases[i] = c.Lease()
	}
	return leases, nil
}

// close settles a lease for something else, or releases it, or leaves it as it is.
func (w *worker) close(t *testing.T, p part, lease *runtime.Lease[tokens]) {
	t.Helper()
	change, actual := map[item.Key][]int64{}, make(tokens, p.limits)
	switch w.rng.IntN(4) {
	case 0:
	case 1:
		if w.upward {
			return
		}
		p.adds(change, minus(actual, p.cost))
		d := w.books.open("release", change)
		lease.Release(d.within(t.Context()))
	default:
		for i := range actual {
			actual[i] = 1 + w.rng.Int64N(6)
			if w.upward {
				actual[i] += p.cost[i]
			}
		}
		p.adds(change, minus(actual, p.cost))
		d := w.books.open("settle", change)
		d.failed = lease.Settle(d.within(t.Context()), actual)
	}
}

func minus(a, b tokens) tokens {
	d := make(tokens, len(a))
	for i := range a {
		d[i] = a[i] - b[i]
	}
	return d
}

// anyFault returns faults of the network and of DynamoDB, in shares of all requests.
func anyFault() map[memdynamo.Fault]float64 {
	return map[memdynamo.Fault]float64{
		memdynamo.LoseRequest: 0.02, memdynamo.LoseReply: 0.03, memdynamo.Duplicate: 0.03,
		memdynamo.InternalError: 0.02, memdynamo.LateInternalError: 0.02, memdynamo.Throttle: 0.03,
	}
}

// steady has requests arrive in the order in which they were sent.
func steady(f *memdynamo.Faults, _ *books) { f.Latency(memdynamo.Constant(2 * time.Millisecond)) }

// straggling has some requests and replies take longer than their clients wait, and transactions meet.
func straggling(f *memdynamo.Faults, books *books) {
	f.Unprocessed(0.02)
	f.HoldTransactions(time.Millisecond)
	f.Latency(func(r func() float64) time.Duration {
		least, most := time.Millisecond, 4*time.Millisecond
		if r() < 0.02 {
			books.befell("late")
			least, most = 300*time.Millisecond, 4*time.Second
		}
		return memdynamo.Uniform(least, most)(r)
	})
}

// colliding is steady with transactions of nobody's here, and buckets that are throttled in the middle of a
// transaction.
func colliding(f *memdynamo.Faults, books *books) {
	steady(f, books)
	f.Conflict(0.05)
	f.Throttle(0.05)
}

// storms are histories of faults, by name (docs/design.md, "Outcomes").
func storms() map[string]storm {
	all := map[string]storm{}
	for name, s := range map[string]storm{
		"single buckets":       {cascade: store.CascadeNone, depth: 1, calls: 1440, rate: 80},
		"atomic chains of 2":   {cascade: store.CascadeAtomic, depth: 2, calls: 720, rate: 60},
		"atomic chains of 3":   {cascade: store.CascadeAtomic, depth: 3, calls: 720, rate: 40},
		"compensated chains":   {cascade: store.CascadeCompensated, depth: 3, calls: 720, rate: 25},
		"claims on two chains": {cascade: store.CascadeAtomic, depth: 2, claims: true, calls: 240, rate: 80},
	} {
		s.faults, s.cancel = anyFault(), 0.1
		s.chance = straggling
		all[name] = s
		s.inOrder, s.chance = true, steady
		all[name+", in order"] = s
		if s.cascade != store.CascadeCompensated { // which gives back what it cannot have as a whole
			s.upward, s.cancel, s.calls = true, 0, s.calls/2
			all[name+", in order, upward"] = s
		}
	}
	for name, cascade := range map[string]store.Cascade{"atomic": store.CascadeAtomic,
		"compensated": store.CascadeCompensated} {
		s := storm{
			cascade: cascade,
			depth:   2,
			inOrder: true,
			calls:   360,
			rate:    60,
			faults:  anyFault(),
			cancel:  0.1,
			chance:  colliding,
		}
		delete(
			s.faults,
			memdynamo.Duplicate,
		) // of whose copies one would be refused and the other not: see the guarantees
		all[name+" chains that meet others, in order"] = s
	}
	return all
}

// TestFaults holds what callers were told against what was written, through every kind of fault.
func TestFaults(t *testing.T) { runStorms(t, nil) }

// TestFaultsLean is TestFaults on the client of package lean.
func TestFaultsLean(t *testing.T) {
	longform.NoRace(t, "TestFaults and the tests of package lean run the same goroutines")
	runStorms(t, func(api wire.API) wire.API {
		client := api.(*dynamodb.Client)
		return lean.New(aws.Config{}, func(o *dynamodb.Options) { *o = client.Options() })
	})
}

// runStorms plays all storms on a client that wrap makes of the engine's, which may be nil for that itself.
func runStorms(t *testing.T, wrap func(wire.API) wire.API) {
	t.Helper()
	for name, s := range storms() {
		t.Run(name, func(t *testing.T) {
			s.wrap = wrap
			s.calls = longform.Count(t, "calls", s.calls, s.calls/6)
			a, fell := s.run(t, 1)
			t.Logf("%v\nfaults %v\nadmitted %d to %d tokens, charged %d; %d calls of unknown outcome",
				a.calls, fell, a.reported/bucket.Milli, a.most/bucket.Milli, a.charged/bucket.Milli, a.open)
			for i, wrong := range a.wrong {
				if i == 5 {
					t.Errorf("and %d more", len(a.wrong)-i)
					break
				}
				t.Error(wrong)
			}
			if s.upward &&
				a.open > 2+s.calls/100 {
				// denials after a try whose reply was lost, the giving back of which was lost too
				t.Errorf("%d calls of unknown outcome where nothing is given back: the sums are to be exact", a.open)
			}
		})
	}
}

// TestFaultsAreSeen shows that the books find what the rules are for.
func TestFaultsAreSeen(t *testing.T) {
	longform.Control(t)
	for name, test := range map[string]struct {
		storm string
		wrap  func(wire.API) wire.API
		want  string
	}{
		"give-backs of unknown outcome sent again": {"single buckets", func(api wire.API) wire.API {
			return &insistent{API: api}
		}, `^settle of \[-.* told <nil>, changed \[-`},
		"transactions sent again as new ones": {"atomic chains of 2, in order", func(api wire.API) wire.API {
			return &amnesiac{API: api}
		}, `^acquire of .* told <nil>, changed \[[1-9]`},
		"charges given back unconditionally": {"single buckets, in order", func(api wire.API) wire.API {
			return &credulous{API: api}
		}, `^acquire of .* changed \[-`},
	} {
		t.Run(name, func(t *testing.T) {
			s := storms()[test.storm]
			s.wrap, s.faults[memdynamo.LoseReply] = test.wrap, 0.15
			want := regexp.MustCompile(test.want)
			var found []string
			for seed := uint64(2); seed < 12 && !slices.ContainsFunc(found, want.MatchString); seed++ {
				a, _ := s.run(t, seed)
				found = append(found, a.wrong...)
			}
			i := slices.IndexFunc(found, want.MatchString)
			if i < 0 {
				t.Fatalf("%d found, and none is %s", len(found), test.want)
			}
			t.Logf("%d found, such as: %s", len(found), found[i])
		})
	}
}

// amnesiac sends every transaction under a new token, and without the guard of its op.
type amnesiac struct{ wire.API }

func (c *amnesiac) TransactWriteItems(
	ctx context.Context,
	in *dynamodb.TransactWriteItemsInput,
	opts ...func(*dynamodb.Options),
) (*dynamodb.TransactWriteItemsOutput, error) {
	another := *in
	another.ClientRequestToken, another.TransactItems = new(wire.NewOp()), slices.Clone(in.TransactItems)
	for i, item := range in.TransactItems {
		if item.Update != nil {
			update := *item.Update
			update.ConditionExpression = new(
				strings.Replace(*update.ConditionExpression, "op <> :op", "attribute_exists(op)", 1),
			)
			another.TransactItems[i].Update = &update
		}
	}
	return c.API.TransactWriteItems(ctx, &another, opts...)
}

// credulous gives back charges of unknown outcome as if they had been applied.
type credulous struct{ wire.API }

func (c *credulous) UpdateItem(
	ctx context.Context,
	in *dynamodb.UpdateItemInput,
	opts ...func(*dynamodb.Options),
) (*dynamodb.UpdateItemOutput, error) {
	if isReversal(in) {
		blind := *in
		blind.ConditionExpression = new("attribute_exists(PK) AND (op <> :undo OR op = :undo OR #ttl = :undone)")
		in = &blind
	}
	return c.API.UpdateItem(ctx, in, opts...)
}

// TestCopyOfARefusedGiveBack: a network of which one copy of a give-back is throttled and another applied
// makes the store send it again. It is recognised as long as nobody else has written; after that it mints
// tokens.
func TestCopyOfARefusedGiveBack(t *testing.T) {
	for name, test := range map[string]struct {
		between int64
		charged int64
	}{"nobody in between": {0, 0}, "somebody in between": {1, 1000 - 10_000}} {
		t.Run(name, func(t *testing.T) {
			e, process, w := wired(t)
			s, other := script{t, e, process}, script{t, e, e.demo(t, e.client)}
			lease := s.acquire(10, 0)
			w.expect(func(w *network, apply func() (*http.Response, error)) (*http.Response, error) {
				drop(apply())
				if test.between > 0 {
					other.acquire(test.between, 0)
				}
				return reject("ThrottlingException", "slow down")(w, apply)
			})
			lease.Release(t.Context())
			e.charged(t, test.charged)
		})
	}
}

// TestLateTransaction: a transaction that its client gave up on arrives after all, while the client, whom
// another one's had refused meanwhile, is about to send it again.
func TestLateTransaction(t *testing.T) {
	_, embeddings := generated(t)
	e := newEngine(t)
	client, w := e.withNetwork()
	h := e.house(t, client, family(embeddings, store.CascadeAtomic, minute(1000), minute(100)))
	h.acquire(t, alicesHome, 1)
	w.expect(delay, func(w *network, apply func() (*http.Response, error)) (*http.Response, error) {
		w.arrive(t)
		return cancel("TransactionConflict", "None")(w, apply)
	})
	_, err := h.at[0].Acquire(t.Context(), alicesHome, tokens{10})
	if err != nil {
		t.Error(err)
	}
	e.holding(t, "user-1 89 11", "project-1 989 11")
}
