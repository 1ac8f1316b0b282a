package redisstore

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/sluice-go/sluice/runtime/bucket"
	"github.com/sluice-go/sluice/runtime/redisstore/internal/database"
	"github.com/sluice-go/sluice/runtime/redisstore/internal/text"
	"github.com/sluice-go/sluice/runtime/store"
)

// pipeline is the script calls sent to Redis together. The calls that Redis reports as not run are sent once
// more, in a second round trip.
type pipeline struct {
	*queue
	calls []*call
	began time.Time

	waiters int // requests whose callers still wait; the queue's lock guards it
}

// call is one script call.
type call struct {
	pipeline *pipeline
	requests []*request

	command *command
	fills   int64 // that the session had made when it sent the command
	outcome database.Outcome
	err     error
	swept   int64 // whole tokens, of holds that were over

	redisNow int64 // Redis's time if it had to say it, ms, for the next command; else 0
}

// Attempts of a call that Redis has not run: the second one follows after a pause with jitter.
const (
	maxAttempts = 2
	maxPause    = 32 * time.Millisecond
	maxResends  = 3 // of an attempt: a call without its script, and then with boundaries by another clock
)

// add puts r into the script call for its limit sets. It reports whether there was room.
func (p *pipeline) add(r *request) bool {
	i := len(p.calls) - 1
	for i >= 0 && !p.calls[i].serves(r) {
		i--
	}
	if i < 0 || len(p.calls[i].requests) == maxRequests {
		if i = len(p.calls); i == maxCalls {
			return false
		}
		p.calls = append(p.calls, &call{pipeline: p})
	}
	p.calls[i].requests = append(p.calls[i].requests, r)
	r.pipeline, r.attempts = p, 1
	p.waiters++
	return true
}

// serves reports whether r may be part of c: it has the same script, and buckets with the same limits in
// force.
func (c *call) serves(r *request) bool {
	first := c.requests[0]
	return first.script == r.script && slices.EqualFunc(first.portions, r.portions, func(a, b portion) bool {
		return a.inForce == b.inForce
	})
}

// release ends p's turn before p has ended, and starts a pipeline for the waiting requests. It is called if p
// takes long or pauses, or if no caller waits for p any more. The caller holds the lock.
func (p *pipeline) release() {
	if p.endTurn() {
		p.dispatch()
	}
}

// endTurn makes p no longer count against maxPipelines, and reports whether it did so far. The caller holds
// the lock.
func (p *pipeline) endTurn() bool {
	i := slices.Index(p.pipelines, p)
	if i >= 0 {
		p.pipelines = slices.Delete(p.pipelines, i, i+1)
	}
	return i >= 0
}

// send sends p's calls, a second time if need be, and completes their requests.
func (p *pipeline) send() {
	calls := p.calls
	for attempt := 1; len(calls) > 0; attempt++ {
		p.sendOnce(calls)
		var again []*call
		for _, c := range calls {
			if c.outcome == database.Unapplied && attempt < maxAttempts && p.dropAbandoned(c) {
				again = append(again, c)
			} else {
				p.complete(c)
			}
		}
		if calls = again; len(calls) > 0 {
			p.mu.Lock()
			p.release() // while p pauses, other pipelines go on
			p.mu.Unlock()
			<-p.env.Clock.After(time.Duration(p.jitter() * float64(maxPause)))
		}
	}
}

// dropAbandoned removes abandoned requests from c before another attempt. It reports whether any are left; if
// none are, c keeps them all, to be completed.
func (p *pipeline) dropAbandoned(c *call) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	var waiting []*request
	for _, r := range c.requests {
		if r.abandoned {
			continue
		}
		r.attempts++
		waiting = append(waiting, r)
	}
	if len(waiting) > 0 {
		c.requests = waiting
	}
	return len(waiting) > 0
}

// sendOnce runs calls in Redis, each once. A script that Redis does not have was not run: its call is sent
// again with the script's text. So is a call whose boundaries Redis could not use, with others.
func (p *pipeline) sendOnce(calls []*call) {
	for _, c := range calls {
		c.command = c.evalsha()
	}
	p.exec(calls)
	for range maxResends {
		var again []*call
		for _, c := range calls {
			if c.outcome == database.UnloadedScript || c.outcome == database.Misdated {
				c.command = c.eval()
				again = append(again, c)
			}
		}
		if len(again) == 0 {
			break
		}
		p.exec(again)
	}
	for _, c := range calls {
		if c.outcome == database.Misdated {
			c.outcome = database.Unapplied
		}
	}
	if slices.ContainsFunc(calls, func(c *call) bool {
		return c.outcome == database.Unapplied ||
			c.outcome == database.Unknown
	}) {
		p.reloadSlots()
	}
}

// finish records how c's command, sent at began, has ended.
func (c *call) finish(began time.Time) {
	c.err = c.command.Err()
	c.outcome = c.pipeline.db.Classify(c.err)
	if c.outcome == database.Applied {
		c.readReply(began.UnixMilli())
	}
	c.report(began)
	if c.outcome == database.Failed {
		c.err = c.pipeline.explain(c)
	}
}

