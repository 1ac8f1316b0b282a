package dynamo

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/sluice-go/sluice/runtime/bucket"
	"github.com/sluice-go/sluice/runtime/dynamo/internal/pace"
	"github.com/sluice-go/sluice/runtime/dynamo/internal/wire"
	"github.com/sluice-go/sluice/runtime/store"
)

// TestRefusedWriteDenies: a refused write has returned the truth. If that denies, the caller is told so at
// once, on the last attempt too, and not after a pause that nobody needs.
func TestRefusedWriteDenies(t *testing.T) {
	_, embeddings := generated(t)
	for name, attempts := range map[string]int{"with attempts left": DefaultAttempts, "on the last attempt": 1} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				table := newSimTable(1, embeddings.Decode)
				table.minDelay, table.maxDelay = time.Millisecond, time.Millisecond+1
				def := withNumbers(embeddings, 1, bucket.Per(10, time.Minute))
				slow := func(store *Store) {
					store.options.attempts, store.seams.Jitter = attempts, func() float64 { return 0.99 }
				}
				a, b := newProcess(t, table, 1, 0, slow, def), newProcess(t, table, 2, 0, nil, def)
				if _, err := a.acquire(t.Context(), def, []int64{1000}); err != nil {
					t.Fatal(err)
				}
				if _, err := b.acquire(t.Context(), def, []int64{9000}); err != nil {
					t.Fatal(err)
				}
				began := time.Now()
				_, err := a.acquire(t.Context(), def, []int64{5000})
				if _, ok := errors.AsType[*store.DeniedError](err); !ok {
					t.Errorf("the bucket is empty and a refused write has shown it: %v", err)
				}
				if took := time.Since(began); took > 3*time.Millisecond {
					t.Errorf("denied after %v, one round trip is 2ms", took)
				}
			})
		})
	}
}

// TestDeletedBucketIsCreatedAtOnce: a refused write that found nothing raced nobody.
func TestDeletedBucketIsCreatedAtOnce(t *testing.T) {
	_, embeddings := generated(t)
	synctest.Test(t, func(t *testing.T) {
		table := newSimTable(1, embeddings.Decode)
		table.minDelay, table.maxDelay = time.Millisecond, time.Millisecond+1
		def := withNumbers(embeddings, 1, bucket.Per(10, time.Minute))
		p := newProcess(
			t,
			table,
			1,
			0,
			func(store *Store) { store.seams.Jitter = func() float64 { return 0.99 } },
			def,
		)
		if _, err := p.acquire(t.Context(), def, []int64{1000}); err != nil {
			t.Fatal(err)
		}
		clear(table.items)
		began := time.Now()
		if _, err := p.acquire(t.Context(), def, []int64{1000}); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(began); took > 5*time.Millisecond {
			t.Errorf("took %v, two round trips are 4ms", took)
		}
	})
}

// throttledReads fails so many reads.
type throttledReads struct {
	wire.API
	left int
}

func (r *throttledReads) GetItem(
	ctx context.Context,
	in *dynamodb.GetItemInput,
	opts ...func(*dynamodb.Options),
) (*dynamodb.GetItemOutput, error) {
	if r.left > 0 {
		r.left--
		return nil, &types.ProvisionedThroughputExceededException{}
	}
	return r.API.GetItem(ctx, in, opts...)
}

func (r *throttledReads) BatchGetItem(
	ctx context.Context,
	in *dynamodb.BatchGetItemInput,
	opts ...func(*dynamodb.Options),
) (*dynamodb.BatchGetItemOutput, error) {
	if r.left > 0 {
		r.left--
		return nil, &types.ProvisionedThroughputExceededException{}
	}
	return r.API.BatchGetItem(ctx, in, opts...)
}

// evict has another bucket take the only place of p's cache.
func evict(p *process, def store.Definition) {
	p.session.Lookup(&store.Call{Called: p.clock.Now(), Parts: []store.Part{{
		Def: def, Buckets: []store.Bucket{{Entity: "user-2"}}, Cost: []int64{0},
	}}})
}

