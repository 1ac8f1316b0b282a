package runtime

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/sluice-go/sluice/runtime/internal/deadlines"
	"github.com/sluice-go/sluice/runtime/internal/observers"
	"github.com/sluice-go/sluice/runtime/internal/prefetch"
	"github.com/sluice-go/sluice/runtime/store"
)

// Option configures a generated New. New fails with a *SetupError for a value that is nil or out of range: a
// duration or a number is more than 0. A nil Option is ignored.
type Option func(*options)

// CallOption configures one call, Resource.With, or New's WithCallDefaults: a call's option beats With's,
// which beats WithCallDefaults'. A call fails with an *InvalidError for an option out of range: a duration is
// more than 0. A nil CallOption is ignored.
type CallOption func(*callOptions)

type options struct {
	env        store.Env
	maxWaiters int
	calls      []CallOption
	err        error
}

type callOptions struct {
	budget  time.Duration
	maxWait time.Duration // 0: none
	policy  Policy        // 0: the resource's
	lazy    choice        // 0: the resource's
	shadow  choice        // 0: the resource's
	pools   choice        // 0: the resource's
	ahead   time.Duration // the prefetch, if pools is yes
	bad     string        // the first option out of range, as it was written
	want    string        // what is allowed for it
}

// positive is the range of every duration and number among the options.
const positive = "want more than 0"

// WithCallDefaults sets defaults for every call.
func WithCallDefaults(opts ...CallOption) Option {
	return func(o *options) { o.calls = append(o.calls, opts...) }
}

// WithClock replaces the system's clock. A clock more than a second ahead of DynamoDB's dates is bounded by
// them, so a test that moves time gives the engine the same clock (memdynamo.WithClock).
func WithClock(c Clock) Option {
	return func(o *options) {
		if c == nil {
			o.fail("WithClock: the clock is nil")
			return
		}
		o.env.Clock = c
	}
}

// WithLogger sets the log for what no caller gets as an error; the default is slog.Default().
func WithLogger(l *slog.Logger) Option {
	return func(o *options) {
		if l == nil {
			o.fail("WithLogger: the logger is nil; slog.DiscardHandler discards")
			return
		}
		o.env.Logger = l
	}
}

// WithObserver sets the observer of outcomes. It must not change afterwards.
func WithObserver(obs *Observer) Option {
	return func(o *options) {
		if obs == nil {
			o.fail("WithObserver: the observer is nil")
			return
		}
		o.env.Observer = obs
	}
}

// Observers returns an Observer that calls each of all, in that order. Nil ones are left out.
func Observers(all ...*Observer) *Observer { return observers.Chain(all) }

// WithSettleTimeout bounds each Settle and Release, and whatever else outlives its caller. The default is
// 5 s.
func WithSettleTimeout(d time.Duration) Option {
	return func(o *options) {
		if d <= 0 {
			o.fail(fmt.Sprintf("WithSettleTimeout(%v): %s", d, positive))
			return
		}
		o.env.SettleTimeout = d
	}
}

// WithCacheTTL sets how long a process caches overrides, and the parents of entities that are looked up:
// how late a change may take effect. The default is a minute. Shorter costs reads, half a read unit per
// bucket and TTL.
func WithCacheTTL(d time.Duration) Option {
	return func(o *options) {
		if d <= 0 {
			o.fail(fmt.Sprintf("WithCacheTTL(%v): %s", d, positive))
			return
		}
		o.env.CacheTTL = d
	}
}

// defaultMaxWaiters is the WithMaxWaiters of a Limiter without that option.
const defaultMaxWaiters = 10_000

// WithMaxWaiters bounds how many calls of Wait may wait at once for an entity on a resource, in this process.
// One more fails at once with a *QueueFullError. The default is 10,000.
func WithMaxWaiters(n int) Option {
	return func(o *options) {
		if n <= 0 {
			o.fail(fmt.Sprintf("WithMaxWaiters(%d): %s", n, positive))
			return
		}
		o.maxWaiters = n
	}
}

