package dynamo

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/sluice-go/sluice/runtime"
	"github.com/sluice-go/sluice/runtime/bucket"
	"github.com/sluice-go/sluice/runtime/dynamo/codec"
	"github.com/sluice-go/sluice/runtime/dynamo/internal/known"
	"github.com/sluice-go/sluice/runtime/dynamo/internal/wire"
	"github.com/sluice-go/sluice/runtime/internal/item"
	"github.com/sluice-go/sluice/runtime/store"
)

// gate is an API that, while it is shut, holds what is sent about one entity until the test lets it through.
// A request whose sender stops waiting never gets there.
type gate struct {
	wire.API
	entity string

	mu     sync.Mutex
	passes chan struct{} // nil: open
}

func (g *gate) shut() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.passes = make(chan struct{})
}

// pass lets one call through, and returns once there was one.
func (g *gate) pass() { g.passes <- struct{}{} }

func (g *gate) open() {
	g.mu.Lock()
	defer g.mu.Unlock()
	close(g.passes)
	g.passes = nil
}

func (g *gate) wait(ctx context.Context, keys ...codec.Item) error {
	g.mu.Lock()
	passes := g.passes
	g.mu.Unlock()
	held := false
	for _, key := range keys {
		held = held || item.KeyOf(key).PK == "ENTITY#"+g.entity
	}
	if passes == nil || !held {
		return nil
	}
	select {
	case <-passes:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (g *gate) GetItem(
	ctx context.Context,
	in *dynamodb.GetItemInput,
	opts ...func(*dynamodb.Options),
) (*dynamodb.GetItemOutput, error) {
	if err := g.wait(ctx, in.Key); err != nil {
		return nil, err
	}
	return g.API.GetItem(ctx, in, opts...)
}

func (g *gate) BatchGetItem(
	ctx context.Context,
	in *dynamodb.BatchGetItemInput,
	opts ...func(*dynamodb.Options),
) (*dynamodb.BatchGetItemOutput, error) {
	for _, wanted := range in.RequestItems {
		if err := g.wait(ctx, wanted.Keys...); err != nil {
			return nil, err
		}
	}
	return g.API.BatchGetItem(ctx, in, opts...)
}

func (g *gate) PutItem(
	ctx context.Context,
	in *dynamodb.PutItemInput,
	opts ...func(*dynamodb.Options),
) (*dynamodb.PutItemOutput, error) {
	if err := g.wait(ctx, in.Item); err != nil {
		return nil, err
	}
	return g.API.PutItem(ctx, in, opts...)
}

func (g *gate) UpdateItem(
	ctx context.Context,
	in *dynamodb.UpdateItemInput,
	opts ...func(*dynamodb.Options),
) (*dynamodb.UpdateItemOutput, error) {
	if err := g.wait(ctx, in.Key); err != nil {
		return nil, err
	}
	return g.API.UpdateItem(ctx, in, opts...)
}

func (g *gate) TransactWriteItems(
	ctx context.Context,
	in *dynamodb.TransactWriteItemsInput,
	opts ...func(*dynamodb.Options),
) (*dynamodb.TransactWriteItemsOutput, error) {
	for _, w := range in.TransactItems {
		key := codec.Item{}
		switch {
		case w.Put != nil:
			key = w.Put.Item
		case w.Update != nil:
			key = w.Update.Key
		}
		if err := g.wait(ctx, key); err != nil {
			return nil, err
		}
	}
	return g.API.TransactWriteItems(ctx, in, opts...)
}

// spending is what a row of the budget works with: two processes, whose calls are metered together. Projects
// have 1000 an hour and users 100, so that a second brings less than a token.
type spending struct {
	*testing.T
	*engine
	m        *meter
	gate     *gate // of the first process, for project-1
	h, other *house
	lease    *runtime.Lease[tokens]
}

func spend(t *testing.T, e *engine, m *meter, cascade store.Cascade) *spending {
	t.Helper()
	s := &spending{T: t, engine: e, m: m, gate: &gate{API: m, entity: "project-1"}}
	s.h, s.other = s.house(s.gate, cascade, 1), s.house(m, cascade, 1)
	return s
}

func (s *spending) house(api wire.API, cascade store.Cascade, revision int64) *house {
	s.Helper()
	_, embeddings := generated(s)
	hour := func(n int64) []bucket.Limit { return []bucket.Limit{bucket.Per(n, time.Hour)} }
	def := family(embeddings, cascade, hour(1000), hour(100))
	def.Numbers.Revision = revision
	return s.engine.house(s, api, def)
}

// take acquires n, as the first process.
func (s *spending) take(m member, n int64) { s.lease = s.h.acquire(s, m, n) }

// refused is denied n.
func (s *spending) refused(m member, n int64) {
	s.Helper()
	if _, err := s.h.at[0].Acquire(s.Context(), m, tokens{n}); !isA[*store.DeniedError](err) {
		s.Fatalf("got %v, want a denial", err)
	}
}

// settle states what the last acquire has cost.
func (s *spending) settle(n int64) {
	s.Helper()
	if err := s.lease.Settle(s.Context(), tokens{n}); err != nil {
		s.Fatal(err)
	}
}

// later is when what is remembered may no longer refuse.
func (s *spending) later() { s.clock.Since.Add(known.TrustedFor + 1) }

// next is when each write has refill to claim that would be clamped.
func (s *spending) next() { s.clock.Since.Add(time.Hour.Milliseconds()) }

// atOnce starts all, and lets the first of what they send to project-1 through when the rest waits for it. It
// runs in a bubble of testing/synctest.
func (s *spending) atOnce(all ...func()) {
	s.gate.shut()
	var wg sync.WaitGroup
	for _, do := range all {
		wg.Go(do)
		synctest.Wait()
	}
	s.gate.open()
	wg.Wait()
}

// sixteen returns do for 0 to 15.
func sixteen(do func(i int)) (all []func()) {
	for i := range 16 {
		all = append(all, func() { do(i) })
	}
	return all
}

// TestCapacityBudget fixes what every outcome costs, so that no change raises it unseen: calls, and the units
// that AWS bills, a write whose condition failed included.
func TestCapacityBudget(t *testing.T) {
	const (
		none        = store.CascadeNone
		atomic      = store.CascadeAtomic
		compensated = store.CascadeCompensated
	)
	var (
		nothing = usage{}
		one     = usage{Calls: 1, Writes: 1, Units: 1}
		two     = usage{Calls: 2, Writes: 2, Units: 2}
		read    = usage{Calls: 1, Reads: 1, Units: 1}
		reads   = usage{Calls: 1, Reads: 1, Units: 2}
	)
	solo, alice, bob := member{project: "1"}, member{"1", "1"}, member{"2", "1"}
	warm := func(s *spending) { s.take(solo, 1) }
	family := func(s *spending) { s.take(alice, 1) }
	for _, test := range []struct {
		what    string
		cascade store.Cascade
		before  func(*spending) // not counted
		do      func(*spending)
		want    usage
	}{
		// One bucket. Cold, it is read together with what overrides its limits, for itself and for its kind: a unit
		// each, since it is consistent. GSI2 gets a new bucket's key, this once.
		{"admitted, cold, no bucket", none, nil, warm, usage{Calls: 2, Reads: 1, Writes: 1, Units: 3 + 1,
			Indexes: 1}},
		{
			"admitted, cold", none, func(s *spending) { s.other.acquire(s, solo, 1) }, warm,
			usage{Calls: 2, Reads: 1, Writes: 1, Units: 3 + 1},
		},
		{"admitted, by retry", none, warm, warm, one},
		{"admitted, by normal", none, func(s *spending) { warm(s); s.next() }, warm, one},
		{
			"admitted, overrides due", none, func(s *spending) { warm(s); s.clock.set(s.ttl.Milliseconds()) }, warm,
			usage{Calls: 2, Reads: 1, Writes: 1, Units: 2*0.5 + 1},
		},
		{"admitted, another second of many", none, func(s *spending) { warm(s); s.later() }, warm, one},
		{
			"admitted, the bucket has been deleted", none,
			func(s *spending) { warm(s); s.delete("project-1") }, warm,
			usage{Calls: 2, Writes: 2, Units: 2, Indexes: 1},
		},
		{
			"admitted after a lost race", none,
			func(s *spending) { warm(s); s.next(); s.other.acquire(s, solo, 1) }, warm, two,
		},
		{
			"denied after a lost race", none,
			func(s *spending) { warm(s); s.other.acquire(s, solo, 900) }, func(s *spending) {
				s.refused(solo, 500)
			}, one,
		},
		{"denied, cold", none, func(s *spending) { s.other.acquire(s, solo, 1000) }, func(s *spending) {
			s.refused(solo, 1)
		},
			usage{Calls: 1, Reads: 1, Units: 3}},
		{"denied after a write of its own", none, func(s *spending) { s.take(solo, 900) }, func(s *spending) {
			s.refused(solo, 500)
		}, nothing},
		{"denied by what was seen more than a second ago", none, func(s *spending) { s.take(solo, 900); s.later() },
			func(s *spending) { s.refused(solo, 500) }, read},
		{"denied again", none, func(s *spending) { s.take(solo, 900); s.later(); s.refused(solo, 500) },
			func(s *spending) { s.refused(solo, 500); s.refused(solo, 900) }, nothing},
		{"denied again a second later", none, func(s *spending) {
			s.take(solo, 900)
			s.later()
			s.refused(solo, 500)
			s.later()
		},
			func(s *spending) { s.refused(solo, 500) }, read},
		{
			"denied, others having taken what was there more than a second ago", none,
			func(s *spending) { warm(s); s.other.acquire(s, solo, 900); s.later() }, func(s *spending) {
				s.refused(solo, 500)
			}, one,
		},
		{
			"denied, others having taken what had come, where they are known to be at work", none,
			func(s *spending) {
				s.take(solo, 990)
				s.other.acquire(s, solo, 5)
				s.refused(solo, 8)       // by a lost race
				s.clock.Since.Add(9_900) // 2.7 more
				s.other.acquire(s, solo, 7)
			}, func(s *spending) { s.refused(solo, 7) }, read,
		},
		{"above the burst", none, warm, func(s *spending) {
			if _, err := s.h.at[0].Acquire(s.Context(), solo, tokens{1001}); !isA[*store.CostTooLargeError](err) {
				s.Error(err)
			}
		}, nothing},
		{"settled up", none, func(s *spending) { s.take(solo, 10) }, func(s *spending) { s.settle(20) }, one},
		{"settled into debt", none, func(s *spending) { s.take(solo, 10) }, func(s *spending) {
			s.settle(2000)
		}, one},
		{"settled down", none, func(s *spending) { s.take(solo, 10) }, func(s *spending) { s.settle(5) }, one},
		{"settled to what it had cost", none, func(s *spending) { s.take(solo, 10) }, func(s *spending) {
			s.settle(10)
		}, nothing},
		{"released", none, func(s *spending) { s.take(solo, 10) }, func(s *spending) {
			s.lease.Release(s.Context())
		}, one},
		{"released twice", none, func(s *spending) { s.take(solo, 10); s.lease.Release(s.Context()) },
			func(s *spending) { s.lease.Release(s.Context()) }, nothing},
		{"peeked at", none, warm, func(s *spending) {
			if _, err := s.h.at[0].Peek(s.Context(), solo); err != nil {
				s.Error(err)
			}
		}, read},
		// A new binary, cold. Each process records a revision in the table once: the other write.
		{"reshaped", none, warm, func(s *spending) {
			s.newer(solo, 1)
		}, usage{Calls: 3, Reads: 1, Writes: 2, Units: 3 + 2}},
		{"reshaped and denied", none, func(s *spending) { s.take(solo, 1000) }, func(s *spending) {
			s.newer(solo, 1)
		},
			usage{Calls: 3, Reads: 1, Writes: 2, Units: 3 + 2}},

		// Two buckets in a transaction, whose writes cost twice as much. It returns no images: what it leaves
		// cannot deny.
		{"atomic: admitted, cold, no buckets", atomic, nil, family, usage{Calls: 2, Reads: 1, Writes: 1,
			Units: 6 + 4, Indexes: 4}},
		{"atomic: admitted, cold", atomic, func(s *spending) { s.other.acquire(s, alice, 1) }, family,
			usage{Calls: 2, Reads: 1, Writes: 1, Units: 6 + 4}},
		{"atomic: admitted, by retry", atomic, family, family, usage{Calls: 1, Writes: 1, Units: 4}},
		{"atomic: admitted, by normal", atomic, func(s *spending) {
			family(s)
			s.next()
		}, family, usage{Calls: 1, Writes: 1, Units: 4}},
		{"atomic: admitted, overrides due", atomic, func(s *spending) {
			family(s)
			s.clock.set(s.ttl.Milliseconds())
		}, family,
			usage{Calls: 2, Reads: 1, Writes: 1, Units: 4*0.5 + 4}},
		{"atomic: admitted after a lost race", atomic, func(s *spending) {
			family(s)
			s.next()
			s.other.acquire(s, solo, 1)
		}, family,
			usage{Calls: 2, Writes: 2, Units: 4 + 4}},
		{"atomic: denied after a lost race", atomic, func(s *spending) { family(s); s.other.acquire(s, solo, 990) },
			func(s *spending) { s.refused(alice, 50) }, usage{Calls: 1, Writes: 1, Units: 4}},
		{"atomic: denied, cold", atomic, func(s *spending) { s.other.acquire(s, alice, 100) }, func(s *spending) {
			s.refused(alice, 1)
		},
			usage{Calls: 1, Reads: 1, Units: 6}},
		{"atomic: denied after a transaction of its own", atomic, func(s *spending) { s.take(alice, 60) },
			func(s *spending) { s.refused(alice, 50) }, reads},
		{"atomic: denied again", atomic, func(s *spending) { s.take(alice, 60); s.refused(alice, 50) },
			func(s *spending) { s.refused(alice, 50) }, nothing},
		{"atomic: denied again a second later", atomic, func(s *spending) {
			s.take(alice, 60)
			s.refused(alice, 50)
			s.later()
		},
			func(s *spending) { s.refused(alice, 50) }, reads},
		{"atomic: settled up", atomic, func(s *spending) { s.take(alice, 10) }, func(s *spending) {
			s.settle(20)
		}, two},
		{"atomic: settled down", atomic, func(s *spending) { s.take(alice, 10) }, func(s *spending) {
			s.settle(5)
		}, two},
		{"atomic: settled to what it had cost", atomic, func(s *spending) { s.take(alice, 10) }, func(s *spending) {
			s.settle(10)
		}, nothing},
		{"atomic: released", atomic, func(s *spending) { s.take(alice, 10) }, func(s *spending) {
			s.lease.Release(s.Context())
		}, two},
		{"several at once", atomic, func(s *spending) { family(s); s.take(bob, 1) }, func(s *spending) {
			s.all(alice, bob)
		},
			usage{Calls: 1, Writes: 1, Units: 3 * 2}}, // the project in one
		{"several at once, denied", atomic, func(s *spending) {
			s.take(alice, 95)
			s.take(bob, 1)
		}, func(s *spending) { s.all(alice, bob) },
			usage{Calls: 1, Reads: 1, Units: 3}},

		// Two buckets, one after the other.
		{"compensated: admitted, cold, no buckets", compensated, nil, family, usage{Calls: 3, Reads: 1, Writes: 2,
			Units: 6 + 2, Indexes: 2}},
		{"compensated: admitted, cold", compensated, func(s *spending) { s.other.acquire(s, alice, 1) }, family,
			usage{Calls: 3, Reads: 1, Writes: 2, Units: 6 + 2}},
		{"compensated: admitted, by retry", compensated, family, family, two},
		{"compensated: admitted, by normal", compensated, func(s *spending) { family(s); s.next() }, family, two},
		{"compensated: admitted after a lost race", compensated, func(s *spending) {
			family(s)
			s.next()
			s.other.acquire(s, solo, 1)
		}, family,
			usage{Calls: 3, Writes: 3, Units: 3}},
		{"compensated: denied, cold", compensated, func(s *spending) {
			s.other.acquire(s, alice, 100)
		}, func(s *spending) { s.refused(alice, 1) },
			usage{Calls: 1, Reads: 1, Units: 6}},
		{"compensated: denied after writes of its own", compensated, func(s *spending) { s.take(alice, 60) },
			func(s *spending) { s.refused(alice, 50) }, nothing},
		{"compensated: denied by what was seen more than a second ago", compensated, func(s *spending) {
			s.take(alice, 60)
			s.later()
		},
			func(s *spending) { s.refused(alice, 50) }, usage{Calls: 2, Reads: 2, Units: 2}},
		// Alice is charged, her project refuses, and she is given it back.
		{"compensated: denied by the parent", compensated, func(s *spending) {
			family(s)
			s.other.acquire(s, solo, 990)
		},
			func(s *spending) { s.refused(alice, 50) }, usage{Calls: 3, Writes: 3, Units: 3}},
		{"compensated: denied by the parent again", compensated, func(s *spending) {
			family(s)
			s.other.acquire(s, solo, 990)
			s.refused(alice, 50)
		},
			func(s *spending) { s.refused(alice, 50) }, nothing},
		{"compensated: settled up", compensated, func(s *spending) { s.take(alice, 10) }, func(s *spending) {
			s.settle(20)
		}, two},
		{"compensated: released", compensated, func(s *spending) { s.take(alice, 10) }, func(s *spending) {
			s.lease.Release(s.Context())
		}, two},

		// A chain of which one bucket is charged.
		{"none: admitted, cold, no bucket", none, nil, family, usage{Calls: 2, Reads: 1, Writes: 1, Units: 3 + 1,
			Indexes: 1}},
		{"none: admitted", none, family, family, one},
		{"none: released", none, family, func(s *spending) { s.lease.Release(s.Context()) }, one},

		// Many of one process, at once: what the first one sends goes alone, the next serves all who came
		// meanwhile.
		{"16 at once", none, warm, func(s *spending) {
			s.atOnce(sixteen(func(int) {
				s.h.acquire(s, solo, 1)
			})...)
		}, two},
		{"16 at once, cold, no bucket", none, nil, func(s *spending) {
			s.atOnce(sixteen(func(int) {
				s.h.acquire(s, solo, 1)
			})...)
		},
			usage{Calls: 2, Reads: 1, Writes: 1, Units: 3 + 1, Indexes: 1}},
		{"16 at once, 8 of them settles", none, warm, func(s *spending) {
			var leases []*runtime.Lease[tokens]
			for range 8 {
				leases = append(leases, s.h.acquire(s, solo, 2))
			}
			s.m.take()
			s.atOnce(sixteen(func(i int) {
				if i < 8 {
					s.h.acquire(s, solo, 1)
					return
				}
				if err := leases[i-8].Settle(s.Context(), tokens{int64(i - 7)}); err != nil {
					s.Error(err)
				}
			})...)
		}, two},
		{"16 at once, denied", none, func(s *spending) { s.take(solo, 1000); s.later() },
			func(s *spending) { s.atOnce(sixteen(func(int) { s.refused(solo, 1) })...) }, read},
		{"16 at once, denied by what was just seen", none, func(s *spending) { s.take(solo, 1000) },
			func(s *spending) { s.atOnce(sixteen(func(int) { s.refused(solo, 1) })...) }, nothing},
		{"atomic: 16 at once", atomic, family, func(s *spending) {
			s.atOnce(sixteen(func(int) {
				s.h.acquire(s, alice, 1)
			})...)
		},
			usage{Calls: 2, Writes: 2, Units: 2 * 4}},
		{"compensated: 16 at once", compensated, family, func(s *spending) {
			s.atOnce(sixteen(func(int) {
				s.h.acquire(s, alice, 1)
			})...)
		},
			usage{Calls: 16 + 2, Writes: 16 + 2, Units: 16 + 2}},
		{"compensated: 16 children at once", compensated, func(s *spending) {
			for i := range 16 {
				s.h.acquire(s, member{fmt.Sprint(i), "1"}, 1)
			}
		}, func(s *spending) {
			s.atOnce(sixteen(func(i int) { s.h.acquire(s, member{fmt.Sprint(i), "1"}, 1) })...)
		}, usage{Calls: 16 + 2, Writes: 16 + 2, Units: 16 + 2}},
	} {
		run := func(t *testing.T, e *engine, m *meter) {
			t.Helper()
			s := spend(t, e, m, test.cascade)
			if test.before != nil {
				test.before(s)
			}
			m.take()
			test.do(s)
			if got := m.take(); got != test.want {
				t.Errorf("cost %+v\nwant %+v", got, test.want)
			}
		}
		t.Run(test.what, func(t *testing.T) {
			if strings.Contains(test.what, "16 ") { // by an engine whose calls a bubble knows of
				synctest.Test(t, func(t *testing.T) {
					e, _ := newFaulty(t)
					e.ttl = 24 * time.Hour
					run(t, e, &meter{API: e.client})
				})
				return
			}
			e := newEngine(t)
			run(t, e, newMeter(t, e.client))
		})
	}
}

// newer acquires n by a new binary, which may be denied.
func (s *spending) newer(m member, n int64) {
	s.Helper()
	h := s.house(s.m, store.CascadeNone, 2)
	if _, err := h.at[0].Acquire(s.Context(), m, tokens{n}); err != nil && !isA[*store.DeniedError](err) {
		s.Error(err)
	}
	if err := h.Close(s.Context()); err != nil {
		s.Error(err)
	}
}

// all acquires 10 for each of them together, which may be denied.
func (s *spending) all(members ...member) {
	s.Helper()
	var claims []runtime.AnyClaim
	for _, m := range members {
		claims = append(claims, s.h.at[0].Claim(m, tokens{10}))
	}
	if err := s.h.AcquireAll(s.Context(), claims...); err != nil && !isA[*store.DeniedError](err) {
		s.Error(err)
	}
}

// delete deletes an entity's bucket, as DynamoDB does by its ttl.
func (s *spending) delete(entity string) {
	s.Helper()
	if _, err := s.client.DeleteItem(s.Context(), &dynamodb.DeleteItemInput{
		TableName: &s.table, Key: item.BucketKey(entity, "embeddings"), ReturnValues: types.ReturnValueNone,
	}); err != nil {
		s.Fatal(err)
	}
}
