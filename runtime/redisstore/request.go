package redisstore

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/sluice-go/sluice/runtime/bucket"
	"github.com/sluice-go/sluice/runtime/redisstore/internal/text"
	"github.com/sluice-go/sluice/runtime/store"
)

// request is one caller's charge of its buckets, all or none.
type request struct {
	ctx         context.Context
	deadline    time.Time   // the caller's, the context's included; zero for none
	fromContext bool        // deadline is the context's: the context fires by itself
	path        string      // as observers see it
	later       func(error) // called with the outcome where no caller waits; else nil
	parts       int         // of the call
	script      *script
	portions    []portion
	args        []any // its part of ARGV: whether it has to fit, and its cost of each key in tokens

	// The queue's lock guards these until the request has ended.
	pipeline  *pipeline     // that carries it; nil while it waits for one
	attempts  int           // made for it
	abandoned bool          // its caller has left before it ended
	ended     bool          // images, retryAfter and err are set
	done      chan struct{} // closed when it has ended

	images []*bucket.Image // of each portion, as the script call left it; nil where that is not known
	// of each key, the ms until it would not deny; nil unless the request was denied
	retryAfter []int64
	err        error
}

// portion is what a request charges to one bucket.
type portion struct {
	*cachedBucket

	inForce *limitSet       // nil until the overrides have been read
	cost    []int64         // in millitokens, negative where tokens are refunded
	buckets []*store.Bucket // of the call: several parts may charge the same bucket
}

// Paths, as observers see them.
const (
	pathAcquire = "acquire"
	pathSettle  = "settle"
	pathPeek    = "peek"
	pathRefund  = "undo" // refunds a charge whose caller had left
)

// newRequest returns the request for call, with each bucket once: the costs of parts that charge the same
// bucket are added up. A request for one bucket, as most are, is one allocation.
func (s *session) newRequest(
	ctx context.Context, call *store.Call, path string, cost func(*store.Part) []int64,
) *request {
	single := &struct { // all that a request for one bucket needs
		request
		portion [1]portion
		bucket  [1]*store.Bucket
		args    [2]any
	}{}
	r := &single.request
	r.ctx, r.deadline, r.path, r.parts = ctx, call.Deadline, path, len(call.Parts)
	r.portions, r.args = single.portion[:0], single.args[:0]
	if d, ok := ctx.Deadline(); ok && (r.deadline.IsZero() || d.Before(r.deadline)) {
		r.deadline, r.fromContext = d, true
	}
	r.script = s.fallback
	if len(call.Parts) == 1 {
		r.script = s.resource(call.Parts[0].Def).script(len(call.Parts[0].Buckets))
	}
	for i := range call.Parts {
		part := &call.Parts[i]
		of, c := s.resource(part.Def), cost(part)
		root := cmp.Or(part.Root, part.Buckets[len(part.Buckets)-1].Entity)
		for j := range part.Buckets {
			b := &part.Buckets[j]
			own := of.spec.CostOf(b.Kind, c)
			cached := s.lookup(of, b.Kind, root, b.Entity)
			// Compare keys, not pointers: the cache may have dropped the bucket since, and returned another
			// one.
			at := slices.IndexFunc(r.portions, func(p portion) bool { return p.keys[0] == cached.keys[0] })
			if at >= 0 {
				r.portions[at].merge(b, own)
				continue
			}
			p := portion{cachedBucket: cached, cost: own}
			if len(r.portions) == 0 {
				p.buckets = single.bucket[:0]
			}
			p.buckets = append(p.buckets, b)
			r.portions = append(r.portions, p)
		}
	}
	return r
}

// merge adds another part's cost of the same bucket.
func (p *portion) merge(b *store.Bucket, cost []int64) {
	p.cost = slices.Clone(p.cost)
	for i := range p.cost {
		p.cost[i] = bucket.Add(p.cost[i], cost[i])
	}
	p.buckets = append(p.buckets, b)
}

