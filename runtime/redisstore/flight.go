package redisstore

import (
	"context"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/sluice-go/sluice/runtime"
	"github.com/sluice-go/sluice/runtime/bucket"
)

// flight is one pipeline and, where Redis says that it has applied nothing of a call, one more for those.
type flight struct {
	*line
	calls []*call
	began time.Time

	// The line's lock guards these.
	aboard int // requests whose callers still wait
}

// call is one script call.
type call struct {
	flight   *flight
	requests []*request

	command *command
	outcome outcome
	err     error
}

// Tries of what was not applied: at once, and after a pause with jitter.
const (
	mostTries    = 2
	longestPause = 32 * time.Millisecond
)

// take has r go with f, in the script call of those who charge the same shapes. It reports whether there was room.
func (f *flight) take(r *request) bool {
	i := len(f.calls) - 1
	for i >= 0 && !f.calls[i].serves(r) {
		i--
	}
	if i < 0 || len(f.calls[i].requests) == mostRequests {
		if i = len(f.calls); i == mostCalls {
			return false
		}
		f.calls = append(f.calls, &call{flight: f})
	}
	f.calls[i].requests = append(f.calls[i].requests, r)
	r.flight, r.tries = f, 1
	f.aboard++
	return true
}

// serves reports whether r may be part of c: it has the same script, and buckets of the same parameters.
func (c *call) serves(r *request) bool {
	first := c.requests[0]
	return first.script == r.script && slices.EqualFunc(first.shares, r.shares, func(a, b share) bool { return a.shape == b.shape })
}

// land gives up f's place to who waits: it takes long, or nobody waits for it any more. The caller holds the lock.
func (f *flight) land() {
	if f.leaves() {
		f.dispatch()
	}
}

// leaves frees f's place, and reports whether it still had one. The caller holds the lock.
func (f *flight) leaves() bool {
	i := slices.Index(f.flights, f)
	if i >= 0 {
		f.flights = slices.Delete(f.flights, i, i+1)
	}
	return i >= 0
}

// fly sends f's calls and has their requests end.
func (f *flight) fly() {
	calls := f.calls
	for try := 1; len(calls) > 0; try++ {
		f.send(calls)
		var again []*call
		for _, c := range calls {
			if c.outcome == unapplied && try < mostTries && f.stays(c) {
				again = append(again, c)
			} else {
				f.deliver(c)
			}
		}
		if calls = again; len(calls) > 0 {
			f.mu.Lock()
			f.land() // it pauses, and holds up nobody else
			f.mu.Unlock()
			<-f.env.Clock.After(time.Duration(f.jitter() * float64(longestPause)))
		}
	}
}

// stays reports whether anybody waits for another try of c, which those who have left are not part of.
func (f *flight) stays(c *call) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	var waiting []*request
	for _, r := range c.requests {
		if r.gone {
			continue
		}
		r.tries++
		waiting = append(waiting, r)
	}
	if len(waiting) > 0 {
		c.requests = waiting
	}
	return len(waiting) > 0
}

// send runs calls in Redis, each once. A script that Redis does not have was not run, and goes along with the second try.
func (f *flight) send(calls []*call) {
	for _, c := range calls {
		c.command = c.evalsha()
	}
	f.exec(calls)
	var unloaded []*call
	for _, c := range calls {
		if c.outcome == unloadedScript {
			c.command = c.eval()
			unloaded = append(unloaded, c)
		}
	}
	if len(unloaded) > 0 {
		f.exec(unloaded)
	}
	if slices.ContainsFunc(calls, func(c *call) bool { return c.outcome == unapplied || c.outcome == unknown }) {
		f.lookAround()
	}
}

// end takes note of how c's command, sent at began, has ended.
func (c *call) end(began time.Time) {
	c.err = c.command.Err()
	c.outcome = c.flight.classify(c.err)
	if c.outcome == applied {
		c.read()
	}
	c.observe(began)
	if c.outcome == failed {
		c.err = c.flight.explain(c)
	}
}

