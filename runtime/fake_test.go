package runtime_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sluice-go/sluice/internal/test/errtext"
	"github.com/sluice-go/sluice/runtime"
	"github.com/sluice-go/sluice/runtime/bucket"
	"github.com/sluice-go/sluice/runtime/internal/seal"
	"github.com/sluice-go/sluice/runtime/store"
)

// These definitions stand for generated code: a resource gpt-4 with two limits, and two kinds of entities
// with buckets.

type entity interface {
	store.Entity
	gpt4()
}

type user struct{ ID string }

func (u user) Chain(dst []store.Link) []store.Link {
	return append(dst, store.Link{Kind: 0, ID: u.ID})
}
func (user) gpt4() {}

type project struct{ ID string }

func (p project) Chain(dst []store.Link) []store.Link {
	return append(dst, store.Link{Kind: 1, ID: p.ID})
}
func (project) gpt4() {}

type cost struct{ RPM, TPM int64 }

func toVector(c cost, dst []int64) []int64 { return append(dst, c.RPM, c.TPM) }
func fromVector(v []int64) cost            { return cost{v[0], v[1]} }

// definition is that of a resource. As a generated one, it makes another Spec for each call.
type definition struct{ spec *store.Spec }

func (d definition) Spec() *store.Spec {
	spec := *d.spec
	return &spec
}

// gpt4 gives users 60 requests a minute (1 each second, 1 per call) and 6000 tokens a minute (100 each
// second), with a burst of 6000. Projects have twice the requests, and no per_call.
func gpt4() definition {
	return definition{&store.Spec{
		Resource: "gpt-4", Revision: 1, Limits: []string{"rpm", "tpm"},
		Kinds: []store.Kind{
			{Name: "user", Prefix: "user-", Parent: 1, PerCall: []int64{1, 0},
				Limits: []bucket.Limit{bucket.Per(60, time.Minute), bucket.Per(6000, time.Minute)}},
			{Name: "project", Prefix: "project-", Parent: store.NoParent, PerCall: []int64{0, 0},
				Limits: []bucket.Limit{bucket.Per(120, time.Minute), bucket.Per(6000, time.Minute)}},
		},
	}}
}

// fake is a Store in memory, and its Session.
type fake struct {
	store.Session // what a test does not expect to be called

	// before, if set, runs ahead of each call (acquire, settle, peek); an error of its is the call's.
	before func(ctx context.Context, op string, call *store.Call) error
	broken error // what Open, Check and Close return

	mu      sync.Mutex
	env     *store.Env
	defs    []store.Definition
	buckets map[string]*bucket.Image
	calls   []string // op and entities of all calls so far
	wrong   []string // balances that do not add up to what leases hold

	look      func(ctx context.Context, entity string) error // as before, ahead of Member
	known     map[string]store.Member
	limits    map[string][]bucket.Limit // in force, as Peek shows them
	members   store.MemberStore
	overrides store.OverrideStore
	catalog   store.Catalog
	plans     map[string]store.OnPlan // by entity, of the buckets that were asked for
}

func (*fake) Sealed(seal.Sealed)            {}
func (f *fake) Check(context.Context) error { return f.broken }
func (f *fake) Close(context.Context) error { return f.broken }

func (f *fake) Open(env *store.Env, defs ...store.Definition) (store.Session, error) {
	f.env, f.defs, f.buckets = env, defs, map[string]*bucket.Image{}
	return f, f.broken
}

// begin notes the call and runs the hook.
func (f *fake) begin(ctx context.Context, op string, call *store.Call) error {
	f.mu.Lock()
	var of []string
	for _, part := range call.Parts {
		for _, b := range part.Buckets {
			of = append(of, place(part.Def.Spec(), &b))
		}
	}
	f.calls = append(f.calls, op+" "+strings.Join(of, ","))
	before := f.before
	f.mu.Unlock()
	if before != nil {
		return before(ctx, op, call)
	}
	return nil
}

// hook sets before while calls may be under way.
func (f *fake) hook(before func(ctx context.Context, op string, call *store.Call) error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.before = before
}

func (f *fake) now() int64 { return f.env.Clock.Now().UnixMilli() }

// place is where the bucket of entity is in f.buckets.
func place(spec *store.Spec, b *store.Bucket) string {
	if resource := spec.ResourceOf(b.Kind); resource != "gpt-4" {
		return resource + " " + b.Entity
	}
	return b.Entity
}

// image returns b's image, a full one if it has none. The caller holds f.mu.
func (f *fake) image(part *store.Part, b *store.Bucket) *bucket.Image {
	if img := f.buckets[place(part.Def.Spec(), b)]; img != nil {
		return img
	}
	limits := part.Def.Spec().Kinds[b.Kind].Limits
	return &bucket.Image{Refilled: f.now(), Balances: bucket.Full(limits), Missing: make([]bool, len(limits))}
}