// hasCost reports whether there is anything to write.
func (r *request) hasCost() bool {
	return slices.ContainsFunc(r.portions, func(p portion) bool {
		return slices.ContainsFunc(p.cost, func(n int64) bool { return n != 0 })
	})
}

// encode fills in r's part of ARGV.
func (r *request) encode() *request {
	fits := "0"
	if r.path == pathAcquire {
		fits = "1"
	}
	r.args = append(r.args, fits)
	for i := range r.portions {
		p := &r.portions[i]
		for _, limit := range p.has {
			r.args = append(r.args, text.Tokens(p.cost[limit]))
		}
	}
	return r
}

// refundRequest returns a request that refunds what r was charged.
func (r *request) refundRequest() *request {
	refund := &request{ctx: context.WithoutCancel(r.ctx), path: pathRefund, script: r.script}
	for _, p := range r.portions {
		cost := make([]int64, len(p.cost))
		for i, c := range p.cost {
			cost[i] = -c
		}
		refund.portions = append(refund.portions, portion{cachedBucket: p.cachedBucket, inForce: p.inForce,
			cost: cost})
	}
	return refund.encode()
}

// fillCall fills in the call's buckets: as r left them if it has ended, else as they were last seen.
func (r *request) fillCall(ended bool) {
	for i := range r.portions {
		p := &r.portions[i]
		inForce, img := p.snapshot()
		if p.inForce != nil {
			inForce = p.inForce
		}
		if ended && r.images != nil {
			img = r.images[i]
		}
		for _, b := range p.buckets {
			b.After, b.Dropped = img, nil
			if inForce != nil {
				b.Limits = inForce.limits
			}
		}
	}
}

// result returns the error for the caller of r, which has ended.
func (r *request) result() error {
	switch {
	case r.err != nil:
		return r.failure(r.err)
	case r.retryAfter != nil:
		return r.deniedError()
	}
	return nil
}

// failure returns the error for r's caller where its script call failed with err. Other requests may share
// err.
func (r *request) failure(err error) error {
	if _, ok := errors.AsType[*store.SetupError](err); ok {
		return err
	}
	return &store.UnavailableError{Resource: r.portions[0].spec.Resource, Attempts: r.attempts, Err: err}
}

// deniedError returns the error of r, which the script has denied.
func (r *request) deniedError() *store.DeniedError {
	e, retryAfter := &store.DeniedError{}, r.retryAfter
	for i := range r.portions {
		p := &r.portions[i]
		for key, j := range p.has {
			if retryAfter[key] == 0 {
				continue
			}
			// A smaller request after it in the same script call, or a settle, may have changed the balance
			// since.
			available := min(r.images[i].Balances[j].Tokens, p.cost[j]-1)
			e = store.AddRefusal(e, store.Refusal{
				Resource: p.spec.Resource, Entity: p.entity, Limit: p.spec.Limits[j],
				Requested: p.cost[j] / bucket.Milli, Available: max(0, available) / bucket.Milli,
				RetryAfter: text.Milliseconds(retryAfter[key]),
			})
		}
		retryAfter = retryAfter[len(p.has):]
	}
	return e
}

// abandonedError returns the error for a caller that leaves before r has ended: its own cancellation, or an
// *store.UnavailableError for a deadline. The caller holds the queue's lock.
func (r *request) abandonedError() error {
	p := &r.portions[0]
	switch {
	case errors.Is(r.ctx.Err(), context.Canceled):
		return fmt.Errorf("sluice: %s for %s: %w", p.spec.Resource, store.Quote(p.entity), context.Canceled)
	case r.attempts == 0:
		err := fmt.Errorf("%w: %w", store.ErrNotSent, context.DeadlineExceeded)
		return &store.UnavailableError{Resource: p.spec.Resource, Err: err}
	}
	return &store.UnavailableError{
		Resource: p.spec.Resource, Attempts: r.attempts, Err: context.DeadlineExceeded,
	}
}
