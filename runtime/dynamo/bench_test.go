package dynamo

import (
	"context"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/sluice-go/sluice/runtime/bucket"
	"github.com/sluice-go/sluice/runtime/dynamo/codec"
	"github.com/sluice-go/sluice/runtime/dynamo/internal/override"
	"github.com/sluice-go/sluice/runtime/dynamo/internal/plan"
	"github.com/sluice-go/sluice/runtime/dynamo/internal/wire"
	"github.com/sluice-go/sluice/runtime/store"
)

// canned answers every update with the same item.
type canned struct {
	wire.API
	out dynamodb.UpdateItemOutput
}

func (c *canned) UpdateItem(
	context.Context,
	*dynamodb.UpdateItemInput,
	...func(*dynamodb.Options),
) (*dynamodb.UpdateItemOutput, error) {
	return &c.out, nil
}

func BenchmarkAcquire(b *testing.B) {
	_, embeddings := generated(b)
	def := withNumbers(embeddings, 1, perSecond(1_000_000))
	api := &canned{}
	w := &codec.Write{
		Entity: "user-1",
		Limits: []bucket.Limit{perSecond(1_000_000)},
		Cost:   []int64{0},
		RF:     time.Now().UnixMilli(),
		CV:     bucket.RevisionUnit,
		TTL:    1 << 40,
		Op:     "x",
	}
	def.Create(w)
	api.out.Attributes = w.Item
	p := newProcess(b, api, 1, 0, nil, def)
	img := &bucket.Image{}
	if err := def.Decode(img, w.Item); err != nil {
		b.Fatal(err)
	}
	m := p.session.scheduler.cache.lookup(p.session.scheduler.resource(def), 0, "user-1")
	m.known.Update(img, time.Now().UnixMilli())
	m.known.SetShape(
		&override.Resolved{
			Shape:  plan.Shape{Limits: []bucket.Limit{img.Balances[0].Limit}, Version: bucket.RevisionUnit},
			ReadAt: time.Now().UnixMilli(),
		},
		nil,
	)
	call := &store.Call{
		Called:   p.clock.Now(),
		Deadline: time.Now().Add(time.Hour),
		Parts:    []store.Part{{Def: def, Buckets: []store.Bucket{{Entity: "user-1"}}, Cost: []int64{1000}}},
	}
	b.ReportAllocs()
	for b.Loop() {
		if err := p.session.Acquire(b.Context(), call); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkRefused(b *testing.B) {
	_, embeddings := generated(b)
	def := withNumbers(embeddings, 1, perSecond(10))
	p := newProcess(b, &canned{}, 1, 0, nil, def)
	now := time.Now().UnixMilli()
	m := p.session.scheduler.cache.lookup(p.session.scheduler.resource(def), 0, "user-1")
	m.known.Update(
		&bucket.Image{
			Refilled: now,
			Version:  bucket.RevisionUnit,
			Balances: []bucket.Balance{{Limit: perSecond(10)}},
			Missing:  []bool{false},
		},
		now,
	)
	m.known.SetShape(
		&override.Resolved{
			Shape:  plan.Shape{Limits: []bucket.Limit{perSecond(10)}, Version: bucket.RevisionUnit},
			ReadAt: now,
		},
		nil,
	)
	chain, cost := []store.Link{{ID: "1"}}, []int64{1000}
	b.ReportAllocs()
	for b.Loop() {
		if p.session.Refused(def, chain, cost, now) == nil {
			b.Fatal("admitted")
		}
	}
}
