package redisstore

import (
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
)

// Bounds of what goes out together.
const (
	mostFlights  = 2   // pipelines under way at once
	mostCalls    = 64  // script calls in a pipeline
	mostRequests = 100 // requests in a script call, which holds up everybody else in Redis
)

// Times of a flight.
const (
	shortestTry = 100 * time.Millisecond // that a try has, however close the caller's deadline
	patience    = 250 * time.Millisecond // after which a flight holds up nobody else
)

// line is where requests wait for Redis. Who finds it idle goes out at once; while flights are under way, those who come gather,
// and the next flight takes them all: requests for the same keys as one script call, first come first served, each with an
// outcome of its own, and the script calls of others in the same pipeline.
type line struct {
	*session

	mu      sync.Mutex
	lanes   map[laneKey]*lane
	ready   []*lane // with somebody who waits, and nobody under way; first come first
	flights int     // under way
}

// lane is the line of those who want the same of the same keys.
type lane struct {
	key    laneKey
	queue  []*request // who waits, first come first
	flying bool       // others are under way
	listed bool       // it is ready
}

// laneKey is what requests have in common that one script call serves: the script, and buckets of the same parameters.
type laneKey struct {
	script *script
	shapes [4]*shape // a call of more is alone
}

func newLine(s *session) *line { return &line{session: s, lanes: map[laneKey]*lane{}} }

// lineOf returns the line that r is to stand in: of a cluster each master has its own, so that one that is down holds up nobody
// else. Where the client knows no master it will say so itself.
func (s *session) lineOf(r *request) *line {
	cluster, ok := s.client.(*redis.ClusterClient)
	if !ok {
		return s.line
	}
	master, err := cluster.MasterForKey(r.ctx, r.shares[0].keys[0].(string))
	if err != nil {
		return s.line
	}
	addr := master.Options().Addr
	if known, ok := s.masters.Load(addr); ok {
		return known.(*line)
	}
	known, _ := s.masters.LoadOrStore(addr, newLine(s))
	return known.(*line)
}

// submit puts r in line.
func (l *line) submit(r *request) {
	r.done = make(chan struct{})
	key, shared := laneKey{script: r.script}, len(r.shares) <= len(laneKey{}.shapes)
	for i := range r.shares[:min(len(r.shares), len(key.shapes))] {
		key.shapes[i] = r.shares[i].shape
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	r.lane = l.lanes[key]
	if r.lane == nil || !shared {
		r.lane = &lane{key: key}
		if shared {
			l.lanes[key] = r.lane
		}
	}
	r.lane.queue = append(r.lane.queue, r)
	l.list(r.lane)
	l.dispatch()
}

// list notes that somebody waits in ln, if nobody is under way for it. The caller holds the lock.
func (l *line) list(ln *lane) {
	if !ln.flying && !ln.listed {
		ln.listed = true
		l.ready = append(l.ready, ln)
	}
}

// dispatch starts a flight if somebody waits for one. The caller holds the lock.
func (l *line) dispatch() {
	if l.flights < mostFlights && len(l.ready) > 0 {
		l.flights++
		l.background.Start(l.work)
	}
}

// work has one flight after the other until nobody waits.
func (l *line) work() {
	for {
		runtime.Gosched() // who is about to come, as those who have just been served, comes along: it fills flights by half again
		f := l.board()
		if f == nil {
			return
		}
		f.fly()
		l.mu.Lock()
		landed := f.landed
		f.landed = true
		l.mu.Unlock()
		f.watch.Stop()
		if landed { // somebody else has its place
			return
		}
	}
}

// board returns a flight with those who wait, or nil if nobody does: then there is a place for another.
func (l *line) board() *flight {
	l.mu.Lock()
	defer l.mu.Unlock()
	f := &flight{line: l, until: after(shortestTry)}
	for len(l.ready) > 0 && len(f.calls) < mostCalls {
		next := l.ready[0]
		l.ready = l.ready[1:]
		next.listed = false
		if len(next.queue) == 0 { // who waited has left
			l.forget(next)
			continue
		}
		next.flying = true
		n := min(len(next.queue), mostRequests)
		c := &call{flight: f, lane: next, requests: next.queue[:n:n]}
		next.queue = next.queue[n:]
		for _, r := range c.requests {
			r.flight, r.tries = f, 1
		}
		f.calls, f.aboard = append(f.calls, c), f.aboard+n
	}
	if len(f.calls) == 0 {
		l.flights--
		return nil
	}
	f.watch = alarm(l.hung, func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.overtake(f)
	})
	return f
}

// overtake has f, which takes long, or for which nobody waits any more, hold up nobody else. The caller holds the lock.
func (l *line) overtake(f *flight) {
	if f.landed {
		return
	}
	f.landed = true
	for _, c := range f.calls {
		l.free(c)
	}
	l.flights--
	l.dispatch()
}

// free lets the next of c's lane go. The caller holds the lock.
func (l *line) free(c *call) {
	if c.free {
		return
	}
	c.free = true
	if c.lane.flying = false; len(c.lane.queue) > 0 {
		l.list(c.lane)
		return
	}
	l.forget(c.lane)
}

// forget lets go of a lane that nobody is in. The caller holds the lock.
func (l *line) forget(ln *lane) {
	if l.lanes[ln.key] == ln {
		delete(l.lanes, ln.key)
	}
}

// await returns how r has ended, or that its caller's time is over. What it is charged then, it is given back.
func (l *line) await(r *request) (ended bool, err error) {
	deadline := r.deadline
	if r.theirs {
		deadline = time.Time{}
	}
	if r.waited(deadline) {
		return true, r.result()
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if f := r.flight; f != nil && !r.ended {
		l.mu.Unlock()
		r.waited(f.until)
		l.mu.Lock()
	}
	if r.ended {
		return true, r.result()
	}
	return false, l.leave(r)
}

// waited waits for r until its caller's context is over or, unless it is zero, until deadline. It reports whether r has ended.
func (r *request) waited(deadline time.Time) bool {
	var over <-chan time.Time
	if !deadline.IsZero() {
		timer := timerAt(deadline)
		defer timer.Stop()
		over = timer.C
	}
	select {
	case <-r.done:
		return true
	case <-over:
	case <-r.ctx.Done():
	}
	return false
}

// leave has r's caller go, before r has ended. The caller holds the lock.
func (l *line) leave(r *request) error {
	err := r.leaves()
	r.gone = true
	switch f := r.flight; f {
	case nil:
		queue := r.lane.queue
		r.lane.queue = slices.DeleteFunc(queue, func(other *request) bool { return other == r })
	default:
		if f.aboard--; f.aboard == 0 {
			l.overtake(f)
		}
	}
	return err
}
