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

// line is where requests wait for Redis. Who comes while few flights are under way goes out at once; else those who come gather, and
// the next flight takes them all: requests for the same keys as one script call, first come first served, each with an outcome of
// its own, and the script calls of others in the same pipeline.
//
// Flights may carry requests for the same keys beside each other, as otherwise many would wait for two round trips, and one may
// overtake another: who comes while somebody else has no answer yet may be served before him, who comes later never is.
type line struct {
	*session

	mu       sync.Mutex
	queue    []*request // who waits, first come first
	boarding bool       // a flight is about to take them
	flights  []*flight  // under way, the oldest first
	watched  bool       // a timer will look whether one takes long
}

func newLine(s *session) *line { return &line{session: s} }

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
	l.mu.Lock()
	defer l.mu.Unlock()
	l.queue = append(l.queue, r)
	l.dispatch()
}

// dispatch starts a flight if somebody waits for one, and there is a place for it. The caller holds the lock.
func (l *line) dispatch() {
	if len(l.queue) > 0 && !l.boarding && len(l.flights) < mostFlights {
		l.boarding = true
		l.background.Start(l.depart)
	}
}

// depart has those who wait fly, and then those who have come meanwhile: on one goroutine, whose stack has grown to what it takes.
func (l *line) depart() {
	for {
		runtime.Gosched() // who is about to come, as those who have just been served, comes along: it fills flights by half again
		f := l.board()
		if f == nil {
			return
		}
		f.fly()
		l.mu.Lock()
		again := f.leaves() && !l.boarding
		l.boarding = l.boarding || again
		l.mu.Unlock()
		if !again { // somebody else has its place
			return
		}
	}
}

// board returns a flight with those who wait, or nil if all have left.
func (l *line) board() *flight {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.boarding = false
	f, boarded := &flight{line: l, began: after(0)}, 0
	for _, r := range l.queue {
		if !r.gone && !f.take(r) {
			break
		}
		boarded++
	}
	l.queue = slices.Delete(l.queue, 0, boarded)
	if f.aboard == 0 {
		return nil
	}
	l.flights = append(l.flights, f)
	l.watch()
	l.dispatch()
	return f
}

// watch has flights that take long hold up nobody else. One timer serves one flight after the other: where there is always one that
// goes off soon, another that is set for later wakes no thread, as those of requests are. The caller holds the lock.
func (l *line) watch() {
	if l.watched || len(l.flights) == 0 {
		return
	}
	l.watched = true
	alarm(left(l.flights[0].began.Add(l.hung)), func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.watched = false
		for len(l.flights) > 0 && left(l.flights[0].began.Add(l.hung)) <= 0 {
			l.flights[0].land()
		}
		l.watch()
	})
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
		r.waited(f.began.Add(shortestTry))
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
	if f := r.flight; f != nil {
		if f.aboard--; f.aboard == 0 {
			f.land()
		}
	}
	return err
}
