package dynamo

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"

	"github.com/sluice-go/sluice/runtime"
	"github.com/sluice-go/sluice/runtime/bucket"
)

// leg is one bucket of a call, and what is known of it while the call is under way.
type leg struct {
	*resource
	want

	entity  string // as stored
	kind    int
	buckets []*runtime.Bucket // the call's: several parts may meet in one
	memory  *memory
	view    view

	lacks    lack
	withKind bool // its kind's overrides are read with its own
	resolved bool // its overrides were read in this call

	plan   plan
	passed bool  // the condition of plan held, in a transaction that failed elsewhere
	sent   *plan // the last that may have been applied
}

// mostLegs is how many actions one transaction takes.
const mostLegs = 100

// legs returns the buckets of call, each once. Costs of parts that meet in one are added up: DynamoDB refuses two
// operations on one item.
func (s *session) legs(call *runtime.Call, cost func(*runtime.Part, *runtime.Bucket) []int64) ([]*leg, error) {
	legs := make([]*leg, 0, len(call.Parts[0].Buckets))
	for i := range call.Parts {
		part := &call.Parts[i]
		r := s.resources[part.Def]
		for j := range part.Buckets {
			b := &part.Buckets[j]
			at := slices.IndexFunc(legs, func(l *leg) bool { return l.resource == r && l.entity == b.Entity })
			if at >= 0 {
				legs[at].join(b, cost(part, b))
				continue
			}
			legs = append(legs, s.leg(r, b, want{cost: cost(part, b), called: call.Called.UnixMilli()}))
		}
	}
	if len(legs) > mostLegs {
		return nil, &runtime.InvalidError{Resource: legs[0].spec.Resource, Field: "claims", Value: strconv.Itoa(len(legs)),
			Reason: fmt.Sprintf("are too many buckets: one transaction takes %d, so split the call", mostLegs)}
	}
	return legs, nil
}

func (s *session) leg(r *resource, b *runtime.Bucket, w want) *leg {
	m := s.recall(bucketKey{r, b.Entity})
	l := &leg{resource: r, want: w, entity: b.Entity, kind: b.Kind, buckets: []*runtime.Bucket{b}, memory: m}
	l.view.img = m.image.Load()
	l.show(l.view.img)
	if known := m.shape.Load(); known != nil {
		l.take(known)
	}
	return l
}

// join adds another part's share of the same bucket.
func (l *leg) join(b *runtime.Bucket, cost []int64) {
	l.cost = slices.Clone(l.cost)
	for i := range l.cost {
		l.cost[i] = bucket.Add(l.cost[i], cost[i])
	}
	l.buckets = append(l.buckets, b)
	b.After, b.Limits = l.view.img, l.buckets[0].Limits
}

// learn makes img, nil for a missing bucket, what is known. It is true unless it was predicted.
func (l *leg) learn(img *bucket.Image, truth bool) {
	l.view.img, l.view.truth = img, truth
	l.memory.image.Store(img)
	l.show(img)
}

// show tells the caller of img.
func (l *leg) show(img *bucket.Image) {
	for _, b := range l.buckets {
		b.After = img
	}
}

// take makes s the shape that the bucket should have.
func (l *leg) take(s *shape) {
	l.shape = s
	for _, b := range l.buckets {
		b.Limits = s.limits
	}
}

// Acquire implements runtime.Session. One part goes as its resource's cascade says, several go together.
func (s *session) Acquire(ctx context.Context, call *runtime.Call) error {
	if !call.Deadline.IsZero() {
		var cancel context.CancelFunc
		ctx, cancel = context.WithDeadline(ctx, call.Deadline)
		defer cancel()
	}
	legs, err := s.legs(call, asked)
	if err != nil {
		return err
	}
	if len(call.Parts) == 1 && legs[0].spec.Cascade == runtime.CascadeCompensated {
		return s.compensated(ctx, legs)
	}
	return s.charge(ctx, legs)
}

// Refused implements runtime.Session. Nothing is refused by what is remembered.
func (*session) Refused(runtime.Definition, []runtime.Link, []int64, int64) *runtime.DeniedError {
	return nil
}

// asked is what an acquire takes of each bucket of a part.
func asked(part *runtime.Part, _ *runtime.Bucket) []int64 { return part.Cost }

// Settle implements runtime.Session. What the acquire could not charge, because a bucket had no such limit, is neither
// charged nor given back now. Each bucket is settled on its own and at its own price, a write unit: all or none, which a
// transaction would give, is not needed for what has been admitted.
func (s *session) Settle(ctx context.Context, call *runtime.Call) error {
	legs, err := s.legs(call, difference)
	if err != nil {
		return err
	}
	return s.settle(ctx, legs)
}

// difference is what a settle adds to a bucket's charge.
func difference(part *runtime.Part, b *runtime.Bucket) []int64 {
	cost := make([]int64, len(part.Cost))
	for i := range cost {
		if b.Dropped == nil || !b.Dropped[i] {
			cost[i] = bucket.Sub(part.Actual[i], part.Cost[i])
		}
	}
	return cost
}

// settle writes each leg's cost, where it is any, side by side.
func (s *session) settle(ctx context.Context, legs []*leg) error {
	legs = slices.DeleteFunc(legs, func(l *leg) bool {
		return !slices.ContainsFunc(l.cost, func(n int64) bool { return n != 0 })
	})
	errs := make([]error, len(legs))
	var running sync.WaitGroup
	for i, l := range legs {
		l.settle = true
		if i == len(legs)-1 { // the last, mostly the only one, on this goroutine
			errs[i] = s.charge(ctx, []*leg{l})
			break
		}
		running.Go(func() { errs[i] = s.charge(ctx, []*leg{l}) })
	}
	running.Wait()
	return errors.Join(errs...)
}

// Peek implements runtime.Session.
func (s *session) Peek(ctx context.Context, call *runtime.Call) error {
	legs, err := s.legs(call, asked)
	if err != nil {
		return err
	}
	c := s.newCharge(legs)
	if err := c.peek(ctx); err != nil {
		return err
	}
	now := s.now()
	for _, l := range legs {
		if img := l.view.img; img != nil && outdated(img, l.shape) { // as the next acquire will find it
			p := planReshape(make([]int64, len(l.shape.limits)), img, l.shape, now)
			l.show(p.predict(img.Op))
		}
	}
	return nil
}

// Recall implements runtime.Session. Whatever is remembered of a bucket is shown as its leg is made; too many of them
// are an error for those alone who charge them.
func (s *session) Recall(call *runtime.Call) {
	_, _ = s.legs(call, asked)
}
