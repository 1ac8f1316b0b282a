package dynamo

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/sluice-go/sluice/internal/test/longform"
	"github.com/sluice-go/sluice/runtime/dynamo/internal/wire"
	"github.com/sluice-go/sluice/runtime/store"
)

// callers call a process over a simulated table. Each call has a second.
type callers struct {
	*process
	def store.Definition

	served, unsent, failed atomic.Int64
	running                sync.WaitGroup
}

// onSimulated runs f with callers of a process whose writes take 20 ms, or go to api if it is not nil.
func onSimulated(t *testing.T, api func(wire.API) wire.API, opt Option, f func(*callers)) {
	t.Helper()
	skipOnLocal(t)
	_, embeddings := generated(t)
	def := withNumbers(embeddings, 1, perSecond(1_000_000))
	synctest.Test(t, func(t *testing.T) {
		table := newSimTable(1, embeddings.Decode)
		table.minDelay, table.maxDelay, table.quiet = 10*time.Millisecond, 10*time.Millisecond+1, true
		p := newProcess(t, api(table), 1, 0, option(opt), def)
		c := &callers{process: p, def: def}
		f(c)
		c.running.Wait()
		if err := p.session.Close(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

// call charges a bucket once, within a second, and counts how that ended.
func (c *callers) call(entity string) error { return c.callWithin(entity, time.Second) }

// callWithin is call with so much time.
func (c *callers) callWithin(entity string, d time.Duration) error {
	err := c.session.Acquire(context.Background(), &store.Call{
		Called: c.clock.Now(), Deadline: time.Now().Add(d),
		Parts: []store.Part{{Def: c.def, Buckets: []store.Bucket{{Entity: entity}}, Cost: []int64{1000}}},
	})
	switch {
	case err == nil:
		c.served.Add(1)
	case errors.Is(err, store.ErrNotSent):
		c.unsent.Add(1)
	default:
		c.failed.Add(1)
	}
	return err
}

// loop starts callers of a bucket each, who call again as soon as they have an answer, until stop.
func (c *callers) loop(name string, n int, stop <-chan struct{}) {
	for i := range n {
		c.running.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
					_ = c.call(fmt.Sprintf("user-%s%d", name, i))
				}
			}
		})
	}
}

// TestTurnsAfterACrowd: a bucket with many callers gets its turns again once a crowd is gone that took them
// all. While its batch waits for a turn, requests run out of time one after the other. The batch keeps its
// place in the line.
func TestTurnsAfterACrowd(t *testing.T) {
	onSimulated(t, func(api wire.API) wire.API { return api }, InFlight(4), func(c *callers) {
		stop, crowd := make(chan struct{}), make(chan struct{})
		c.loop("some", 40, stop)
		hot := &callers{process: c.process, def: c.def}
		arrive := func(during time.Duration) (served, unsent int64) {
			hot.served.Store(0)
			hot.unsent.Store(0)
			for end := time.Now().Add(during); time.Now().Before(end); {
				<-time.After(10 * time.Millisecond)
				hot.running.Go(func() { _ = hot.call("user-hot") })
			}
			return hot.served.Load(), hot.unsent.Load()
		}
		arrive(2 * time.Second)
		c.loop("crowd", 400, crowd)
		if _, unsent := arrive(3 * time.Second); unsent == 0 {
			t.Error("the crowd left turns for all")
		}
		close(crowd)
		arrive(3 * time.Second)
		if served, unsent := arrive(3 * time.Second); unsent > 0 || served < 250 {
			t.Errorf("after the crowd %d calls were served and %d had no turn, want 300 and 0", served, unsent)
		}
		close(stop)
		hot.running.Wait()
	})
}

// halting answers updates with a 5xx while it is down, and counts them.
type halting struct {
	wire.API
	down atomic.Bool
	sent atomic.Int64
}

func (h *halting) UpdateItem(
	ctx context.Context, in *dynamodb.UpdateItemInput, opts ...func(*dynamodb.Options),
) (*dynamodb.UpdateItemOutput, error) {
	if !h.down.Load() {
		return h.API.UpdateItem(ctx, in, opts...)
	}
	h.sent.Add(1)
	<-time.After(20 * time.Millisecond)
	return nil, &types.InternalServerError{}
}

// TestOutageOfUnknownOutcomes: writes that end with a 5xx may have been applied, and are given back. These
// give-backs are retries too: once the budgets are spent, a call sends one request.
func TestOutageOfUnknownOutcomes(t *testing.T) {
	longform.NoRace(t, "TestOutageIsNotMultiplied runs the same goroutines")
	api := &halting{}
	halt := func(inner wire.API) wire.API { api.API = inner; return api }
	onSimulated(t, halt, InFlight(64), func(c *callers) {
		stop := make(chan struct{})
		c.loop("some", 25, stop)
		<-time.After(time.Second)
		api.down.Store(true)
		<-time.After(3 * time.Second)
		sent, failed := api.sent.Load(), c.failed.Load()
		<-time.After(2 * time.Second)
		sent, failed = api.sent.Load()-sent, c.failed.Load()-failed
		if failed < 1000 || sent > failed*11/10 {
			t.Errorf("%d calls sent %d requests, want at most 1.1 a call", failed, sent)
		}
		close(stop)
	})
}

// TestSlowStore: a store whose replies take longer than pace.LongestAttempt is waited for by retries.
func TestSlowStore(t *testing.T) {
	slow := func(api wire.API) wire.API {
		api.(*simTable).minDelay, api.(*simTable).maxDelay = 750*time.Millisecond, 750*time.Millisecond+1
		return api
	}
	onSimulated(t, slow, ImageCache(10), func(c *callers) {
		if err := c.callWithin("user-1", 10*time.Second); err != nil {
			t.Error(err)
		}
	})
}
