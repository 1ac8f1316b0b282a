package prefetch_test

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/sluice-go/sluice/internal/test/simulated"
	"github.com/sluice-go/sluice/internal/test/storetest"
	"github.com/sluice-go/sluice/runtime"
	"github.com/sluice-go/sluice/runtime/bucket"
	"github.com/sluice-go/sluice/runtime/dynamo/lean"
	"github.com/sluice-go/sluice/runtime/memdynamo"
	"github.com/sluice-go/sluice/runtime/store"
)

// life is the prefetch of these tests.
const life = 200 * time.Millisecond

// one is a call's cost.
var one = [2]int64{1, 1}

// requests counts what an engine got from a client.
type requests struct {
	dynamodb.HTTPClient
	mu sync.Mutex
	n  int
}

// Do implements dynamodb.HTTPClient.
func (r *requests) Do(in *http.Request) (*http.Response, error) {
	r.mu.Lock()
	r.n++
	r.mu.Unlock()
	return r.HTTPClient.Do(in)
}

// count returns the number of requests since the last count.
func (r *requests) count() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	n := r.n
	r.n = 0
	return n
}

// counted returns a client of an engine, and the count of its requests.
func counted(engine *memdynamo.Engine) (*lean.Client, *requests) {
	r := &requests{HTTPClient: engine.HTTPClient()}
	return simulated.Client(engine, func(o *dynamodb.Options) { o.HTTPClient = r }), r
}

// warm has p call once each 10 ms for a second, so that it holds blocks, and returns how many it admitted.
func warm(t *testing.T, p *process, entity of) (admitted int) {
	t.Helper()
	for range 100 {
		if _, err := p.Acquire(t.Context(), entity, one); err == nil {
			admitted++
		}
		sleep(10 * time.Millisecond)
	}
	synctest.Wait()
	return admitted
}

// TestHit has calls whose tokens are in the pool: they make no request and take no time.
func TestHit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := newEngine(t)
		client, sent := counted(engine)
		p := open(t, client, prefetching(t, life, alike(1_000, 1_000), alike(1_000, 1_000)))
		defer p.close(t)
		engine.Faults().Latency(memdynamo.Constant(2 * time.Millisecond))
		warm(t, p, userOf("1"))
		sent.count()
		before := time.Now()
		lease, err := p.Acquire(t.Context(), userOf("1"), one)
		if err != nil {
			t.Fatal(err)
		}
		if n, took := sent.count(), time.Since(before); n != 0 || took != 0 {
			t.Errorf("%d requests, %v; want none", n, took)
		}
		if lease.Degraded() || lease.Cost() != one {
			t.Errorf("degraded %v, cost %v", lease.Degraded(), lease.Cost())
		}
		if left := lease.Remaining(); left[0] < 800 || left[0] > 1_000 {
			t.Errorf("remaining %d, want what the bucket has beside the block", left[0])
		}
	})
}

// TestNoPrefetch has a resource without prefetch: each call is a write.
func TestNoPrefetch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := newEngine(t)
		client, sent := counted(engine)
		p := open(t, client, prefetching(t, 0, alike(1_000, 1_000), alike(1_000, 1_000)))
		defer p.close(t)
		if _, err := p.Acquire(t.Context(), hot(), one); err != nil {
			t.Fatal(err)
		}
		sent.count()
		if warm(t, p, hot()); sent.count() != 100 {
			t.Error("100 calls made another number of requests than 100")
		}
	})
}

// TestExactTen has a limit of ten a minute: it admits ten, however many processes ask.
func TestExactTen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := newEngine(t)
		def := prefetching(t, life, storetest.Minute(10), storetest.Minute(10))
		for i := range def.Numbers.Kinds {
			kind := &def.Numbers.Kinds[i]
			kind.Limits = []bucket.Limit{bucket.Per(10, time.Hour), bucket.Per(10, time.Hour)}
			kind.PerCall = []int64{1, 1}
		}
		var got outcomes
		var running sync.WaitGroup
		for range 4 {
			p := open(t, simulated.Client(engine), def)
			defer p.close(t)
			running.Go(func() {
				for range 300 {
					_, err := p.Acquire(t.Context(), hot(), one)
					got.add(err)
					sleep(10 * time.Millisecond)
				}
			})
		}
		running.Wait()
		if got.admitted != 10 || got.denied != 1190 {
			t.Errorf("%d admitted, %d denied, others %v; want 10 and 1190", got.admitted, got.denied, got.others)
		}
	})
}