// take writes an image, refilled to now and less cost. Of a limit with holds, what an acquire takes is held,
// and end is what a settle or an extension does: nil for an acquire.
func (f *fake) take(spec *store.Spec, of []*store.Bucket, img *bucket.Image, cost []int64, end *ended) {
	now := f.now()
	after := &bucket.Image{Refilled: max(now, img.Refilled), Balances: slices.Clone(img.Balances),
		Missing: img.Missing}
	var epochs []int64
	for i, balance := range img.Balances {
		if spec.Held == nil || !spec.Held[i] {
			after.Balances[i].Tokens = bucket.Available(balance, img.Refilled, now) - cost[i]
			continue
		}
		var until int64
		if after.Balances[i], until = f.hold(balance, i, cost[i], end, now); epochs == nil {
			epochs = make([]int64, len(cost))
		}
		epochs[i] = until
	}
	f.buckets[place(spec, of[0])] = after
	for _, b := range of {
		if b.After = after; end == nil {
			b.Epochs = epochs
		}
	}
}

// ended is what a settle or an extension does to holds (bucket.EndOf, bucket.Extend). Either may be nil.
type ended struct {
	lapsed []int64
	moves  []bucket.Moves
}

// hold is take for the i-th limit, which counts holds. It returns the epoch of what it takes.
func (f *fake) hold(b bucket.Balance, i int, cost int64, end *ended, now int64) (bucket.Balance, int64) {
	take, change, moves := cost, -cost, bucket.NoMoves
	if end != nil {
		take = 0
		if end.lapsed != nil {
			change -= end.lapsed[i]
		}
		if end.moves != nil {
			moves = end.moves[i]
		}
	}
	h := bucket.NewHold(take, 0, now)
	if b.Holds() {
		var ok bool
		if h, ok = b.Hold(take, moves, now); !ok || take > b.Tokens {
			var back int64
			h, back = b.Sweep(take, moves, false, now)
			change += back
		}
	}
	b = b.Apply(h)
	b.Tokens += change
	if least := min(b.Tokens, b.Cells[0], b.Cells[1]); least < 0 ||
		b.InFlight() && b.Tokens+b.Cells[0]+b.Cells[1] != b.Burst {
		f.wrong = append(f.wrong, fmt.Sprintf("%v with cells %v", b, b.Cells))
	}
	return b, h.Until
}

// demand is what a call asks of one bucket, its parts together.
type demand struct {
	spec *store.Spec
	of   []*store.Bucket // each place where the call has it
	img  *bucket.Image
	cost []int64
}

// demands returns call's buckets, each once. The caller holds f.mu.
func (f *fake) demands(call *store.Call) []*demand {
	var all []*demand
	for i := range call.Parts {
		part := &call.Parts[i]
		for j := range part.Buckets {
			b := &part.Buckets[j]
			at := slices.IndexFunc(all, func(s *demand) bool {
				return place(s.spec, s.of[0]) == place(part.Def.Spec(), b)
			})
			if at < 0 {
				at = len(all)
				all = append(all, &demand{spec: part.Def.Spec(), img: f.image(part, b),
					cost: make([]int64, len(part.Cost))})
			}
			all[at].of = append(all[at].of, b)
			for k, c := range part.Def.Spec().CostOf(b.Kind, part.Cost) {
				all[at].cost[k] += c
			}
		}
	}
	return all
}

func (*fake) Refused(store.Definition, []store.Link, []int64, int64) *runtime.DeniedError {
	return nil
}

// onAnswer is the key of a context's value: a func() that Acquire calls once it has its answer.
type onAnswer struct{}

func (f *fake) Acquire(ctx context.Context, call *store.Call) error {
	if answered, ok := ctx.Value(onAnswer{}).(func()); ok {
		defer answered()
	}
	ctx, cancel := context.WithDeadline(ctx, call.Deadline)
	defer cancel()
	if err := f.begin(ctx, "acquire", call); err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	all := f.demands(call)
	var denied *runtime.DeniedError
	for _, s := range all {
		if err := store.Exceeds(s.spec, s.of[0].Entity, s.img, s.cost, f.now()); err != nil {
			return err
		}
		denied = store.Refuse(denied, s.spec, s.of[0].Entity, s.img, s.cost, f.now())
	}
	f.plans = map[string]store.OnPlan{}
	for _, s := range all {
		for _, b := range s.of {
			b.After = s.img
			f.plans[b.Entity] = b.Plan
		}
	}
	if denied != nil {
		return denied
	}
	for _, s := range all {
		f.take(s.spec, s.of, s.img, s.cost, nil)
	}
	return nil
}

func (f *fake) Settle(ctx context.Context, call *store.Call) error {
	if err := f.begin(ctx, "settle", call); err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	part := &call.Parts[0]
	difference := slices.Clone(part.Actual)
	for i := range difference {
		difference[i] -= part.Cost[i]
	}
	for _, s := range f.demands(call) {
		var end ended
		end.lapsed, end.moves = bucket.EndOf(s.img, difference, s.of[0].Charges, f.now())
		f.take(s.spec, s.of, s.img, difference, &end)
	}
	return nil
}

