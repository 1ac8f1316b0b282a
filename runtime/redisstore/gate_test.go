package redisstore

import (
	"context"
	"io"
	"net"
	"runtime"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	sluice "github.com/sluice-go/sluice/runtime"
)

// gate holds what a client sends until the test says what becomes of it: script calls alone, and each pipeline as a whole.
type gate struct {
	arrived chan arrival
}

// arrival is what was sent and waits for its fate.
type arrival struct {
	scripts string // the script calls, such as evalsha evalsha
	fate    chan fate
}

// fate is what becomes of what was sent.
type fate struct {
	lost    bool  // it arrives, but its reply does not
	refused error // it is answered with that, and not run
}

var (
	pass = fate{}
	lose = fate{lost: true}
)

func newGate(client *redis.Client) *gate {
	g := &gate{arrived: make(chan arrival)}
	client.AddHook(g)
	return g
}

func (g *gate) DialHook(next redis.DialHook) redis.DialHook {
	return func(ctx context.Context, network, addr string) (net.Conn, error) { return next(ctx, network, addr) }
}

func (g *gate) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		return g.hold([]redis.Cmder{cmd}, func() error { return next(ctx, cmd) })
	}
}

func (g *gate) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		return g.hold(cmds, func() error { return next(ctx, cmds) })
	}
}

func (g *gate) hold(cmds []redis.Cmder, next func() error) error {
	var scripts []string
	for _, cmd := range cmds {
		if name := cmd.Name(); strings.HasPrefix(name, "eval") {
			scripts = append(scripts, name)
		}
	}
	if len(scripts) == 0 {
		return next()
	}
	a := arrival{strings.Join(scripts, " "), make(chan fate)}
	g.arrived <- a
	f := <-a.fate
	err := f.refused
	if err == nil {
		err = next()
	}
	if f.lost {
		err = io.EOF
	}
	if err != nil && (f.lost || f.refused != nil) {
		for _, cmd := range cmds {
			cmd.SetErr(err)
		}
	}
	return err
}

// comes holds what arrives next, and returns what has it meet its fate.
func (g *gate) comes(t testing.TB, want string) func(fate) {
	t.Helper()
	a := <-g.arrived
	if a.scripts != want {
		t.Errorf("%s arrived, want %s", a.scripts, want)
	}
	return func(f fate) { a.fate <- f }
}

// open lets everything pass from here on.
func (g *gate) open(t testing.TB) {
	t.Helper()
	over := make(chan struct{})
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		for {
			select {
			case a := <-g.arrived:
				a.fate <- pass
			case <-over:
				return
			}
		}
	}()
	t.Cleanup(func() {
		close(over)
		<-gone
	})
}

// held is an acquire or a settle on its way.
type held struct {
	lease *sluice.Lease[tokens2]
	err   error
	ended chan struct{}
}

// ask has d acquire.
func (d *desk) ask(ctx context.Context, entity who, cost tokens2, opts ...sluice.CallOption) *held {
	h := &held{ended: make(chan struct{})}
	go func() {
		defer close(h.ended)
		h.lease, h.err = d.Acquire(ctx, entity, cost, opts...)
	}()
	return h
}

// settle has a lease settled.
func (h *held) settle(ctx context.Context, actual tokens2) *held {
	next := &held{ended: make(chan struct{})}
	go func() {
		defer close(next.ended)
		next.err = h.lease.Settle(ctx, actual)
	}()
	return next
}

// end waits for h.
func (h *held) end() error {
	<-h.ended
	return h.err
}

// busy has carol and dave take every place of the line, and returns what lets each of them pass: then there is a place.
func (d *desk) busy(t testing.TB, g *gate) (pass [mostFlights]func()) {
	t.Helper()
	for i, entity := range []who{carol, dave} {
		h := d.ask(t.Context(), entity, tokens2{1, 0})
		under := g.comes(t, "evalsha")
		pass[i] = func() {
			t.Helper()
			under(fate{})
			if err := h.end(); err != nil {
				t.Error(err)
			}
		}
	}
	return pass
}

// queued waits until so many wait for the next flight.
func (d *desk) queued(n int) { d.session.(*session).line.queued(n) }

func (l *line) queued(n int) {
	for {
		l.mu.Lock()
		waiting := 0
		for _, r := range l.queue {
			if !r.gone {
				waiting++
			}
		}
		l.mu.Unlock()
		if waiting == n {
			return
		}
		runtime.Gosched()
	}
}
