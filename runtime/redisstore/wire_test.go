package redisstore

import (
	"context"
	"errors"
	"net"
	"sync/atomic"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/sluice-go/sluice/runtime/store"
)

// cutter dials connections and cuts as many of them as its counter says, after their next write: the reply
// is lost.
type cutter struct{ cuts atomic.Int64 }

func (c *cutter) dial(o *redis.Options) {
	o.MaxRetries, o.DisableIdentity = 3, true
	o.Dialer = func(ctx context.Context, network, addr string) (net.Conn, error) {
		conn, err := (&net.Dialer{}).DialContext(ctx, network, addr)
		return &cut{Conn: conn, by: c}, err
	}
}

// cut is one of a cutter's connections.
type cut struct {
	net.Conn
	by   *cutter
	over bool
}

func (c *cut) Write(b []byte) (int, error) {
	n, err := c.Conn.Write(b)
	c.over = c.over || c.by.cuts.Load() > 0 && c.by.cuts.Add(-1) >= 0
	return n, err
}

// Read waits for the reply, so that what was written has been run, and loses it.
func (c *cut) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if c.over {
		_ = c.Close()
		return 0, net.ErrClosed
	}
	return n, err
}

// TestNoRetries: the client's retries do not apply to script calls, alone or in a pipeline. They do to any
// other command, or this would prove nothing.
func TestNoRetries(t *testing.T) {
	s := simulated(t)
	var c cutter
	client := s.client(t, c.dial)
	d := s.process(t, client, gpt4())
	d.left(t, alice, tokens2{60, 6000})
	d.left(t, bob, tokens2{60, 6000})
	d.calls(t, "levels missing", "peek missing", "levels missing", "peek missing")
	lose := func(do func()) {
		t.Helper()
		if err := client.Ping(t.Context()).Err(); err != nil {
			t.Fatal(err)
		}
		c.cuts.Store(1)
		do()
		if left := c.cuts.Load(); left > 0 {
			t.Fatalf("%d cuts are left: nothing was sent", left)
		}
		c.cuts.Store(0)
	}
	lose(func() {
		if err := client.Incr(t.Context(), "control").Err(); err != nil {
			t.Fatal(err)
		}
	})
	if n, err := client.Get(t.Context(), "control").Int(); n != 2 || err != nil {
		t.Fatalf("the control was run %d times, %v: want that the client repeats it", n, err)
	}
	lose(func() {
		if _, err := d.Acquire(t.Context(), alice, tokens2{7, 0}); !isA[*store.UnavailableError](err) {
			t.Errorf("%v, want that it is unknown", err)
		}
	})
	d.left(t, alice, tokens2{53, 6000})
	d.calls(t, "acquire unknown", "peek found")

	g := newGate(client)
	first := d.ask(t.Context(), alice, tokens2{1, 0})
	freed := g.comes(t, "evalsha")
	second := d.ask(t.Context(), carol, tokens2{1, 0})
	other := g.comes(t, "evalsha")
	a, b := d.ask(t.Context(), bob, tokens2{2, 0}), d.ask(t.Context(), dave, tokens2{3, 0})
	d.queued(2)
	freed(pass)
	both := g.comes(t, "evalsha evalsha")
	lose(func() {
		both(pass)
		for _, h := range []*pendingCall{a, b} {
			if err := h.end(); !isA[*store.UnavailableError](err) {
				t.Errorf("%v, want that it is unknown", err)
			}
		}
	})
	other(pass)
	for _, h := range []*pendingCall{first, second} {
		if err := h.end(); err != nil {
			t.Error(err)
		}
	}
	g.open(t)
	d.left(t, bob, tokens2{58, 6000}) // dave's may not have been run before the connection was cut
}

// TestUnloaded: a script that Redis has forgotten goes again as text, once, alone or in a pipeline; and
// Redis has it then.
func TestUnloaded(t *testing.T) {
	_, d, g := gated(t)
	flush := func() {
		t.Helper()
		if err := d.store.db.Client.ScriptFlush(t.Context()).Err(); err != nil {
			t.Fatal(err)
		}
	}
	flush()
	first := d.ask(t.Context(), alice, tokens2{1, 0})
	for _, verb := range []string{"evalsha", "eval"} {
		g.comes(t, verb)(pass)
	}
	if err := first.end(); err != nil {
		t.Fatal(err)
	}
	all := []*pendingCall{d.ask(t.Context(), alice, tokens2{1, 0})}
	freed := g.comes(t, "evalsha")
	all = append(all, d.ask(t.Context(), bob, tokens2{1, 0}))
	other := g.comes(t, "evalsha")
	all = append(all, d.ask(t.Context(), carol, tokens2{1, 0}), d.ask(t.Context(), dave, tokens2{1, 0}))
	d.queued(2)
	freed(pass)
	both := g.comes(t, "evalsha evalsha")
	flush()
	both(pass)
	g.comes(t, "eval eval")(pass)
	if err := errors.Join(all[2].end(), all[3].end()); err != nil {
		t.Error(err)
	}
	other(pass) // which finds it loaded
	if err := errors.Join(all[0].end(), all[1].end()); err != nil {
		t.Error(err)
	}
	g.open(t)
	d.left(t, carol, tokens2{59, 6000})
	d.left(t, dave, tokens2{59, 6000})
}
