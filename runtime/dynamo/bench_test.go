package dynamo

import (
	"context"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/sluice-go/sluice/runtime/bucket"
	"github.com/sluice-go/sluice/runtime/dynamo/codec"
	"github.com/sluice-go/sluice/runtime/dynamo/internal/wire"
	"github.com/sluice-go/sluice/runtime/store"
)

// canned answers every read and every update with the same item.
type canned struct {
	wire.API
	item codec.Item
	out  dynamodb.UpdateItemOutput
}

// newCanned returns an API with the bucket of user-1, less cost.
func newCanned(def codec.Resource, limit bucket.Limit, cost int64) *canned {
	w := &codec.Write{
		Entity: "user-1",
		Limits: []bucket.Limit{limit},
		Cost:   []int64{cost},
		RF:     time.Now().UnixMilli(),
		CV:     bucket.RevisionUnit,
		TTL:    1 << 40,
		Op:     "x",
	}
	def.Create(w)
	return &canned{item: w.Item, out: dynamodb.UpdateItemOutput{Attributes: w.Item}}
}

func (c *canned) UpdateItem(
	context.Context,
	*dynamodb.UpdateItemInput,
	...func(*dynamodb.Options),
) (*dynamodb.UpdateItemOutput, error) {
	return &c.out, nil
}

func (c *canned) BatchGetItem(
	_ context.Context,
	in *dynamodb.BatchGetItemInput,
	_ ...func(*dynamodb.Options),
) (*dynamodb.BatchGetItemOutput, error) {
	out := &dynamodb.BatchGetItemOutput{Responses: map[string][]codec.Item{}}
	for table := range in.RequestItems {
		out.Responses[table] = []codec.Item{c.item}
	}
	return out, nil
}

func BenchmarkAcquire(b *testing.B) {
	_, embeddings := generated(b)
	limit := perSecond(1_000_000)
	def := withNumbers(embeddings, 1, limit)
	p := newProcess(b, newCanned(def, limit, 0), 1, 0, nil, def)
	call := &store.Call{
		Called:   p.clock.Now(),
		Deadline: time.Now().Add(time.Hour),
		Parts:    []store.Part{{Def: def, Buckets: []store.Bucket{{Entity: "user-1"}}, Cost: []int64{1000}}},
	}
	if err := p.session.Acquire(b.Context(), call); err != nil { // it reads
		b.Fatal(err)
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
	limit := perSecond(10)
	def := withNumbers(embeddings, 1, limit)
	p := newProcess(b, newCanned(def, limit, limit.Burst), 1, 0, nil, def)
	call := &store.Call{
		Called: p.clock.Now(),
		Parts:  []store.Part{{Def: def, Buckets: []store.Bucket{{Entity: "user-1"}}, Cost: []int64{1000}}},
	}
	if err := p.session.Acquire(b.Context(), call); !isA[*store.DeniedError](err) { // it reads
		b.Fatal(err)
	}
	now := time.Now().UnixMilli()
	chain, cost := []store.Link{{ID: "1"}}, []int64{1000}
	b.ReportAllocs()
	for b.Loop() {
		if p.session.Refused(def, chain, cost, now) == nil {
			b.Fatal("admitted")
		}
	}
}
