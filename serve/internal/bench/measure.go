package main

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sluice-go/sluice/serve/internal/limits"
)

// rounds is how often the two ways take turns.
const rounds = 5

// callers is how many callers there are: enough for calls of 10 ms at 5,000 a second.
const callers = 128

// paced makes calls at a rate, open loop, and returns the latencies of those that succeed. A call's latency
// counts from when it was due. All callers are there before the first call is: each HTTP caller connects.
func paced(rate int, span time.Duration, newCall func() (func(n int) error, error),
) ([]time.Duration, error) {
	var calls [callers]func(n int) error
	for i := range calls {
		var err error
		if calls[i], err = newCall(); err != nil {
			return nil, err
		}
	}
	var next atomic.Int64
	var mu sync.Mutex
	var all []time.Duration
	failed := 0
	began := time.Now()
	var working sync.WaitGroup
	for _, call := range calls {
		working.Go(func() {
			var own []time.Duration
			for {
				n := next.Add(1) - 1
				due := began.Add(time.Duration(n) * time.Second / time.Duration(rate))
				if due.Sub(began) > span {
					break
				}
				wait := time.Until(due)
				time.Sleep(wait)
				if wait > 0 { // the delay of a timer is no service's
					due = time.Now()
				}
				if err := call(int(n)); err != nil {
					mu.Lock()
					failed++
					mu.Unlock()
					continue
				}
				own = append(own, time.Since(due))
			}
			mu.Lock()
			all = append(all, own...)
			mu.Unlock()
		})
	}
	working.Wait()
	if failed > 0 {
		fmt.Printf("%d of %d calls failed: this machine is short of CPU\n", failed, len(all)+failed)
	}
	return all, nil
}

// once calls each key once, one after the other.
func once(keys int, newCall func() (func(n int) error, error)) error {
	call, err := newCall()
	for n := 0; n < keys && err == nil; n++ {
		err = call(n)
	}
	return err
}

// at returns a percentile.
func at(all []time.Duration, percent float64) time.Duration {
	return all[min(len(all)-1, int(float64(len(all))*percent/100))]
}

// added prints latencies in Go and through the server, in turns, and their difference: medians of rounds, for
// machines have bad moments. It calls each key on both ways before: the first call of a key takes two round
// trips, since it reads its bucket.
func (b *bed) added(ctx context.Context, rate, keys int, span time.Duration) error {
	on, err := b.limits.Resource("api")
	if err != nil {
		return err
	}
	entities := make([]*limits.Entity, keys)
	requests := make([][]byte, keys)
	for i := range keys {
		if entities[i], err = on.Entity([]limits.ID{{Kind: "user", ID: fmt.Sprint("go-", i)}}); err != nil {
			return err
		}
		requests[i] = request("/v1/api/acquire",
			fmt.Sprintf(`{"entity": {"user": "http-%d"}, "cost": {"tpm": 100}}`, i))
	}
	inGo := func() (func(int) error, error) {
		return func(n int) error {
			_, err := on.Acquire(ctx, entities[n%keys], []int64{0, 100})
			return err
		}, nil
	}
	byHTTP := func() (func(int) error, error) {
		c, err := dial(b.address)
		if err != nil {
			return nil, err
		}
		return func(n int) error { return c.want(requests[n%keys], 200) }, nil
	}
	for _, newCall := range []func() (func(int) error, error){inGo, byHTTP} {
		if err := once(keys, newCall); err != nil {
			return err
		}
	}
	percents := []float64{50, 99}
	var direct, served, more [2][rounds]time.Duration // by percentile and round
	for round := range rounds {
		one, err := paced(rate, span/rounds, inGo)
		if err != nil {
			return err
		}
		other, err := paced(rate, span/rounds, byHTTP)
		if err != nil {
			return err
		}
		slices.Sort(one)
		slices.Sort(other)
		for i, p := range percents {
			direct[i][round], served[i][round] = at(one, p), at(other, p)
			more[i][round] = served[i][round] - direct[i][round]
		}
	}
	for i, p := range percents {
		fmt.Printf("p%.0f at %d/s over %d keys, medians of %d rounds: Go %v, HTTP %v, added %v\n", p, rate, keys,
			rounds, median(direct[i]), median(served[i]), median(more[i]))
	}
	return nil
}

// median returns the median of all rounds.
func median(all [rounds]time.Duration) time.Duration {
	slices.Sort(all[:])
	return all[len(all)/2].Round(time.Microsecond)
}

// flood makes calls as fast as they are answered, from some connections, and returns how many there were.
func (b *bed) flood(connections int, span time.Duration, request []byte, status int) (int64, error) {
	var calls atomic.Int64
	var working sync.WaitGroup
	var mu sync.Mutex
	var failed error
	end := time.Now().Add(span)
	for range connections {
		c, err := dial(b.address)
		if err != nil {
			return 0, err
		}
		working.Go(func() {
			for time.Now().Before(end) {
				if err := c.want(request, status); err != nil {
					mu.Lock()
					failed = err
					mu.Unlock()
					return
				}
				calls.Add(1)
			}
		})
	}
	working.Wait()
	return calls.Load(), failed
}

// hot prints what the acquires of one key cost in write units.
func (b *bed) hot(span time.Duration) error {
	before := b.engine.Consumed().Table("limits").Total().Write
	acquire := request("/v1/api/acquire", `{"entity": {"user": "hot"}, "cost": {"tpm": 1}}`)
	n, err := b.flood(callers, span/2, acquire, 200)
	if err != nil {
		return err
	}
	units := b.engine.Consumed().Table("limits").Total().Write - before
	fmt.Printf("one hot key: %.0f acquires/s, %.4f write units each\n", float64(n)/(span/2).Seconds(),
		units/float64(n))
	return nil
}

// denials prints how many calls the server denies from memory.
func (b *bed) denials(span time.Duration) error {
	c, err := dial(b.address)
	if err != nil {
		return err
	}
	denied := request("/v1/scarce/acquire", `{"entity": {"user": "1"}, "cost": {"rpd": 1}}`)
	if err := c.want(denied, 200); err != nil {
		return err
	}
	n, err := b.flood(16, span/2, denied, 429)
	if err != nil {
		return err
	}
	fmt.Printf("denials: %.0f/s\n", float64(n)/(span/2).Seconds())
	return nil
}

// users is how many entities have the open leases.
const users = 1000

// memory prints how much memory an open lease takes.
func memory(ctx context.Context, open int) error {
	b, err := newBed(ctx, 0, open+users)
	if err != nil {
		return err
	}
	c, err := dial(b.address)
	if err != nil {
		return err
	}
	acquire := func(i int) error {
		return c.want(request("/v1/api/acquire",
			fmt.Sprintf(`{"entity": {"user": "%d"}, "cost": {"tpm": 1}}`, i%users)), 200)
	}
	for i := range users { // of their buckets, the process knows something, too
		if err := acquire(i); err != nil {
			return err
		}
	}
	before := heap()
	for i := range open {
		if err := acquire(i); err != nil {
			return err
		}
	}
	each := (heap() - before) / uint64(open)
	refused := c.want(request("/v1/api/acquire", `{"entity": {"user": "1"}}`), 503)
	fmt.Printf("%d open leases: %d bytes each; one more is refused: %t\n", open, each, refused == nil)
	return nil
}
