package redisstore

import (
	"context"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/alicebob/miniredis/v2"
	peer "github.com/alicebob/miniredis/v2/server"
	"github.com/redis/go-redis/v9"

	"github.com/sluice-go/sluice/internal/test/redistest"
	"github.com/sluice-go/sluice/runtime/bucket"
	"github.com/sluice-go/sluice/runtime/store"
)

// slots is the number of slots of a cluster.
const slots = 16384

// halves is a cluster of two masters, each of which has half of the slots.
type halves struct {
	*redis.ClusterClient
	low, high *miniredis.Miniredis
}

func newHalves(t *testing.T) *halves {
	t.Helper()
	h := &halves{low: miniredis.RunT(t), high: miniredis.RunT(t)}
	low, high := h.low.Addr(), h.high.Addr() // the client may ask for slots after they have stopped
	h.ClusterClient = redis.NewClusterClient(&redis.ClusterOptions{
		ClusterSlots: func(context.Context) ([]redis.ClusterSlot, error) {
			return []redis.ClusterSlot{
				{Start: 0, End: slots/2 - 1, Nodes: []redis.ClusterNode{{Addr: low}}},
				{Start: slots / 2, End: slots - 1, Nodes: []redis.ClusterNode{{Addr: high}}},
			}, nil
		},
	})
	t.Cleanup(func() { _ = h.Close() })
	return h
}

// A user with a bucket in the low half of the slots, and one in the high half.
var inLow, inHigh = caller{user: "2"}, caller{user: "1"}

// TestCluster: a call goes to the master that has its keys, and a list visits all masters.
func TestCluster(t *testing.T) {
	h := newHalves(t)
	d := (&server{prefix: "sluice:", slowAfter: slowAfter}).process(t, h.ClusterClient, slow())
	for entity, on := range map[caller]*miniredis.Miniredis{inLow: h.low, inHigh: h.high} {
		lease, err := d.Acquire(t.Context(), entity, tokens2{10, 0})
		if err != nil {
			t.Fatal(err)
		}
		if err := lease.Settle(t.Context(), tokens2{5, 0}); err != nil {
			t.Fatal(err)
		}
		d.left(t, entity, tokens2{55, 6000})
		if !on.Exists("sluice:gpt-4:rpm:{user-" + entity.user + "}#user-" + entity.user) {
			t.Errorf("%v is not where its slot is", entity)
		}
	}
	found := 0
	for page, err := range d.store.Buckets(t.Context(), "gpt-4", "") {
		if err != nil {
			t.Fatal(err)
		}
		found += len(page.Buckets)
	}
	if found != 2 {
		t.Errorf("%d buckets listed, want 2", found)
	}
}

// TestPartOfAChain: a bucket that is read without the rest of its chain is the one of this chain.
func TestPartOfAChain(t *testing.T) {
	def := slow()
	d := (&server{prefix: "sluice:", slowAfter: slowAfter}).process(t, newHalves(t).ClusterClient, def)
	if _, err := d.Acquire(t.Context(), caller{"2", "1"}, tokens2{10, 0}); err != nil {
		t.Fatal(err)
	}
	for root, exists := range map[string]bool{"project-1": true, "project-2": false, "": false} {
		part := store.Part{Def: def, Buckets: []store.Bucket{{Entity: "user-2"}}, Root: root}
		if err := d.session.Peek(t.Context(), &store.Call{Parts: []store.Part{part}}); err != nil {
			t.Fatal(err)
		}
		if got := part.Buckets[0].After != nil; got != exists {
			t.Errorf("under %q user-2 has a bucket: %v, want %v", root, got, exists)
		}
	}
}

// TestClusterHung: a master that does not answer delays no calls on another.
func TestClusterHung(t *testing.T) {
	h := newHalves(t)
	d := (&server{prefix: "sluice:", slowAfter: slowAfter}).process(t, h.ClusterClient, slow())
	d.left(t, inLow, tokens2{60, 6000})
	d.left(t, inHigh, tokens2{60, 6000})
	answer, hung := make(chan struct{}), make(chan struct{}, maxPipelines)
	h.low.Server().SetPreHook(func(_ *peer.Peer, cmd string, _ ...string) bool {
		if cmd == "EVALSHA" {
			hung <- struct{}{}
			<-answer
		}
		return false
	})
	var all []*pendingCall
	for range maxPipelines {
		all = append(all, d.ask(t.Context(), inLow, tokens2{1, 0}))
		<-hung // the second is sent once the first counts as slow
	}
	if _, err := d.Acquire(t.Context(), inHigh, tokens2{1, 0}); err != nil {
		t.Error(err)
	}
	close(answer)
	for _, h := range all {
		if err := h.end(); err != nil {
			t.Error(err)
		}
	}
}

