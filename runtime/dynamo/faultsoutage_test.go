package dynamo

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/sluice-go/sluice/internal/test/longform"
	"github.com/sluice-go/sluice/runtime"
	"github.com/sluice-go/sluice/runtime/bucket"
	"github.com/sluice-go/sluice/runtime/dynamo/internal/known"
	"github.com/sluice-go/sluice/runtime/dynamo/internal/wire"
	"github.com/sluice-go/sluice/runtime/memdynamo"
	"github.com/sluice-go/sluice/runtime/store"
)

// counter is a network that counts what is sent, whether it arrives or not.
type counter struct {
	aws.HTTPClient
	sent atomic.Int64
}

func (c *counter) Do(r *http.Request) (*http.Response, error) {
	c.sent.Add(1)
	return c.HTTPClient.Do(r)
}

// counted returns a client, with the SDK's own retries, and what counts its requests.
func (b *bubble) counted() (*dynamodb.Client, *counter) {
	c := &counter{HTTPClient: b.HTTPClient()}
	return b.Client(func(o *dynamodb.Options) { o.HTTPClient = c }), c
}

// generous is a store that retries as often as an acquire has attempts, however many fail.
type generous struct{ *Store }

func (g generous) Open(env *store.Env, defs ...store.Definition) (store.Session, error) {
	opened, err := g.Store.Open(env, defs...)
	if s, ok := opened.(*session); ok {
		s.conn.Budget = wire.NewBudget(1 << 30)
	}
	return opened, err
}

// outage is a process that knows buckets with room for all, as every call's requests are counted. Callers are
// each at a bucket of their own: those of one would share its requests, of which the retry budget and the
// breaker are not to spare any.
type outage struct {
	*bubble
	*post
	wire *counter
}

func newOutage(t *testing.T, b *bubble, backend func(wire.API) store.Store, callers int) *outage {
	t.Helper()
	client, wire := b.counted()
	def := lineage(second(generated(t)), store.CascadeNone, minute(1_000_000))
	o := &outage{b, newPost(t, backend(client), nil, def), wire}
	if failed, _ := o.calls(t, callers); len(failed) > 0 {
		t.Fatal(failed[0])
	}
	return o
}

// calls has n callers acquire at once, each of its own bucket, and returns their errors and how many requests
// they sent.
func (o *outage) calls(t *testing.T, n int) (failed []error, sent int64) {
	t.Helper()
	o.wire.sent.Store(0)
	errs := make([]error, n)
	var running sync.WaitGroup
	for i := range n {
		running.Go(func() { _, errs[i] = o.at[0].Acquire(t.Context(), kin{fmt.Sprint(i)}, tokens{1}) })
	}
	running.Wait()
	for _, err := range errs {
		if err != nil {
			failed = append(failed, err)
		}
	}
	return failed, o.wire.sent.Load()
}

// wellAgain holds calls to one request each, one after the other.
func (o *outage) wellAgain(t *testing.T) {
	t.Helper()
	for range 20 {
		if failed, sent := o.calls(t, 1); len(failed) > 0 || sent != 1 {
			t.Errorf("a call afterwards: %v, with %d requests", failed, sent)
		}
	}
}

// retriesAtOnce is how many retries a process has saved up.
const retriesAtOnce = wire.BudgetTokens / wire.RetryCost

// TestOutageIsNotMultiplied: while DynamoDB is down, callers send one request each and a hundred retries
// together; once it is seen to be down, four a second probe it. When it is back, each needs one.
func TestOutageIsNotMultiplied(t *testing.T) {
	const callers = 400
	inBubble(t, 1, func(t *testing.T, b *bubble) {
		t.Helper()
		o := newOutage(t, b, func(api wire.API) store.Store { return New(api, "faults") }, callers)
		b.Faults().Down(true)
		failed, sent := o.calls(t, callers)
		t.Logf("down: %d callers sent %d requests", callers, sent)
		if len(failed) != callers || sent > callers+retriesAtOnce {
			t.Errorf("%d of %d calls failed, having sent %d requests; want all, and at most %d",
				len(failed), callers, sent, callers+retriesAtOnce)
		}
		for _, err := range failed {
			if !isA[*store.UnavailableError](err) {
				t.Fatal(err)
			}
		}
		for range 10 { // the breaker lets four at a time probe, a second after the last failure
			<-time.After(time.Second)
			if failed, sent := o.calls(t, callers); len(failed) != callers || sent > 4 {
				t.Errorf("later, %d of %d calls failed, having sent %d requests; want all, and at most four",
					len(failed), callers, sent)
			}
		}
		b.Faults().Down(false)
		<-time.After(time.Second)
		o.wellAgain(t)
	})
}

