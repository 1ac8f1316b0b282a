package conformance

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	limits "github.com/sluice-go/sluice/generated"
	"github.com/sluice-go/sluice/runtime"
	"github.com/sluice-go/sluice/runtime/bucket"
	"github.com/sluice-go/sluice/runtime/store"
)

// crowd is goroutines of several processes, on few buckets. Their projects are drained at first, and time is
// too short for any of their buckets to be full again. So the initial balance, the refill and the charges add
// up to the final balance, to the millitoken.
type crowd struct {
	name    string
	schema  schema
	callers int // of each process
	turns   int // of each
	debts   bool
}

// crowds are all: users come and go with tokens to spare, projects have few.
var crowds = []crowd{
	{"atomic", crowded(time.Second, store.CascadeAtomic), 6, 40, false},
	{"odd rates", crowded(1100*time.Millisecond, store.CascadeAtomic), 6, 40, false},
	{"with debts", crowded(time.Second, store.CascadeAtomic), 6, 40, true},
	{"compensated", crowded(time.Second, store.CascadeCompensated), 6, 40, false},
	{"one by one", crowded(time.Second, store.CascadeNone), 6, 40, false},
}

// crowded returns limits of which some minutes fill no bucket.
func crowded(period time.Duration, c store.Cascade) schema {
	return schema{
		user:    []bucket.Limit{per(10_000, 20, period), per(100_000, 100, period)},
		project: []bucket.Limit{per(100_000, 20, period), per(1_000_000, 100, period)},
		cascade: c,
	}
}

// books are what a crowd was told.
type books struct {
	mu               sync.Mutex
	consumed         map[string][]int64 // by bucket, what leases stand for in the end
	admitted, denied int
	contended        int
	negative         string // the first bucket that was left with less than nothing
	failure          error
}

// settle books how a settle or release ended. The pauses of a crowd's processes take no time, so a contended
// one may give up: its lease then stands for what was asked.
func (b *books) settle(err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if _, contended := errors.AsType[*store.ContendedError](err); contended {
		b.contended++
	} else if err != nil && b.failure == nil {
		b.failure = err
	}
}

// note books what became of a call on who's chain: change is what it took more.
func (b *books) note(chain []string, change []int64) {
	for _, entity := range chain {
		if b.consumed[entity] == nil {
			b.consumed[entity] = make([]int64, len(names))
		}
		for i, c := range change {
			b.consumed[entity][i] += c
		}
	}
}

// run has c come, and says what is wrong with what is left.
func (c crowd) run(w *world) {
	w.Helper()
	b := &books{consumed: map[string][]int64{}}
	one, two := limits.Project{ID: "one"}, limits.Project{ID: "two"}
	entities := []limits.GPT4Entity{
		limits.User{ID: "a", Project: one}, limits.User{ID: "b", Project: one}, limits.User{ID: "c", Project: two},
		one, two,
	}
	for _, who := range entities { // projects last, for what their users have left them
		keep, left := cost(40, 300), w.peek(who).Buckets[0].Available
		if _, project := who.(limits.Project); project {
			keep = cost(150, 1000)
		}
		w.admitted(who, left.RPM-keep.RPM, left.TPM-keep.TPM)
	}
	w.spy.mu.Lock()
	w.spy.reported = func(parts []store.Part) {
		b.mu.Lock()
		defer b.mu.Unlock()
		for _, part := range parts {
			for _, bucket := range part.Buckets {
				if bucket.After == nil {
					continue
				}
				for i, balance := range bucket.After.Balances {
					if balance.Tokens < 0 && b.negative == "" {
						b.negative = fmt.Sprintf("%s was left with %s mt of %s", bucket.Entity, thousands(balance.Tokens),
							names[i])
					}
				}
			}
		}
	}
	w.spy.mu.Unlock()
	var wg sync.WaitGroup
	for p := range 2 {
		l := w.process()
		for k := range c.callers {
			rng := rand.New(rand.NewPCG(uint64(p), uint64(k)))
			wg.Go(func() {
				for range c.turns {
					c.turn(w, l, b, rng, entities[rng.IntN(len(entities))])
				}
			})
		}
	}
	wg.Wait()
	w.spy.mu.Lock()
	w.spy.reported = nil
	w.spy.mu.Unlock()
	c.judge(w, b, entities)
}

// turn is one of a caller's.
func (c crowd) turn(w *world, l *limits.Limiter, b *books, rng *rand.Rand, who limits.GPT4Entity) {
	asked := cost(1+rng.Int64N(5), rng.Int64N(40))
	var opts []runtime.CallOption
	if rng.IntN(2) == 0 {
		opts = append(opts, runtime.Shadow(true))
	}
	lease, err := l.GPT4.Acquire(w.Context(), who, asked, opts...)
	change := milli(asked)
	switch {
	case err != nil:
	case lease.Shadowed() != nil:
		lease.Release(w.Context()) // nothing
		err = lease.Shadowed()
	default:
		var kept error // why the lease stands for what was asked
		ctx := context.WithValue(w.Context(), settled{}, &kept)
		after := change
		switch what := rng.IntN(4); {
		case what == 0:
			lease.Release(ctx)
			after = make([]int64, len(names))
		case what == 1:
			actual := cost(1+rng.Int64N(asked.RPM), rng.Int64N(asked.TPM+1))
			if c.debts {
				actual = cost(1+rng.Int64N(10), rng.Int64N(80))
			}
			_ = lease.Settle(ctx, actual)
			after = milli(actual)
		case what == 2:
			w.store.Advance(time.Duration(1+rng.Int64N(20)) * time.Millisecond)
		}
		if kept == nil {
			change = after
		}
		b.settle(kept)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	_, denied := errors.AsType[*store.DeniedError](err)
	_, contended := errors.AsType[*store.ContendedError](err)
	switch {
	case err == nil:
		b.admitted++
		b.note(w.chain(who), change)
	case denied:
		b.denied++
	case contended:
		b.contended++
	case b.failure == nil:
		b.failure = err
	}
}

// judge holds what is left against what was there, came and was taken.
func (c crowd) judge(w *world, b *books, entities []limits.GPT4Entity) {
	w.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.failure != nil {
		w.Fatalf("a call failed: %v", b.failure)
	}
	if b.admitted == 0 || b.denied == 0 || b.contended > b.admitted {
		w.Errorf("%d admitted, %d denied, %d contended: this is no test", b.admitted, b.denied, b.contended)
	}
	if !c.debts && b.negative != "" {
		w.Errorf("%s, without a settle that owes", b.negative)
	}
	for _, who := range entities {
		entity := w.chain(who)[0]
		model := w.bucket(entity)
		for i, consumed := range b.consumed[entity] {
			model.tokens[i] -= consumed // no instant in between matters, as it was never full
		}
	}
	w.Limiter = w.process()
	for _, who := range entities {
		w.peek(who) // a level above the model's is forged, one below it lost
	}
}

// runCrowds has them all come.
func runCrowds(t *testing.T, open Open) {
	t.Helper()
	for _, c := range crowds {
		t.Run(c.name, func(t *testing.T) { c.run(newWorld(t, open(t), c.schema)) })
	}
}