// TestTakeover: when a master has stopped, calls go to its successor as soon as one of them has failed.
func TestTakeover(t *testing.T) {
	h := newHalves(t)
	all, asked := h.high.Addr(), make(chan struct{}, 2000)
	var taken atomic.Bool
	slotsOf := h.Options().ClusterSlots
	client := redis.NewClusterClient(&redis.ClusterOptions{
		DialerRetries: 1,
		ClusterSlots: func(ctx context.Context) ([]redis.ClusterSlot, error) {
			if !taken.Load() {
				return slotsOf(ctx)
			}
			asked <- struct{}{}
			return []redis.ClusterSlot{{Start: 0, End: slots - 1, Nodes: []redis.ClusterNode{{Addr: all}}}},
				nil
		},
	})
	t.Cleanup(func() { _ = client.Close() })
	d := (&server{prefix: "sluice:", slowAfter: slowAfter}).process(t, client, slow())
	d.left(t, inLow, tokens2{60, 6000})
	h.low.Close()
	taken.Store(true)
	// the client reloads in the background: the second attempt may succeed, or a later call
	for i := range 1000 {
		_, err := d.Acquire(t.Context(), inLow, tokens2{1, 0})
		if err == nil {
			return
		}
		if !isA[*store.UnavailableError](err) {
			t.Errorf("%v, want that its master is gone", err)
		}
		if i == 0 {
			<-asked
		}
	}
	t.Error("calls still go to the old master")
}

// TestRedirected: a script call redirected to another master runs there once, alone and in a pipeline.
func TestRedirected(t *testing.T) {
	for _, answer := range []string{"MOVED 1 ", "ASK 1 "} {
		t.Run(answer, func(t *testing.T) {
			h := newHalves(t)
			def := slow()
			d := (&server{prefix: "sluice:", slowAfter: slowAfter}).process(t, h.ClusterClient, def)
			entities := []caller{inLow, {user: "3"}, {user: "6"}, {user: "7"}}
			for _, entity := range entities {
				d.left(t, entity, tokens2{60, 6000})
			}
			var redirected atomic.Int64
			h.low.Server().SetPreHook(func(c *peer.Peer, cmd string, _ ...string) bool {
				if cmd != "EVALSHA" && cmd != "EVAL" {
					return false
				}
				redirected.Add(1)
				c.WriteError(answer + h.high.Addr())
				return true
			})
			h.high.Server().SetPreHook(func(c *peer.Peer, cmd string, _ ...string) bool {
				if cmd == "ASKING" { // which miniredis does not know
					c.WriteOK()
				}
				return cmd == "ASKING"
			})
			if _, err := d.Acquire(t.Context(), inLow, tokens2{7, 0}); err != nil {
				t.Error(err)
			}
			alone := redirected.Load()
			opened := d.session.(*session)
			l := newQueue(opened)
			l.pipelines = make([]*pipeline, maxPipelines) // so that requests collect
			var all []*request
			for _, entity := range entities[1:] {
				r := opened.newRequest(t.Context(), &store.Call{Parts: []store.Part{{
					Def: def, Buckets: []store.Bucket{{Entity: "user-" + entity.user}},
					Cost: []int64{7 * bucket.Milli, 0},
				}}}, pathAcquire, func(part *store.Part) []int64 { return part.Cost })
				if err := opened.prepare(r); err != nil {
					t.Fatal(err)
				}
				l.submit(r.encode())
				all = append(all, r)
			}
			l.mu.Lock()
			l.pipelines = nil
			l.dispatch()
			l.mu.Unlock()
			for _, r := range all {
				if _, err := l.await(r); err != nil {
					t.Error(err)
				}
			}
			// the first as text too, since the other master has no script
			if together := redirected.Load() - alone; alone != 2 || together != 3 {
				t.Errorf("%d and %d were redirected, want 2 and 3", alone, together)
			}
			for _, entity := range entities {
				key := "sluice:gpt-4:rpm:{user-" + entity.user + "}#user-" + entity.user
				if h.low.Exists(key) || h.high.HGet(key, "tokens") != "53" {
					t.Errorf("%s has %s tokens, want 53, once", key, h.high.HGet(key, "tokens"))
				}
			}
		})
	}
}

// TestNodeOfCluster: a single-node client of a cluster is a setup error, in Check and in calls, which no
// policy decides.
func TestNodeOfCluster(t *testing.T) {
	client := redis.NewClient(&redis.Options{Addr: redistest.StartCluster(t).Addrs()[0]})
	t.Cleanup(func() { _ = client.Close() })
	d := (&server{prefix: "sluice:", slowAfter: slowAfter}).process(t, client, slow())
	tell := func(err error) {
		t.Helper()
		if !isA[*store.SetupError](err) || !strings.Contains(err.Error(), "redis.NewClusterClient") {
			t.Errorf("%v, want that the client is no cluster's", err)
		}
	}
	tell(d.Check(t.Context()))
	for i := range 20 { // the node has the overrides of some
		_, err := d.Acquire(t.Context(), caller{user: strconv.Itoa(i)}, tokens2{1, 0})
		tell(err)
	}
}