// TestRegion has a limit of 400 that two regions divide, of which this one keeps a half. Two processes with
// prefetch admit that, and no more.
func TestRegion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := newEngine(t)
		limits := []bucket.Limit{bucket.Per(400, 24*time.Hour), bucket.Per(400, 24*time.Hour)}
		def := prefetching(t, life, limits, limits)
		def.Numbers.Regions = &store.Regions{Names: []string{"eu", "us"}, Floor: 50, Window: time.Minute}
		var got outcomes
		var running sync.WaitGroup
		for range 2 {
			p := open(t, simulated.Client(engine), def)
			defer p.close(t)
			running.Go(func() {
				for range 300 {
					_, err := p.Acquire(t.Context(), hot(), one)
					got.add(err)
					sleep(10 * time.Millisecond)
				}
			})
		}
		running.Wait()
		if got.admitted != 200 || got.denied != 400 {
			t.Errorf("%d admitted, %d denied, others %v; want 200 and 400", got.admitted, got.denied, got.others)
		}
	})
}

// TestClose has a process that holds blocks: once it is closed, the bucket is as without prefetch.
func TestClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := newEngine(t)
		limits := []bucket.Limit{bucket.Per(10_000, time.Hour), bucket.Per(10_000, time.Hour)}
		p := open(t, simulated.Client(engine), prefetching(t, life, limits, limits))
		admitted := int64(warm(t, p, hot()))
		if charged := stored(t, engine, "project-hot", "rpm_tc"); charged <= admitted*1000 {
			t.Errorf("%d charged before the end, want more than the %d admitted", charged, admitted*1000)
		}
		p.close(t)
		for _, limit := range []string{"rpm_tc", "tpm_tc"} {
			if charged := stored(t, engine, "project-hot", limit); charged != admitted*1000 {
				t.Errorf("%s: %d charged, want %d", limit, charged, admitted*1000)
			}
		}
		if lease, err := p.Acquire(t.Context(), hot(), one); err != nil {
			t.Errorf("a late call: %v", err)
		} else {
			lease.Release(t.Context())
		}
	})
}

// TestRestGoesByItself has a process that does not call any more: its tokens are back after two prefetches,
// and the time until it looks.
func TestRestGoesByItself(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := newEngine(t)
		limits := []bucket.Limit{bucket.Per(10_000, time.Hour), bucket.Per(10_000, time.Hour)}
		p := open(t, simulated.Client(engine), prefetching(t, life, limits, limits))
		defer p.close(t)
		admitted := int64(warm(t, p, hot()))
		sleep(2*life + life/2)
		if charged := stored(t, engine, "project-hot", "rpm_tc"); charged != admitted*1000 {
			t.Errorf("%d charged, want %d", charged, admitted*1000)
		}
	})
}

// TestChain has users of a project that is exhausted: tokens that their own buckets gave are theirs again.
func TestChain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := newEngine(t)
		few := []bucket.Limit{bucket.Per(20, time.Hour), bucket.Per(20, time.Hour)}
		p := open(t, simulated.Client(engine), prefetching(t, life, few, alike(1_000, 1_000)))
		admitted := warm(t, p, userOf("1"))
		_, err := p.Acquire(t.Context(), userOf("1"), one)
		denied, ok := errors.AsType[*runtime.DeniedError](err)
		if !ok || denied.Entity != "project-hot" || denied.Limit != "rpm" || denied.Requested != 1 ||
			len(denied.Refusals) != 2 {
			t.Errorf("%v, want a denial by rpm and tpm of project-hot", err)
		}
		p.close(t)
		if admitted != 20 {
			t.Errorf("%d admitted, want 20", admitted)
		}
		for _, entity := range []string{"project-hot", "user-1"} {
			if charged := stored(t, engine, entity, "rpm_tc"); charged != 20_000 {
				t.Errorf("%s: %d charged, want 20,000", entity, charged)
			}
		}
	})
}