// lookAround has the client of a cluster find out who has which slots by now: another master may have taken over. By itself it
// does so every 10 seconds, and where it is redirected.
func (f *flight) lookAround() {
	if cluster, ok := f.client.(*redis.ClusterClient); ok {
		cluster.ReloadState(context.Background())
	}
}

// exec sends the calls' commands, in one pipeline where they are several, and has the calls end.
func (f *flight) exec(calls []*call) {
	ctx, began := context.Background(), f.env.Clock.Now()
	if len(calls) == 1 {
		_ = f.client.Process(ctx, calls[0].command) // the command has the error
	} else {
		pipe := f.client.Pipeline()
		for _, c := range calls {
			_ = pipe.Process(ctx, c.command)
		}
		_, _ = pipe.Exec(ctx) // each command has its own
	}
	for _, c := range calls {
		c.end(began)
	}
}

// deliver has c's requests end as its reply says.
func (f *flight) deliver(c *call) {
	f.mu.Lock()
	for _, r := range c.requests {
		r.err, r.ended = c.err, true
		if !r.gone {
			f.aboard--
		}
		close(r.done)
	}
	f.mu.Unlock()
	for _, r := range c.requests {
		switch {
		case r.later != nil:
			f.background.Start(func() { r.later(r.result()) }) // not on this goroutine, for which others wait: observers are told
		case r.gone && r.path == pathAcquire && r.err == nil && r.waits == nil:
			f.giveBack(r)
		}
	}
}

// giveBack undoes r, which was charged for a caller that has gone.
func (f *flight) giveBack(r *request) {
	back := r.undo()
	f.background.Begin()
	back.later = func(err error) {
		defer f.background.End()
		if err != nil {
			f.env.Logger.LogAttrs(back.ctx, slog.LevelWarn, "sluice: a charge for a caller that had gone was not given back",
				slog.String("resource", r.shares[0].spec.Resource), slog.String("entity", r.shares[0].entity), slog.Any("error", err))
		}
	}
	f.submit(back)
}

// read takes the reply apart, for each of c's requests. Redis's clock has said what is there; from here on it is this process's
// that says how long ago that was.
func (c *call) read() {
	reply, now := c.command.Val()[1:], c.flight.now()
	shares := c.requests[0].shares
	images := make([]*bucket.Image, len(shares))
	keys := 0
	for i, sh := range shares {
		images[i] = sh.shape.image(reply[keys:], now)
		sh.saw(images[i])
		keys += len(sh.keys)
	}
	reply = reply[keys:]
	c.outcome = refused
	for _, r := range c.requests {
		refused := reply[0] != 0
		reply = reply[1:]
		if r.images = images; refused {
			r.waits, reply = reply[:keys:keys], reply[keys:]
		} else {
			c.outcome = applied
		}
	}
}

// image is a bucket that has levels, in millitokens.
func (s *shape) image(levels []int64, now int64) *bucket.Image {
	img := &bucket.Image{Refilled: now, Balances: bucket.Full(s.limits), Missing: make([]bool, len(s.limits))}
	for i := range img.Balances {
		img.Balances[i].Tokens = levels[i]
	}
	return img
}

// observe tells of c.
func (c *call) observe(began time.Time) {
	if c.flight.env.Observer.Store == nil { // the event costs an allocation
		return
	}
	first := c.requests[0]
	c.flight.tell(first.ctx, runtime.StoreEvent{
		Call: strings.ToUpper(c.command.Name()), Resource: first.shares[0].spec.Resource, Path: first.path, Buckets: len(first.shares),
		Outcome: c.outcome.String(), Coalesced: len(c.requests), Began: began,
	})
}

// tell tells of e, which has ended just now. The context of the call may be over.
func (s *session) tell(ctx context.Context, e runtime.StoreEvent) {
	if f := s.env.Observer.Store; f != nil {
		e.System, e.Took = "redis", s.env.Clock.Now().Sub(e.Began)
		f(context.WithoutCancel(ctx), e)
	}
}
