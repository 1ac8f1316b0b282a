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

// gate holds a client's script calls and pipelines until the test decides on their delivery.
type gate struct {
	arrived chan arrival
}

// arrival is a script call or a pipeline that waits for its delivery.
type arrival struct {
	scripts  string // the script calls, such as evalsha evalsha
	delivery chan delivery
}

// delivery says whether an arrival is run and answered.
type delivery struct {
	lost    bool  // it is run, but its reply does not arrive
	refused error // the error it is answered with; it is not run
}

var (
	pass = delivery{}
	lose = delivery{lost: true}
)

func newGate(client *redis.Client) *gate {
	g := &gate{arrived: make(chan arrival)}
	client.AddHook(g)
	return g
}

func (g *gate) DialHook(next redis.DialHook) redis.DialHook {
	return func(ctx context.Context, network, addr string) (net.Conn,
		error) {
		return next(ctx, network, addr)
	}
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
	a := arrival{strings.Join(scripts, " "), make(chan delivery)}
	g.arrived <- a
	f := <-a.delivery
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

// comes waits for the next arrival, and returns a function that decides on its delivery.
func (g *gate) comes(t testing.TB, want string) func(delivery) {
	t.Helper()
	a := <-g.arrived
	if a.scripts != want {
		t.Errorf("%s arrived, want %s", a.scripts, want)
	}
	return func(f delivery) { a.delivery <- f }
}

// open lets everything pass from now on.
func (g *gate) open(t testing.TB) {
	t.Helper()
	stop := make(chan struct{})
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		for {
			select {
			case a := <-g.arrived:
				a.delivery <- pass
			case <-stop:
				return
			}
		}
	}()
	t.Cleanup(func() {
		close(stop)
		<-stopped
	})
}

// pendingCall is an acquire or a settle under way.
type pendingCall struct {
	lease *sluice.Lease[tokens2]
	err   error
	ended chan struct{}
}

// ask starts an acquire of d.
func (d *process) ask(ctx context.Context, entity caller, cost tokens2,
	opts ...sluice.CallOption) *pendingCall {
	h := &pendingCall{ended: make(chan struct{})}
	go func() {
		defer close(h.ended)
		h.lease, h.err = d.Acquire(ctx, entity, cost, opts...)
	}()
	return h
}

// settle starts a settle of h's lease.
func (h *pendingCall) settle(ctx context.Context, actual tokens2) *pendingCall {
	next := &pendingCall{ended: make(chan struct{})}
	go func() {
		defer close(next.ended)
		next.err = h.lease.Settle(ctx, actual)
	}()
	return next
}

// end waits for h.
func (h *pendingCall) end() error {
	<-h.ended
	return h.err
}

// busy starts as many pipelines as may be under way, for carol and dave. It returns a function for each
// that completes it.
func (d *process) busy(t testing.TB, g *gate) (pass [maxPipelines]func()) {
	t.Helper()
	for i, entity := range []caller{carol, dave} {
		h := d.ask(t.Context(), entity, tokens2{1, 0})
		under := g.comes(t, "evalsha")
		pass[i] = func() {
			t.Helper()
			under(delivery{})
			if err := h.end(); err != nil {
				t.Error(err)
			}
		}
	}
	return pass
}

// queued waits until n requests wait for the next pipeline.
func (d *process) queued(n int) { d.session.(*session).queues.single.queued(n) }

func (q *queue) queued(n int) {
	for {
		q.mu.Lock()
		waiting := 0
		for _, r := range q.waiting {
			if !r.abandoned {
				waiting++
			}
		}
		q.mu.Unlock()
		if waiting == n {
			return
		}
		runtime.Gosched()
	}
}