// TestPoolAndBucket has a call that neither pool nor bucket covers alone. It gets from both, or is denied
// with the numbers of both.
func TestPoolAndBucket(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := newEngine(t)
		limits := []bucket.Limit{bucket.Per(400, time.Hour), bucket.Per(400, time.Hour)}
		p := open(t, simulated.Client(engine), prefetching(t, life, limits, limits))
		defer p.close(t)
		admitted := int64(warm(t, p, hot()))
		in := stored(t, engine, "project-hot", "rpm_tk") / 1000 // the pool has the others
		if in+admitted >= 400 {
			t.Fatalf("%d are in the bucket, and %d admitted: the pool is empty", in, admitted)
		}
		found, err := p.Peek(t.Context(), hot())
		if err != nil {
			t.Fatal(err)
		}
		b := found.Buckets[0]
		if b.Available[0] != in || b.Prefetched[0] == 0 || b.Prefetched[0] > 400-admitted-in {
			t.Errorf("%d available, %d prefetched; want %d, and at most %d", b.Available[0], b.Prefetched[0], in,
				400-admitted-in)
		}
		_, err = p.Acquire(t.Context(), hot(), [2]int64{400, 1})
		denied, ok := errors.AsType[*runtime.DeniedError](err)
		if !ok || denied.Requested != 400 || denied.Available < in || denied.Available > 400-admitted {
			t.Errorf("%v, want a denial of 400 with at least %d and at most %d", err, in, 400-admitted)
		}
		lease, err := p.Acquire(t.Context(), hot(), [2]int64{in + 1, 1})
		if err != nil {
			t.Fatalf("one more than is in the bucket: %v", err)
		}
		lease.Release(t.Context())
		if _, err := p.Acquire(t.Context(), hot(), [2]int64{500, 1}); err == nil {
			t.Error("a cost above the burst is admitted")
		} else if _, ok := errors.AsType[*runtime.CostTooLargeError](err); !ok {
			t.Errorf("%v, want a CostTooLargeError", err)
		}
	})
}

// TestSettle has a lease whose tokens are from a block. Each way to end it makes no request while the block
// lives, and the bucket has the actual cost in the end.
func TestSettle(t *testing.T) {
	ctx := context.Background()
	type lease = runtime.Lease[[2]int64]
	for name, c := range map[string]struct {
		end    func(*lease) error
		actual int64
		sent   int
	}{
		"keep":    {func(l *lease) error { l.Keep(ctx); return nil }, 4, 0},
		"release": {func(l *lease) error { l.Release(ctx); return nil }, 0, 0},
		"less":    {func(l *lease) error { return l.Settle(ctx, [2]int64{1, 1}) }, 1, 0},
		"more":    {func(l *lease) error { return l.Settle(ctx, [2]int64{6, 6}) }, 6, 0},
		"debt":    {func(l *lease) error { return l.Settle(ctx, [2]int64{5_000, 5_000}) }, 5_000, 1},
		"another more": {func(l *lease) error {
			if err := l.More(ctx, [2]int64{2, 2}); err != nil {
				return err
			}
			return l.Settle(ctx, [2]int64{1, 1})
		}, 1, 0},
		"a More beyond the pool": {func(l *lease) error {
			if err := l.More(ctx, [2]int64{300, 300}); err != nil {
				return err
			}
			return l.Settle(ctx, [2]int64{100, 100}) // the More is from pool and table
		}, 100, 3},
		"a More beyond the pool, all back": {func(l *lease) error {
			if err := l.More(ctx, [2]int64{300, 300}); err != nil {
				return err
			}
			if err := l.More(ctx, [2]int64{3, 0}); err != nil {
				return err
			}
			l.Release(ctx)
			return nil
		}, 0, 4},
		"after the block's end": {func(l *lease) error {
			sleep(time.Second)
			return l.Settle(ctx, [2]int64{1, 1})
		}, 1, 3},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				engine := newEngine(t)
				client, sent := counted(engine)
				limits := []bucket.Limit{bucket.Per(10_000, time.Hour), bucket.Per(10_000, time.Hour)}
				p := open(t, client, prefetching(t, life, limits, limits))
				admitted := int64(warm(t, p, hot()))
				l, err := p.Acquire(t.Context(), hot(), [2]int64{4, 4})
				if err != nil {
					t.Fatal(err)
				}
				synctest.Wait() // for a block that is under way
				sent.count()
				if err := c.end(l); err != nil {
					t.Error(err)
				}
				if n := sent.count(); n > c.sent {
					t.Errorf("%d requests, want at most %d", n, c.sent)
				}
				p.close(t)
				if charged := stored(t, engine, "project-hot", "rpm_tc"); charged != (admitted+c.actual)*1000 {
					t.Errorf("%d charged, want %d", charged, (admitted+c.actual)*1000)
				}
			})
		})
	}
}