// TestOutageIsMultipliedWithout shows that the check above sees what the retry budget is for.
func TestOutageIsMultipliedWithout(t *testing.T) {
	longform.NoRace(t, "a control, whose broken variant ships nowhere")
	const callers = 400
	inBubble(t, 1, func(t *testing.T, b *bubble) {
		t.Helper()
		o := newOutage(t, b, func(api wire.API) store.Store { return generous{New(api, "faults")} }, callers)
		b.Faults().Down(true)
		if _, sent := o.calls(t, callers); sent != callers*DefaultAttempts {
			t.Errorf("%d requests of %d calls, want %d: each attempt", sent, callers, callers*DefaultAttempts)
		}
	})
}

// TestThrottlingIsNotMultiplied is the same where DynamoDB answers, which keeps the breaker out of it: for as
// long as it lasts there are no more retries than were saved up.
func TestThrottlingIsNotMultiplied(t *testing.T) {
	inBubble(t, 1, func(t *testing.T, b *bubble) {
		t.Helper()
		o := newOutage(t, b, func(api wire.API) store.Store { return New(api, "faults") }, 25)
		b.Faults().Throttle(1)
		var calls, sum int64
		for range 40 {
			failed, sent := o.calls(t, 25)
			for _, err := range failed {
				if down, ok := errors.AsType[*store.UnavailableError](err); !ok || !down.Throttled {
					t.Fatal(err)
				}
			}
			calls, sum = calls+int64(len(failed)), sum+sent
			<-time.After(250 * time.Millisecond)
		}
		t.Logf("throttled: %d calls sent %d requests", calls, sum)
		if calls != 1000 || sum > calls+retriesAtOnce {
			t.Errorf(
				"%d calls failed, having sent %d requests; want 1000, and at most %d",
				calls,
				sum,
				calls+retriesAtOnce,
			)
		}
		b.Faults().Clear()
		o.wellAgain(t)
	})
}

// TestDenialsEarnRetries: a process whose calls are all denied writes nothing. Its reads are answers too, so
// that the retries that an outage has used up come back.
func TestDenialsEarnRetries(t *testing.T) {
	e := newEngine(t)
	def := withNumbers(second(generated(t)), 1, *per(10)) // which regains less than one while this lasts
	opened, err := New(
		e.client,
		e.table,
	).Open(&store.Env{Clock: &e.clock, Observer: &store.Observer{}, CacheTTL: e.ttl,
		Answered: func() {}}, def)
	if err != nil {
		t.Fatal(err)
	}
	acquire := func(cost int64) error {
		return opened.Acquire(t.Context(), &store.Call{Called: e.clock.Now(), Parts: []store.Part{{
			Def: def, Cost: []int64{cost * bucket.Milli}, Buckets: []store.Bucket{{Entity: "user-1"}},
		}}})
	}
	if err := acquire(10); err != nil {
		t.Fatal(err)
	}
	retries := opened.(*session).conn.Budget
	for retries.Take(t.Context()) { // as an outage does
	}
	for i := range int64(wire.RetryCost) {
		e.clock.set((i + 1) * (known.TrustedFor + 1)) // by then memory may not deny
		if err := acquire(1); !isA[*store.DeniedError](err) {
			t.Fatal(err)
		}
	}
	if !retries.Take(t.Context()) {
		t.Errorf("no retry after %d reads that were answered", wire.RetryCost)
	}
}

