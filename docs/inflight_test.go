package docs_test

import (
	"context"
	"errors"
	"net"
	"net/http"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	inflight "github.com/sluice-go/sluice/examples/inflight/limits"
	"github.com/sluice-go/sluice/runtime"
	"github.com/sluice-go/sluice/runtime/dynamo"
	"github.com/sluice-go/sluice/runtime/dynamo/operator"
	"github.com/sluice-go/sluice/runtime/memdynamo"
)

// cable is a network that can be cut: connections are refused then, or no answer comes.
type cable struct {
	next dynamodb.HTTPClient
	cut  atomic.Bool
	mute bool
}

// Do implements dynamodb.HTTPClient.
func (c *cable) Do(r *http.Request) (*http.Response, error) {
	switch {
	case !c.cut.Load():
		return c.next.Do(r)
	case c.mute:
		<-r.Context().Done()
		return nil, r.Context().Err()
	}
	return nil, &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}
}

// process is a process on an engine, by a network of its own.
func process(t *testing.T, engine *memdynamo.Engine, mute bool) (*inflight.Limiter, *cable) {
	t.Helper()
	c := &cable{next: engine.HTTPClient(), mute: mute}
	client := engine.Client(func(o *dynamodb.Options) { o.HTTPClient = c })
	if _, err := operator.CreateTable(t.Context(), client, usageTable); err != nil {
		t.Fatal(err)
	}
	lim, err := inflight.New(dynamo.New(client, usageTable))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = lim.Close(context.WithoutCancel(t.Context())) })
	return lim, c
}

// take takes a slot of key1.
func take(t *testing.T, lim *inflight.Limiter) *inflight.ModelLease {
	t.Helper()
	lease, err := lim.Model.Acquire(t.Context(), key1, inflight.ModelCost{Month: 1})
	if err != nil {
		t.Fatal(err)
	}
	return lease
}

// sleepUntil goes on at d after start.
func sleepUntil(start time.Time, d time.Duration) {
	time.Sleep(time.Until(start.Add(d))) //nolint:forbidigo // in a bubble
}

// TestInFlightOutages: docs/in-flight.md says which outages a call survives whose slot was taken at the start
// of a minute, and so is extended after 90 to 100 s.
func TestInFlightOutages(t *testing.T) {
	for name, test := range map[string]struct {
		from, length time.Duration
		mute, lost   bool
	}{
		"refused, over before the extension": {40 * time.Second, 49 * time.Second, false, false},
		"refused for 15 s":                   {89 * time.Second, 15 * time.Second, false, false},
		"refused for 15 s, later":            {95 * time.Second, 15 * time.Second, false, false},
		"refused until the context ends":     {89 * time.Second, 30 * time.Second, false, true},
		"no answer":                          {89 * time.Second, 25 * time.Second, true, true},
		"two minutes":                        {95 * time.Second, 2 * time.Minute, false, true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				lim, cable := process(t, memdynamo.New(), test.mute)
				start := time.Now() // a bubble begins at the start of a minute
				lease := take(t, lim)
				ctx := lease.Context(t.Context())
				sleepUntil(start, test.from)
				cable.cut.Store(true)
				sleepUntil(start, test.from+test.length)
				cable.cut.Store(false)
				sleepUntil(start, 10*time.Minute)
				if lost := errors.Is(context.Cause(ctx), runtime.ErrLeaseLost); lost != test.lost ||
					!lost && ctx.Err() != nil {
					t.Errorf("the context's cause is %v", context.Cause(ctx))
				}
				lease.Keep(t.Context())
			})
		})
	}
}

// TestInFlightDeath: a process that dies has its slot back after one to two minutes, and what it had reserved
// with on_crash: release. The control is a process that lives.
func TestInFlightDeath(t *testing.T) {
	for _, second := range []time.Duration{0, 30, 59} {
		synctest.Test(t, func(t *testing.T) {
			engine := memdynamo.New()
			dies, cable := process(t, engine, false)
			lives, _ := process(t, engine, false)
			sleepUntil(time.Now(), second*time.Second)
			start := time.Now()
			lost, kept := take(t, dies), take(t, lives)
			cable.cut.Store(true)
			sleepUntil(start, 60*time.Second)
			leftOf(t, lives, 18, 50_000-2)
			sleepUntil(start, 2*time.Minute)
			leftOf(t, lives, 19, 50_000-1)
			kept.Keep(t.Context())
			leftOf(t, lives, 20, 50_000-1)
			lost.Keep(t.Context())
		})
	}
}

// TestInFlightCosts: what docs/in-flight.md says that slots cost.
func TestInFlightCosts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := memdynamo.New()
		lim, _ := process(t, engine, false)
		costs := func(what string, read, write float64, do func()) {
			t.Helper()
			engine.ResetConsumed()
			do()
			if got := engine.Consumed().Total().Total(); got.Read != read || got.Write != write {
				t.Errorf("%s: %v read and %v write units, want %v and %v", what, got.Read, got.Write, read, write)
			}
		}
		take(t, lim).Keep(t.Context()) // overrides are read, and the bucket is made
		var leases []*inflight.ModelLease
		costs("slots", 0, 19, func() {
			for range 19 {
				leases = append(leases, take(t, lim))
			}
		})
		costs("a slot, there and back", 0, 2, func() { take(t, lim).Keep(t.Context()) })
		leases = append(leases, take(t, lim))
		denied := func() {
			if _, err := lim.Model.Acquire(t.Context(), key1, inflight.ModelCost{Month: 1}); err == nil {
				t.Error("a slot too many")
			}
		}
		costs("a denial by what was just seen", 0, 0, denied)
		sleepUntil(time.Now(), 2*time.Second)
		costs("a denial", 1, 0, denied)
		sleepUntil(time.Now(), 25*time.Second)
		costs("slots back, within half a minute", 0, 20, func() {
			for _, l := range leases {
				l.Keep(t.Context())
			}
		})
	})
}
