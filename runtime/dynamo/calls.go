package dynamo

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/sluice-go/sluice/runtime"
	"github.com/sluice-go/sluice/runtime/bucket"
)

// slot is one bucket of a call while its write is under way.
type slot struct {
	*resource
	bucket *runtime.Bucket
	memory *memory
	shape  *shape
	view   view
}

func (s *session) slot(part *runtime.Part, b *runtime.Bucket) *slot {
	r := s.resources[part.Def]
	m := s.recall(bucketKey{r.spec.Resource, b.Entity})
	return &slot{resource: r, bucket: b, memory: m, shape: &r.shapes[b.Kind], view: view{img: m.image.Load()}}
}

// learn makes img, nil for a missing bucket, what is known and true.
func (b *slot) learn(img *bucket.Image) {
	b.view.img, b.view.truth = img, true
	b.memory.image.Store(img)
	b.bucket.After = img
}

// Acquire implements runtime.Session.
func (s *session) Acquire(ctx context.Context, call *runtime.Call) error {
	return s.each(call, func(part *runtime.Part, b *slot) error {
		return s.charge(ctx, b, &want{cost: part.Cost, called: call.Called.UnixMilli(), shape: b.shape})
	})
}

// Settle implements runtime.Session. What the acquire could not charge, because the bucket had no such limit, is neither
// charged nor given back now.
func (s *session) Settle(ctx context.Context, call *runtime.Call) error {
	return s.each(call, func(part *runtime.Part, b *slot) error {
		cost := make([]int64, len(part.Cost))
		for i := range cost {
			if b.bucket.Dropped == nil || !b.bucket.Dropped[i] {
				cost[i] = bucket.Sub(part.Actual[i], part.Cost[i])
			}
		}
		if !slices.ContainsFunc(cost, func(n int64) bool { return n != 0 }) {
			return nil
		}
		return s.charge(ctx, b, &want{cost: cost, settle: true, called: call.Called.UnixMilli(), shape: b.shape})
	})
}

// Peek implements runtime.Session.
func (s *session) Peek(ctx context.Context, call *runtime.Call) error {
	return s.each(call, func(_ *runtime.Part, b *slot) error {
		switch o, err := s.read(ctx, b); {
		case o == fatal:
			return err
		case o != applied && errors.Is(ctx.Err(), context.Canceled):
			return fmt.Errorf("sluice: %s for %s: %w", b.spec.Resource, b.bucket.Entity, ctx.Err())
		case o != applied:
			return &runtime.UnavailableError{Resource: b.spec.Resource, Attempts: 1, Err: err}
		}
		if img := b.view.img; img != nil && outdated(img, b.shape) {
			b.bucket.After = b.reshaped(img, s.now())
		}
		return nil
	})
}

// each runs do on every bucket of call.
func (s *session) each(call *runtime.Call, do func(*runtime.Part, *slot) error) error {
	for i := range call.Parts {
		part := &call.Parts[i]
		for j := range part.Buckets {
			if err := do(part, s.slot(part, &part.Buckets[j])); err != nil {
				return err
			}
		}
	}
	return nil
}

// reshaped returns img as the next acquire will find it.
func (b *slot) reshaped(img *bucket.Image, now int64) *bucket.Image {
	p := planReshape(make([]int64, len(b.shape.limits)), img, b.shape, now)
	after := &bucket.Image{
		Refilled: p.rf, Version: p.cv, TTL: img.TTL, Op: img.Op,
		Balances: bucket.Full(b.shape.limits), Missing: make([]bool, len(b.shape.limits)),
	}
	for i, old := range img.Balances {
		if !img.Missing[i] {
			after.Balances[i].Tokens, after.Balances[i].Consumed = old.Tokens+p.fill[i], old.Consumed
		}
	}
	return after
}