// reloadSlots makes the client of a cluster read which master has which slots: another one may have taken
// over. By itself the client does so only every 10 seconds, and when it is redirected.
func (p *pipeline) reloadSlots() {
	if cluster, ok := p.db.Client.(*redis.ClusterClient); ok {
		cluster.ReloadState(context.Background())
	}
}

// exec sends the commands of calls, in one pipeline if there are several, and finishes the calls.
func (p *pipeline) exec(calls []*call) {
	ctx, began := context.Background(), p.env.Clock.Now()
	for _, c := range calls {
		c.fills = p.fills.Load()
	}
	if len(calls) == 1 {
		_ = p.db.Client.Process(ctx, calls[0].command) // the command has the error
	} else {
		pipe := p.db.Client.Pipeline()
		for _, c := range calls {
			_ = pipe.Process(ctx, c.command)
		}
		_, _ = pipe.Exec(ctx) // each command has its own error
	}
	for _, c := range calls {
		c.finish(began)
	}
}

// complete ends c's requests with the outcome of c.
func (p *pipeline) complete(c *call) {
	p.mu.Lock()
	for _, r := range c.requests {
		r.err, r.ended = c.err, true
		if !r.abandoned {
			p.waiters--
		}
		close(r.done)
	}
	p.mu.Unlock()
	for _, r := range c.requests {
		switch {
		case r.later != nil:
			// On a goroutine of its own: later calls observers, and other requests wait for this one.
			p.background.Start(func() { r.later(r.result()) })
		case r.abandoned && r.path == pathAcquire && r.err == nil && r.retryAfter == nil:
			p.refundAbandoned(r)
		}
	}
}

// refundAbandoned refunds r, which was charged after its caller had left.
func (p *pipeline) refundAbandoned(r *request) {
	refund := r.refundRequest()
	p.background.Begin()
	refund.later = func(err error) {
		defer p.background.End()
		if err != nil {
			first := &r.portions[0]
			p.env.Logger.LogAttrs(refund.ctx, slog.LevelWarn,
				"sluice: the refund of a charge whose caller had left failed",
				slog.String("resource", first.spec.Resource),
				slog.String("entity", store.Quote(first.entity)), slog.Any("error", err))
		}
	}
	p.submit(refund)
}

// readReply decodes the reply for each of c's requests, which were sent at began, in ms. Redis's clock has
// determined the balances; from here on this process's clock measures their age.
func (c *call) readReply(began int64) {
	reply, now := c.command.Val(), c.pipeline.now()
	seenAt, reply := reply[0], reply[1:]
	c.pipeline.server.Bound(began, now, seenAt)
	if len(reply) == 0 {
		c.outcome, c.err, c.redisNow = database.Misdated, errMisdated, seenAt
		c.pipeline.server.Set(now, seenAt)
		return
	}
	portions := c.requests[0].portions
	keys, replies := 0, 0
	for _, p := range portions {
		keys += len(p.keys)
		replies += p.inForce.replies
	}
	if !text.Finite(reply[:replies]) {
		c.outcome, c.err = database.Failed, errNotFinite
		return
	}
	images, epochs := make([]*bucket.Image, len(portions)), make([][]int64, len(portions))
	for i, p := range portions {
		var swept int64
		images[i], epochs[i], swept = p.inForce.image(reply, now)
		c.swept += swept
		p.update(images[i], seenAt, c.fills)
		reply = reply[p.inForce.replies:]
	}
	c.outcome = database.Refused
	for _, r := range c.requests {
		refused := reply[0] != 0
		reply = reply[1:]
		r.images, r.epochs = images, epochs
		if refused {
			r.retryAfter, reply = reply[:keys:keys], reply[keys:]
			continue
		}
		c.outcome = database.Applied
		if r.path == pathExtend {
			r.extended, reply = reply[:keys:keys], reply[keys:]
		}
	}
}

// errMisdated is the error of a script call that has no boundary at which the window that it opens may end.
var errMisdated = errors.New(
	"the clock of Redis is far from the one by which the boundaries of windows were computed")

// report reports c to the breaker and the observer.
func (c *call) report(began time.Time) {
	first := c.requests[0]
	if c.pipeline.env.Observer.Store == nil { // the whole event costs an allocation
		c.pipeline.session.report(first.ctx, store.StoreEvent{Outcome: c.outcome.String()})
		return
	}
	c.pipeline.session.report(first.ctx, store.StoreEvent{
		Call: strings.ToUpper(c.command.Name()), Resource: first.portions[0].spec.Resource,
		Template: first.portions[0].spec.Template, Path: first.path, Buckets: len(first.portions),
		Outcome: c.outcome.String(), Coalesced: len(c.requests), Swept: c.swept, Began: began,
	})
}

// report reports e, which has just ended, to the breaker and the observer.
func (s *session) report(ctx context.Context, e store.StoreEvent) {
	e.System = "redis"
	s.env.Report(ctx, e)
}