// Budget bounds the store's work for one acquire, all attempts together; a Wait's sleep does not count. The
// default is 1 s.
func Budget(d time.Duration) CallOption {
	return func(o *callOptions) {
		if d <= 0 {
			o.fail(fmt.Sprintf("Budget(%v)", d), positive)
			return
		}
		o.budget = d
	}
}

// MaxWait bounds how long a Wait may take, beside its context's deadline. If the store has not answered at
// all by then, that counts as the end of the Budget.
func MaxWait(d time.Duration) CallOption {
	return func(o *callOptions) {
		if d <= 0 {
			o.fail(fmt.Sprintf("MaxWait(%v)", d), positive)
			return
		}
		o.maxWait = d
	}
}

// OnUnavailable says what happens when the store cannot answer, in place of limits.yaml's on_unavailable. It
// cannot answer if it fails, or if the Budget ends first. A caller whose context ends before that gets its
// context's error.
func OnUnavailable(p Policy) CallOption {
	return func(o *callOptions) {
		if p < Allow || p > Local {
			o.fail(fmt.Sprintf("OnUnavailable(%d)", p), "want Allow, Deny or Local")
			return
		}
		o.policy = p
	}
}

// Prefetch lets a call use tokens that this process has taken at most d before, in place of limits.yaml's
// prefetch. d is whole milliseconds from 100 ms to 5 s, or 0: then the call asks the store. A call fails with
// an *InvalidError on a resource that can have no prefetch: one with in_flight, on_crash: release or window:
// never.
func Prefetch(d time.Duration) CallOption {
	return func(o *callOptions) {
		if !prefetch.Allowed(d) {
			o.fail(fmt.Sprintf("Prefetch(%v)", d), prefetch.Allows)
			return
		}
		o.pools, o.ahead = chosen(d > 0), d
	}
}

// LazySettle says whether settles and releases may be written later, in place of limits.yaml's settle. They
// then go out with the bucket's next write, or by themselves within 100 ms and on Close. That saves their own
// write: on a busy bucket, half the cost of an acquire that is settled. Settle returns at once, and an error
// of its write goes to the observer and the log. If a process dies, the leases closed within its last 100 ms
// may stand as charged.
func LazySettle(on bool) CallOption {
	return func(o *callOptions) { o.lazy = chosen(on) }
}

// choice is what an option says in place of limits.yaml; 0 is nothing.
type choice uint8

const (
	no choice = iota + 1
	yes
)

func chosen(on bool) choice {
	if on {
		return yes
	}
	return no
}

// or returns the choice, or otherwise if there is none.
func (c choice) or(otherwise bool) bool { return c == yes || c == 0 && otherwise }

func (o *options) fail(what string) {
	if o.err == nil {
		o.err = &SetupError{What: what, Do: "correct the option"}
	}
}

func (o *callOptions) fail(what, want string) {
	if o.bad == "" {
		o.bad, o.want = what, want
	}
}

// waiting returns ctx bounded by MaxWait, if that is set.
func (o *callOptions) waiting(ctx context.Context) (context.Context, context.CancelFunc) {
	if o.maxWait == 0 {
		return ctx, func() {}
	}
	return context.WithTimeout(ctx, o.maxWait)
}

// until returns a copy of o whose budget ends no later than its MaxWait, the deadline of waiting. waiting is
// a child of ctx.
func (o *callOptions) until(ctx, waiting context.Context) *callOptions {
	until := *o
	end, ok := waiting.Deadline()
	if own, has := ctx.Deadline(); ok && (!has || end.Before(own)) { // else the deadline is the caller's
		until.budget = min(until.budget, deadlines.Left(end))
	}
	return &until
}

// with returns o, or a copy that opts have changed.
func (o *callOptions) with(opts []CallOption) *callOptions {
	if len(opts) == 0 {
		return o
	}
	changed := *o
	for _, opt := range opts {
		if opt != nil {
			opt(&changed)
		}
	}
	return &changed
}
