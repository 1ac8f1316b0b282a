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
	"github.com/sluice-go/sluice/runtime/redisstore/internal/window"
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
	epochs [][]int64       // of each portion and limit, that of what a call takes then; nil without holds
	// of each key, the ms until it would not deny; nil unless the request was denied
	retryAfter []int64
	extended   []int64 // of each key, the epoch of its holds after an extension; else nil
	err        error
}

// portion is what a request charges to one bucket.
type portion struct {
	*cachedBucket

	spec      *store.Spec        // of the call: a bucket of all names of a template has no name
	plan      store.OnPlan       // by which the call has it
	inForce   *limitSet          // nil until the overrides have been read
	calendars []*bucket.Calendar // by limit; nil if none has windows
	cost      []int64            // in millitokens, negative where tokens are refunded to a limit that refills
	back      []window.GiveBack  // what is refunded to windows, and the holds that end or are extended
	buckets   []*store.Bucket    // of the call: several parts may charge the same bucket
}

// Paths, as observers see them.
const (
	pathAcquire = "acquire"
	pathSettle  = "settle"
	pathPeek    = "peek"
	pathExtend  = "extend"
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
	r.script = scriptOf(s, call)
	for i := range call.Parts {
		part := &call.Parts[i]
		of, c := defined(s.resources, part.Def), cost(part)
		if name, ok := part.Def.(*store.Named); ok {
			of = of.named(name.Spec())
		}
		root := cmp.Or(part.Root, part.Buckets[len(part.Buckets)-1].Entity)
		for j := range part.Buckets {
			b := &part.Buckets[j]
			p := portion{
				cachedBucket: of.lookup(s, b.Kind, root, b.Entity), spec: of.spec, plan: b.Plan,
				cost: of.spec.CostOf(b.Kind, c),
			}
			if path == pathSettle || path == pathExtend {
				p.plan = p.latest(p.plan)
			}
			if p.calendars = b.Calendars(of.spec); path == pathSettle && of.needs > plain {
				p.cost, p.back = window.Split(b.Charges, p.calendars, of.spec.Held, p.cost)
			}
			// Compare keys, not pointers: the cache may have dropped the bucket since, and returned another
			// one.
			at := slices.IndexFunc(r.portions, func(o portion) bool { return o.keys[0] == p.keys[0] })
			if at >= 0 {
				r.portions[at].merge(b, &p)
				continue
			}
			if len(r.portions) == 0 {
				p.buckets = single.bucket[:0]
			}
			p.buckets = append(p.buckets, b)
			r.portions = append(r.portions, p)
		}
	}
	return r
}

// scriptOf returns the script that serves call.
func scriptOf(s *session, call *store.Call) *script {
	if len(call.Parts) == 1 {
		return defined(s.resources, call.Parts[0].Def).script(len(call.Parts[0].Buckets))
	}
	needs := plain
	for i := range call.Parts {
		needs = max(needs, defined(s.resources, call.Parts[i].Def).needs)
	}
	return s.loops[needs]
}

// merge adds another part's portion of the same bucket, b of the call.
func (p *portion) merge(b *store.Bucket, other *portion) {
	p.cost = slices.Clone(p.cost)
	for i := range p.cost {
		p.cost[i] = bucket.Add(p.cost[i], other.cost[i])
	}
	p.back = append(p.back, other.back...)
	p.buckets = append(p.buckets, b)
}

// hasCost reports whether there is anything to write.
func (r *request) hasCost() bool {
	return slices.ContainsFunc(r.portions, func(p portion) bool {
		return len(p.back) > 0 || slices.ContainsFunc(p.cost, func(n int64) bool { return n != 0 })
	})
}

// encode fills in r's part of ARGV.
func (r *request) encode() *request {
	fits := "0"
	switch r.path {
	case pathAcquire:
		fits = "1"
	case pathExtend:
		fits = "2"
	}
	r.args = append(r.args, fits)
	for i := range r.portions {
		p := &r.portions[i]
		for _, limit := range p.has {
			if held := p.held(limit); held || p.inForce.Limits[limit].Windowed() {
				r.args = window.Append(r.args, limit, held, p.cost[limit], p.back)
				continue
			}
			r.args = append(r.args, text.Tokens(p.cost[limit]))
		}
	}
	return r
}

// refundRequest returns a request that refunds what r was charged, to the windows and out of the epochs that
// the reply has shown.
func (r *request) refundRequest() *request {
	refund := &request{ctx: context.WithoutCancel(r.ctx), path: pathRefund, script: r.script}
	for i := range r.portions {
		p := r.portions[i]
		taken := bucket.Charge{Cost: p.cost, Ends: make([]int64, len(p.cost)), Epochs: r.epochs[i]}
		back := portion{cachedBucket: p.cachedBucket, spec: p.spec, inForce: p.inForce, calendars: p.calendars,
			cost: make([]int64, len(p.cost))}
		for j, c := range p.cost {
			back.cost[j], taken.Ends[j] = -c, r.images[i].Balances[j].Ends
		}
		back.cost, back.back = window.Split([]bucket.Charge{taken}, p.calendars, p.spec.Held, back.cost)
		refund.portions = append(refund.portions, back)
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
			b.After, b.Dropped, b.Ends = img, nil, img.Ends()
			if inForce != nil {
				b.Limits = inForce.Limits
			}
			if ended && r.path == pathAcquire && r.err == nil && r.retryAfter == nil {
				b.Epochs = r.taken(i)
			}
		}
	}
}

// taken returns the epochs in which what r took of its i-th portion is held, by limit: nil if nothing is.
func (r *request) taken(i int) (epochs []int64) {
	for limit, c := range r.portions[i].cost {
		if c <= 0 || r.epochs[i] == nil || r.epochs[i][limit] == 0 {
			continue
		}
		if epochs == nil {
			epochs = make([]int64, len(r.epochs[i]))
		}
		epochs[limit] = r.epochs[i][limit]
	}
	return epochs
}

// result returns the error for the caller of r, which has ended.
func (r *request) result() error {
	switch {
	case r.err != nil:
		return r.failure(r.err)
	case r.retryAfter != nil:
		if err := r.exceeds(); err != nil {
			return err
		}
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
			refusal := store.Refusal{
				Resource: p.spec.Resource, Template: p.spec.Template, Entity: p.entity, Limit: p.spec.Limits[j],
				Unit: p.spec.Unit(j), Requested: p.spec.Whole(j, p.cost[j]),
				Available:  p.spec.Whole(j, max(0, available)),
				RetryAfter: text.Milliseconds(retryAfter[key]), Resets: resets(r.images[i].Balances[j]),
			}
			if r.images[i].Balances[j].Prepaid() {
				refusal.RetryAfter = store.UntilGrant
			}
			e = store.AddRefusal(e, refusal)
		}
		retryAfter = retryAfter[len(p.has):]
	}
	return e
}

// resets returns the end of the window of b that has refused a request, zero if b refills or is prepaid.
// Redis's clock has decided that it is open.
func resets(b bucket.Balance) time.Time {
	if !b.Windowed() || b.Prepaid() {
		return time.Time{}
	}
	return time.UnixMilli(b.Ends)
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
