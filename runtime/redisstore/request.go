package redisstore

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/sluice-go/sluice/runtime"
	"github.com/sluice-go/sluice/runtime/bucket"
)

// request is one caller's charge of its buckets, all or none.
type request struct {
	ctx      context.Context
	deadline time.Time   // the caller's, ctx's included; zero for none
	theirs   bool        // it is ctx's, which says when it is over
	path     string      // as observers see it
	later    func(error) // told how it ended where nobody waits; else nil
	parts    int         // of the call
	script   *script
	shares   []share
	args     []any // what it adds to ARGV: whether it is to fit, and its cost of each key in tokens

	// The line's lock guards these until it has ended.
	flight *flight       // that it is in; nil while it waits for one
	tries  int           // made for it
	gone   bool          // its caller did not wait for the end
	ended  bool          // images, waits and err say how
	done   chan struct{} // closed then

	images []*bucket.Image // of each share, as the script call left it; nil where that is not known
	waits  []int64         // of each key that refused, after how many ms it would not; nil unless it was refused
	err    error
}

// share is what a request does to one bucket.
type share struct {
	*memory

	shape   *shape            // nil until the overrides are known
	cost    []int64           // in millitokens, below 0 where tokens are given back
	buckets []*runtime.Bucket // the call's: several parts may meet in one
}

// Paths, as observers see them.
const (
	pathAcquire = "acquire"
	pathSettle  = "settle"
	pathPeek    = "peek"
	pathUndo    = "undo" // gives back what was charged for a caller that had gone
)

// request makes one of call: each bucket once. Costs of parts that meet in one are added up.
func (s *session) request(ctx context.Context, call *runtime.Call, path string, cost func(*runtime.Part) []int64) *request {
	lone := &struct { // most are of one bucket: then this is all of them
		request
		share  [1]share
		bucket [1]*runtime.Bucket
		args   [2]any
	}{}
	r := &lone.request
	r.ctx, r.deadline, r.path, r.parts, r.shares = ctx, call.Deadline, path, len(call.Parts), lone.share[:0]
	r.args = lone.args[:0]
	if d, ok := ctx.Deadline(); ok && (r.deadline.IsZero() || d.Before(r.deadline)) {
		r.deadline, r.theirs = d, true
	}
	r.script = s.fallback
	if len(call.Parts) == 1 {
		r.script = s.resource(call.Parts[0].Def).script(len(call.Parts[0].Buckets))
	}
	for i := range call.Parts {
		part := &call.Parts[i]
		of, c, root := s.resource(part.Def), cost(part), ""
		if s.keys.rooted {
			root = part.Buckets[len(part.Buckets)-1].Entity
		}
		for j := range part.Buckets {
			b := &part.Buckets[j]
			m := s.recall(of, b.Kind, root, b.Entity)
			// By the key: what is remembered of it may have been forgotten since, and is another's memory now.
			at := slices.IndexFunc(r.shares, func(sh share) bool { return sh.keys[0] == m.keys[0] })
			if at >= 0 {
				r.shares[at].join(b, c)
				continue
			}
			sh := share{memory: m, cost: c}
			if len(r.shares) == 0 {
				sh.buckets = lone.bucket[:0]
			}
			sh.buckets = append(sh.buckets, b)
			r.shares = append(r.shares, sh)
		}
	}
	return r
}

// join adds another part's share of the same bucket.
func (sh *share) join(b *runtime.Bucket, cost []int64) {
	sh.cost = slices.Clone(sh.cost)
	for i := range sh.cost {
		sh.cost[i] = bucket.Add(sh.cost[i], cost[i])
	}
	sh.buckets = append(sh.buckets, b)
}

// any reports whether there is anything to write.
func (r *request) any() bool {
	return slices.ContainsFunc(r.shares, func(sh share) bool {
		return slices.ContainsFunc(sh.cost, func(n int64) bool { return n != 0 })
	})
}

// priced writes out what r adds to ARGV.
func (r *request) priced() *request {
	fits := "0"
	if r.path == pathAcquire {
		fits = "1"
	}
	r.args = append(r.args, fits)
	for i := range r.shares {
		for _, milli := range r.shares[i].cost {
			r.args = append(r.args, tokens(milli))
		}
	}
	return r
}