// TestBlackHole: a request that nobody answers, as of a host that has gone, leaves its call time for another.
// When it arrives after all, it is refused.
func TestBlackHole(t *testing.T) {
	for name, test := range map[string]struct {
		depth     int
		operation string
		cold      bool
	}{
		"a write":         {1, "UpdateItem", false},
		"a creation":      {1, "PutItem", true},
		"a read":          {1, "BatchGetItem", true},
		"a transaction":   {2, "TransactWriteItems", false},
		"its first reads": {2, "BatchGetItem", true},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, 1, func(t *testing.T, b *bubble) {
				t.Helper()
				limits := [][]bucket.Limit{minute(1000), minute(1000)}
				def := lineage(second(generated(t)), store.CascadeAtomic, limits[:test.depth]...)
				who := kin{"1", "2"}[:test.depth]
				p := b.post(t, nil, def)
				want := int64(7)
				if !test.cold {
					if _, err := p.at[0].Acquire(t.Context(), who, tokens{1}); err != nil {
						t.Fatal(err)
					}
					want++
				}
				b.Faults().Script(swallowFirst(b.Faults(), test.operation))
				began := time.Now()
				if _, err := p.at[0].Acquire(t.Context(), who, tokens{7}); err != nil {
					t.Fatal(err)
				}
				if took := time.Since(began); took >= store.DefaultBudget || took < store.DefaultBudget/4 {
					t.Errorf(
						"it took %v of its budget of %v: want a first attempt that ends in time",
						took,
						store.DefaultBudget,
					)
				}
				b.Faults().Clear()
				b.charged(t, test.depth, want)
				<-time.After(3 * time.Hour)
				b.charged(t, test.depth, want)
			})
		})
	}
}

// TestBlackHoleOfHastyCallers: callers whose deadlines end before the budget get their own error, but not for
// ever: that nobody answers opens the breaker all the same, and the policy decides.
func TestBlackHoleOfHastyCallers(t *testing.T) {
	for deadline, wait := range map[time.Duration]int{900 * time.Millisecond: 5, 300 * time.Millisecond: 5,
		50 * time.Millisecond: 20} {
		t.Run(deadline.String(), func(t *testing.T) {
			inBubble(t, 1, func(t *testing.T, b *bubble) {
				t.Helper()
				def := lineage(second(generated(t)), store.CascadeNone, minute(1000))
				p := b.post(t, nil, def)
				if _, err := p.at[0].Acquire(t.Context(), kin{"1"}, tokens{1}); err != nil {
					t.Fatal(err)
				}
				b.Faults().Latency(memdynamo.Constant(time.Hour))
				waited := 0 // callers who did, in vain
				for range 20 {
					ctx, cancel := context.WithTimeout(t.Context(), deadline)
					lease, err := p.at[0].Acquire(ctx, kin{"1"}, tokens{1}, runtime.OnUnavailable(store.Allow))
					cancel()
					if errors.Is(err, context.DeadlineExceeded) {
						waited++
					} else if err != nil || !lease.Degraded() {
						t.Errorf("%v, want an admission by the policy", err)
					}
				}
				// Of who gets the store's error at the very instant of its deadline, the context may not know yet.
				if waited != wait && waited != wait-1 {
					t.Errorf("%d callers of 20 waited, want %d", waited, wait)
				}
				b.Faults().Clear()
				<-time.After(3 * time.Hour)
			})
		})
	}
}

// swallowFirst has the first request of an operation from now on arrive in an hour.
func swallowFirst(f *memdynamo.Faults, operation string) func(memdynamo.Request) memdynamo.Fault {
	var swallowed atomic.Bool
	return func(r memdynamo.Request) memdynamo.Fault {
		f.Latency(nil)
		if r.Operation == operation && swallowed.CompareAndSwap(false, true) {
			f.Latency(memdynamo.Constant(time.Hour))
		}
		return memdynamo.None
	}
}