// TestThrottledReads: a read that failed is tried again, as a write is.
func TestThrottledReads(t *testing.T) {
	_, embeddings := generated(t)
	synctest.Test(t, func(t *testing.T) {
		table := newSimTable(1, embeddings.Decode)
		def := withNumbers(embeddings, 1, perSecond(100))
		api := &throttledReads{API: table, left: 3}
		p := newProcess(t, api, 1, 0, option(ImageCache(1)), def)
		call, err := p.acquire(t.Context(), def, []int64{1000})
		if err != nil {
			t.Fatal(err)
		}
		evict(p, def) // so that the settle has to read
		api.left = 12 // more than an acquire's attempts
		if err := p.settle(t.Context(), call, []int64{5000}); err != nil {
			t.Errorf("a settle has its time-out: %v", err)
		}
		evict(p, def)
		api.left = 1 + pace.MostUnanswered
		_, err = p.acquire(t.Context(), def, []int64{1000})
		if u, ok := errors.AsType[*store.UnavailableError](err); !ok || u.Attempts != 1+pace.MostUnanswered {
			t.Errorf("a bucket has %d retries until one is answered: %v", pace.MostUnanswered, err)
		}
	})
}

// TestThrottledReadPauses: after a throttled read the next one goes when the bucket's gap says, as a write
// does, without another pause. A call that only reads keeps to the gap too.
func TestThrottledReadPauses(t *testing.T) {
	_, embeddings := generated(t)
	synctest.Test(t, func(t *testing.T) {
		table := newSimTable(1, embeddings.Decode)
		table.minDelay, table.maxDelay = time.Millisecond, time.Millisecond+1
		def := withNumbers(embeddings, 1, perSecond(100))
		api := &throttledReads{API: table, left: 1}
		slow := func(store *Store) {
			store.options.buckets, store.seams.Jitter = 1, func() float64 { return 0.99 }
		}
		p := newProcess(t, api, 1, 0, slow, def)
		began := time.Now()
		if _, err := p.acquire(t.Context(), def, []int64{1000}); err != nil {
			t.Fatal(err)
		}
		// The first gap is a millisecond, and a round trip takes two.
		if took := time.Since(began); took > 6*time.Millisecond {
			t.Errorf("took %v, want a gap and two round trips", took)
		}
		api.left = 8
		call := &store.Call{Called: p.clock.Now(), Parts: []store.Part{{
			Def: def, Buckets: []store.Bucket{{Entity: "user-1"}}, Cost: []int64{0},
		}}}
		evict(p, def)
		began = time.Now()
		if err := p.session.Peek(t.Context(), call); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(began); took < 50*time.Millisecond {
			t.Errorf("8 throttled reads took %v: they did not keep to the gap", took)
		}
	})
}

// TestReleaseOfDeletedBucket: a bucket that is gone is full, so nothing is written, and the release reports
// that there is no bucket: not the image of the acquire, which has less.
func TestReleaseOfDeletedBucket(t *testing.T) {
	_, embeddings := generated(t)
	synctest.Test(t, func(t *testing.T) {
		table := newSimTable(1, embeddings.Decode)
		def := withNumbers(embeddings, 1, bucket.Per(10, time.Minute))
		p := newProcess(t, table, 1, 0, nil, def)
		acquired, err := p.acquire(t.Context(), def, []int64{4000})
		if err != nil {
			t.Fatal(err)
		}
		clear(table.items)
		part := acquired.Parts[0]
		part.Actual = []int64{0}
		release := &store.Call{Called: p.clock.Now(), Parts: []store.Part{part}}
		if err := p.session.Settle(t.Context(), release); err != nil {
			t.Fatal(err)
		}
		b := release.Parts[0].Buckets[0]
		if b.After != nil || len(b.Limits) != 1 || len(table.items) != 0 {
			t.Errorf("%+v in force, %+v left, %d items, want no bucket", b.Limits, b.After, len(table.items))
		}
	})
}