func (f *fake) Extend(ctx context.Context, call *store.Call) error {
	if err := f.begin(ctx, "extend", call); err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	part := &call.Parts[0]
	b := &part.Buckets[0]
	img := f.buckets[place(part.Def.Spec(), b)]
	var end ended
	if end.moves, b.Epochs = bucket.Extend(img, b.Charges[0], f.now()); img != nil {
		f.take(part.Def.Spec(), []*store.Bucket{b}, img, make([]int64, len(img.Balances)), &end)
	}
	return nil
}

func (*fake) Now(reading time.Time) int64 { return reading.UnixMilli() }

func (f *fake) Peek(ctx context.Context, call *store.Call) error {
	if err := f.begin(ctx, "peek", call); err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	part := &call.Parts[0]
	for i := range part.Buckets {
		b := &part.Buckets[i]
		b.After, b.Limits = f.buckets[place(part.Def.Spec(), b)], f.limits[b.Entity]
	}
	return nil
}

// Lookup remembers nothing.
func (f *fake) Lookup(*store.Call) {}

// Member answers from f.known.
func (f *fake) Member(ctx context.Context, entity string) (store.Member, bool, error) {
	f.mu.Lock()
	f.calls = append(f.calls, "member "+entity)
	look := f.look
	f.mu.Unlock()
	if look != nil {
		if err := look(ctx, entity); err != nil {
			return store.Member{}, false, err
		}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	m, ok := f.known[entity]
	return m, ok, nil
}

func (f *fake) Catalog() store.Catalog         { return f.catalog }
func (f *fake) Members() store.MemberStore     { return f.members }
func (f *fake) Overrides() store.OverrideStore { return f.overrides }

// put sets user 1's bucket: whole tokens as of ago before now.
func (f *fake) put(ago time.Duration, rpm, tpm int64) { f.putOf("user-1", ago, rpm, tpm) }

// putOf is put for another entity.
func (f *fake) putOf(entity string, ago time.Duration, rpm, tpm int64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	balances := bucket.Full(gpt4().spec.Kinds[0].Limits)
	balances[0].Tokens, balances[1].Tokens = rpm*bucket.Milli, tpm*bucket.Milli
	f.buckets[entity] = &bucket.Image{Refilled: f.now() - ago.Milliseconds(), Balances: balances,
		Missing: make([]bool, 2)}
}

// level returns what the bucket is worth now, in whole tokens, a full bucket where there is none.
func (f *fake) level(entity string) cost {
	f.mu.Lock()
	defer f.mu.Unlock()
	img := f.buckets[entity]
	if img == nil {
		return cost{60, 6000}
	}
	var v []int64
	for _, b := range img.Balances {
		v = append(v, bucket.Available(b, img.Refilled, f.now())/bucket.Milli)
	}
	return fromVector(v)
}

// count returns how many calls there were, those ahead of the first included.
func (f *fake) count() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.calls)
}

// of returns how many calls of op there were.
func (f *fake) of(op string) (n int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, call := range f.calls {
		if strings.HasPrefix(call, op+" ") {
			n++
		}
	}
	return n
}

type resource = runtime.Resource[entity, cost]

// open returns a Limiter on store, and its resource.
func open(t testing.TB, store *fake, opts ...runtime.Option) (*runtime.Limiter, *resource) {
	t.Helper()
	return openAs(t, store, gpt4(), opts...)
}

// openAs is open for another resource.
func openAs(t testing.TB, store *fake, def definition, opts ...runtime.Option) (*runtime.Limiter, *resource) {
	t.Helper()
	b := runtime.NewBuilder(store, opts...)
	r := runtime.Bind[entity](b, def, toVector, fromVector)
	lim, err := b.Limiter()
	if err != nil {
		t.Fatal(err)
	}
	return lim, r
}

// acquire fails the test if it is not admitted.
func acquire(t testing.TB, r *resource, e entity, c cost) *runtime.Lease[cost] {
	t.Helper()
	lease, err := r.Acquire(t.Context(), e, c)
	if err != nil {
		t.Fatal(err)
	}
	return lease
}

// check reports an error whose description, as errtext has it, is not want. "" is no error.
func check(t testing.TB, err error, want string) {
	t.Helper()
	equal(t, "error", errtext.Of(err), want)
}

// checkReason reports an error whose description, with the reason of an InvalidError, is not want. A want
// that ends before the reason is enough if the field and its value say what is wrong. Each reason is under
// test in at most three tests.
func checkReason(t testing.TB, err error, want string) {
	t.Helper()
	if errtext.Of(err) != want {
		equal(t, "error", errtext.Reason(err), want)
	}
}

// equal reports a difference.
func equal[T comparable](t testing.TB, what string, got, want T) {
	t.Helper()
	if got != want {
		t.Errorf("%s: %v, want %v", what, got, want)
	}
}

// elapse lets virtual time pass: callers are in a bubble of testing/synctest.
func elapse(d time.Duration) {
	<-time.After(d) // on the bubble's clock
}

// ahead is a clock that differs from the system's.
type ahead time.Duration

func (a ahead) Now() time.Time                         { return time.Now().Add(time.Duration(a)) }
func (a ahead) After(d time.Duration) <-chan time.Time { return time.After(d) }