// charged holds every bucket's consumption to want, in tokens, and their number.
func (b *bubble) charged(t *testing.T, buckets int, want int64) {
	t.Helper()
	all := b.consumed(t, map[string][]string{"embeddings": {"rps"}})
	if len(all) != buckets {
		t.Errorf("there are %d buckets, want %d", len(all), buckets)
	}
	for at, tc := range all {
		if tc[0] != want*bucket.Milli {
			t.Errorf("%s was charged %d millitokens, want %d tokens", at.PK, tc[0], want)
		}
	}
}

// TestBlackHoleSwallowsAGiveBack: it is not sent again. When it arrives after all, it is applied if nobody
// has written to the bucket meanwhile, and else refused.
func TestBlackHoleSwallowsAGiveBack(t *testing.T) {
	for between, charged := range map[int64]int64{0: 4, 1: 11} {
		inBubble(t, 1, func(t *testing.T, b *bubble) {
			t.Helper()
			def := lineage(second(generated(t)), store.CascadeNone, minute(1000))
			p := b.post(t, nil, def)
			lease, err := p.at[0].Acquire(t.Context(), kin{"1"}, tokens{10})
			if err != nil {
				t.Fatal(err)
			}
			b.Faults().Script(swallowFirst(b.Faults(), "UpdateItem"))
			if err := lease.Settle(t.Context(), tokens{4}); !isA[*store.UnavailableError](err) {
				t.Errorf("%v, want that the outcome is unknown", err)
			}
			if between > 0 {
				if _, err := p.at[0].Acquire(t.Context(), kin{"1"}, tokens{between}); err != nil {
					t.Fatal(err)
				}
			}
			b.charged(t, 1, 10+between)
			<-time.After(3 * time.Hour)
			b.charged(t, 1, charged)
		})
	}
}

// TestHotPartition: a partition that takes 20 writes a second serves some 250 calls a second of one bucket,
// each within its budget, since a write serves all that wait. Other buckets are served meanwhile.
func TestHotPartition(t *testing.T) {
	const budget = 500 * time.Millisecond
	inBubble(t, 1, func(t *testing.T, b *bubble) {
		t.Helper()
		def := lineage(second(generated(t)), store.CascadeNone, minute(1_000_000))
		p := b.post(
			t,
			[]runtime.Option{runtime.WithCallDefaults(runtime.Budget(budget), runtime.OnUnavailable(store.Deny))},
			def,
		)
		b.Faults().PartitionThroughput(20, 3000)
		b.Faults().Latency(memdynamo.Uniform(time.Millisecond, 3*time.Millisecond))
		var running sync.WaitGroup
		var served, throttled, others atomic.Int64
		call := func(id string) error {
			began := time.Now()
			_, err := p.at[0].Acquire(t.Context(), kin{id}, tokens{1})
			if took := time.Since(began); took > budget {
				t.Errorf("a call for %s took %v, with a budget of %v", id, took, budget)
			}
			return err
		}
		end := time.Now().Add(10 * time.Second)
		for range 20 {
			running.Go(func() {
				for time.Now().Before(end) {
					err := call("hot")
					down, ok := errors.AsType[*store.UnavailableError](err)
					switch {
					case err == nil:
						served.Add(1)
					case ok && down.Throttled:
						throttled.Add(1)
					default:
						t.Error(err)
					}
					<-time.After(50 * time.Millisecond)
				}
			})
		}
		for i := range 10 {
			running.Go(func() {
				for time.Now().Before(end) {
					if err := call(fmt.Sprint(i)); err != nil {
						t.Errorf("another bucket: %v", err)
					}
					others.Add(1)
					<-time.After(100 * time.Millisecond)
				}
			})
		}
		running.Wait()
		t.Logf("hot: %d served, %d throttled; others: %d served", served.Load(), throttled.Load(), others.Load())
		if served.Load() < 2000 || throttled.Load() > 0 {
			t.Errorf("%d calls for the hot bucket were served and %d throttled; want all", served.Load(),
				throttled.Load())
		}
	})
}
