package redisstore

import (
	"context"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	miniserver "github.com/alicebob/miniredis/v2/server"
	"github.com/google/go-cmp/cmp"
	"github.com/redis/go-redis/v9"

	"github.com/sluice-go/sluice/runtime"
	"github.com/sluice-go/sluice/runtime/bucket"
	"github.com/sluice-go/sluice/runtime/store"
)

// tally counts calls by what Redis knows them as.
type tally struct {
	mu sync.Mutex
	n  map[string]int
}

func (c *tally) add(name string, n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.n == nil {
		c.n = map[string]int{}
	}
	c.n[name] += n
}

// reads counts those that a client sends: one by one, or a callPipeline of them. The scripts of a peek,
// which the server counts too, are part of it.
type reads struct{ *tally }

func (reads) DialHook(next redis.DialHook) redis.DialHook {
	return func(ctx context.Context, network, addr string) (net.Conn,
		error) {
		return next(ctx, network, addr)
	}
}

func (r reads) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, c redis.Cmder) error {
		if name := strings.ToUpper(c.Name()); name == "HGETALL" || name == "HMGET" {
			r.add(name, 1)
		}
		return next(ctx, c)
	}
}

func (r reads) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, all []redis.Cmder) error {
		// of overrides, and of a peek
		if last := all[len(all)-1].Name(); last == "hgetall" || last == "exists" {
			r.add(callPipeline, 1)
			for _, c := range all {
				if c.Name() == "eval" {
					r.add("EVAL", -1)
				}
			}
		}
		return next(ctx, all)
	}
}

// TestObserverSeesEveryCall: the observer sees every call sent to Redis: each script, and reads sent
// together as one. That includes scripts that Redis did not know, keys that are not a bucket, and members.
func TestObserverSeesEveryCall(t *testing.T) {
	sent, reported, served := sentAndReported(t, func(store.StoreEvent) bool { return true })
	if diff := cmp.Diff(sent, reported); diff != "" {
		t.Errorf("- sent, + reported:\n%s", diff)
	}
	for _, name := range []string{"EVALSHA", "EVAL", "HGETALL", "HMGET", callPipeline} {
		if sent[name] == 0 {
			t.Errorf("no %s was sent, and so none held", name)
		}
	}
	if want := 20 + 20 + 2 + 2 + 1; served != want {
		t.Errorf("calls served %d acquires and settles, want %d", served, want)
	}
}

// TestSentAndReportedDiffer is the control: an event that the observer misses makes a difference.
func TestSentAndReportedDiffer(t *testing.T) {
	for _, lost := range []string{"unloaded", "failed", "found"} {
		sent, reported, _ := sentAndReported(t, func(e store.StoreEvent) bool { return e.Outcome != lost })
		if cmp.Equal(sent, reported) {
			t.Errorf("without events that are %s, nothing is missed", lost)
		}
	}
}

// sentAndReported makes the store do every kind of call, and counts them on both sides: of the reported ones,
// what keep says.
func sentAndReported(t *testing.T, keep func(store.StoreEvent) bool) (_, _ map[string]int, served int) {
	t.Helper()
	s := simulated(t)
	sent, reported := &tally{}, &tally{}
	client := s.client(t)
	client.AddHook(reads{sent})
	s.mini.Server().SetPreHook(func(_ *miniserver.Peer, name string, _ ...string) bool {
		if name = strings.ToUpper(name); strings.HasPrefix(name, "EVAL") { // others may be a script's
			sent.add(name, 1)
		}
		return false
	})
	observer := &store.Observer{Store: func(_ context.Context, e store.StoreEvent) {
		if !keep(e) {
			return
		}
		reported.add(e.Call, 1)
		if e.System != "redis" || e.Began.IsZero() {
			t.Errorf("reported %+v", e)
		}
		if e.Outcome == "applied" {
			reported.mu.Lock()
			defer reported.mu.Unlock()
			served += e.Coalesced
		}
	}}
	d := s.process(t, client, gpt4(), runtime.WithObserver(observer),
		runtime.WithCallDefaults(runtime.LazySettle(true)))
	members := d.store.Members()
	if err := members.Put(t.Context(), store.Member{Entity: "user-1", Parent: "project-1",
		Cascade: true}); err != nil {
		t.Fatal(err)
	}
	overrides := d.store.Overrides()
	limit := bucket.Per(100, time.Minute)
	if _, err := overrides.Set(t.Context(), gpt4().Spec(),
		store.Stored{At: "user-2", Limits: []*bucket.Limit{&limit, nil}}); err != nil {
		t.Fatal(err)
	}
	sent.n = nil

	var calls sync.WaitGroup
	for range 20 {
		calls.Go(func() {
			lease, err := d.Acquire(t.Context(), caller{"1", "?"}, tokens2{1, 10})
			if err != nil {
				t.Error(err)
				return
			}
			lease.Release(t.Context())
		})
	}
	calls.Wait()
	for _, entity := range []caller{{"2", "1"}, {"3", ""}} { // a lazy settle could share a call with the denial
		lease, err := d.Acquire(t.Context(), entity, tokens2{2, 10}, runtime.LazySettle(false))
		if err == nil {
			err = lease.Settle(t.Context(), tokens2{1, 20})
		}
		if err != nil {
			t.Error(err)
		}
		if _, err := d.Peek(t.Context(), entity); err != nil {
			t.Error(err)
		}
	}
	if _, err := d.Acquire(t.Context(), caller{"3", ""}, tokens2{60, 1}); !isA[*store.DeniedError](err) {
		t.Error(err)
	}
	if err := s.client(t).ScriptFlush(t.Context()).Err(); err != nil {
		t.Fatal(err)
	}
	if _, err := d.Acquire(t.Context(), caller{"3", ""}, tokens2{1, 1}); err != nil {
		t.Error(err)
	}
	if _, err := d.Acquire(t.Context(), caller{"4", "?"}, tokens2{1, 1}); !isA[*store.InvalidError](err) {
		t.Error(err)
	}
	if err := s.mini.Set(d.store.db.Keys.Bucket("gpt-4", "rpm", "", "user-5"), "no bucket"); err != nil {
		t.Fatal(err)
	}
	if _, err := d.Acquire(t.Context(), caller{"5", ""}, tokens2{1, 1}); !isA[*store.SetupError](err) {
		t.Error(err)
	}
	if err := d.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	return sent.n, reported.n, served
}