// TestLowered has an override that lowers the limit while blocks are out. They end with the first reply that
// shows it, although their time is not over.
func TestLowered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := newEngine(t)
		def := prefetching(t, 5*time.Second, alike(1_000, 1_000), alike(1, 1))
		p := open(t, simulated.Client(engine), def)
		defer p.close(t)
		warm(t, p, hot())
		other := open(t, simulated.Client(engine), def)
		defer other.close(t)
		lower := &runtime.Rate{Capacity: 1, Every: time.Second}
		if _, err := other.config.Entity(hot()).Set(t.Context(), []*runtime.Rate{lower, lower}, ""); err != nil {
			t.Fatal(err)
		}
		if _, err := other.Acquire(t.Context(), hot(), one); err != nil { // it reshapes the bucket
			t.Fatal(err)
		}
		sleep(time.Second) // else p's image is young enough for Peek
		if _, err := p.Peek(t.Context(), hot()); err != nil {
			t.Fatal(err)
		}
		admitted := 0
		for range 100 {
			if _, err := p.Acquire(t.Context(), hot(), one); err == nil {
				admitted++
			}
		}
		if admitted > 2 {
			t.Errorf("%d admitted at once of a limit of 1 a second", admitted)
		}
	})
}

// TestUnknownOutcomes loses replies of an exhausted limit: blocks whose replies are lost are not admitted
// from, so no more is admitted than the limit has.
func TestUnknownOutcomes(t *testing.T) {
	for seed := range uint64(3) {
		synctest.Test(t, func(t *testing.T) {
			const limit = 300
			engine := newEngine(t, memdynamo.WithSeed(seed))
			limits := []bucket.Limit{bucket.Per(limit, 24*time.Hour), bucket.Per(limit, 24*time.Hour)}
			def := prefetching(t, life, limits, limits)
			engine.Faults().Latency(memdynamo.Constant(2 * time.Millisecond))
			var got outcomes
			var calls sync.WaitGroup
			for range 2 {
				p := open(t, simulated.Client(engine), def)
				defer p.close(t)
				engine.Faults().LoseReplies(0.3)
				calls.Go(func() {
					for range 600 {
						calls.Go(func() {
							_, err := p.Acquire(t.Context(), hot(), one)
							got.add(err)
						})
						sleep(10 * time.Millisecond)
					}
				})
			}
			calls.Wait()
			engine.Faults().LoseReplies(0)
			t.Logf("%d admitted, %d denied, %d others", got.admitted, got.denied, len(got.others))
			if got.admitted > limit || got.admitted < limit/2 || got.denied == 0 {
				t.Errorf("%d admitted of %d, and %d denied", got.admitted, limit, got.denied)
			}
			if charged := stored(t, engine, "project-hot", "rpm_tc"); charged < int64(got.admitted)*1000 {
				t.Errorf("%d charged, less than the %d admitted", charged, got.admitted*1000)
			}
		})
	}
}

// TestHitIsNoAnswer has a store that is down. Calls that pools admit say nothing about it: the breaker opens
// after five failures of others.
func TestHitIsNoAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := newEngine(t)
		p := open(t, simulated.Client(engine), prefetching(t, 5*time.Second, alike(1_000, 10_000), alike(1, 1)))
		defer p.close(t)
		warm(t, p, hot())
		engine.Faults().Down(true)
		defer engine.Faults().Down(false)
		var err error
		for i := range 6 {
			if _, hit := p.Acquire(t.Context(), hot(), one); hit != nil && i < 5 {
				t.Fatalf("call %d has its tokens in the pool: %v", i, hit)
			}
			other := of{{Kind: project, ID: "other"}}
			_, err = p.Acquire(t.Context(), other, one, runtime.Budget(150*time.Millisecond))
			if errors.Is(err, runtime.ErrBreakerOpen) != (i == 5) {
				t.Errorf("call %d: %v, want the breaker to open after five failures", i, err)
			}
		}
	})
}