// tokens writes millitokens as tokens, exactly.
func tokens(milli int64) any {
	if milli%bucket.Milli == 0 {
		return milli / bucket.Milli
	}
	text := strconv.FormatInt(milli/bucket.Milli, 10)
	if milli < 0 && milli > -bucket.Milli {
		text = "-0"
	}
	part := milli % bucket.Milli
	return text + "." + strconv.FormatInt(bucket.Milli+max(part, -part), 10)[1:]
}

// undo returns a request that gives back what r was charged.
func (r *request) undo() *request {
	back := &request{ctx: context.WithoutCancel(r.ctx), path: pathUndo, script: r.script}
	for _, sh := range r.shares {
		less := make([]int64, len(sh.cost))
		for i, c := range sh.cost {
			less[i] = -c
		}
		back.shares = append(back.shares, share{memory: sh.memory, shape: sh.shape, cost: less})
	}
	return back.priced()
}

// show tells the call what became of its buckets, or, where that is not known, what is remembered of them.
func (r *request) show(ended bool) {
	for i := range r.shares {
		sh := &r.shares[i]
		known, img := sh.known()
		if sh.shape != nil {
			known = sh.shape
		}
		if ended && r.images != nil {
			img = r.images[i]
		}
		for _, b := range sh.buckets {
			b.After, b.Dropped = img, nil
			if known != nil {
				b.Limits = known.limits
			}
		}
	}
}

// result returns how r, which has ended, has ended for its caller.
func (r *request) result() error {
	switch {
	case r.err != nil:
		return r.failure(r.err)
	case r.waits != nil:
		return r.denied()
	}
	return nil
}

// failure is what r's caller is told of err, which others may be told too.
func (r *request) failure(err error) error {
	if _, ok := errors.AsType[*runtime.SetupError](err); ok {
		return err
	}
	return &runtime.UnavailableError{Resource: r.shares[0].spec.Resource, Attempts: r.tries, Err: err}
}

// denied is the error of r, which was refused, with what the script said.
func (r *request) denied() *runtime.DeniedError {
	e, waits := &runtime.DeniedError{}, r.waits
	for i := range r.shares {
		sh := &r.shares[i]
		for j, limit := range sh.spec.Limits {
			if waits[j] == 0 {
				continue
			}
			// A smaller call behind it in the same script call, or a settle, may have changed the level since.
			available := min(r.images[i].Balances[j].Tokens, sh.cost[j]-1)
			e = runtime.AddRefusal(e, runtime.Refusal{
				Resource: sh.spec.Resource, Entity: sh.entity, Limit: limit,
				Requested: sh.cost[j] / bucket.Milli, Available: max(0, available) / bucket.Milli, RetryAfter: milliseconds(waits[j]),
			})
		}
		waits = waits[len(sh.spec.Limits):]
	}
	return e
}

// milliseconds saturates. Beyond int64 Redis answers with what is no time.
func milliseconds(ms int64) time.Duration {
	if ms < 0 || ms > math.MaxInt64/int64(time.Millisecond) {
		return math.MaxInt64
	}
	return time.Duration(ms) * time.Millisecond
}

// leaves returns what to tell r's caller, who leaves before r has ended: its own cancellation as it is, and a deadline as what
// kept r from being done in time. The caller holds the line's lock.
func (r *request) leaves() error {
	sh := &r.shares[0]
	switch {
	case errors.Is(r.ctx.Err(), context.Canceled):
		return fmt.Errorf("sluice: %s for %s: %w", sh.spec.Resource, sh.entity, context.Canceled)
	case r.tries == 0:
		return &runtime.UnavailableError{Resource: sh.spec.Resource, Err: fmt.Errorf("%w: %w", runtime.ErrNotSent, context.DeadlineExceeded)}
	}
	return &runtime.UnavailableError{Resource: sh.spec.Resource, Attempts: r.tries, Err: context.DeadlineExceeded}
}
