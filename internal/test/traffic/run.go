package traffic

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/sluice-go/sluice/internal/test/simulated"
	"github.com/sluice-go/sluice/runtime/memdynamo"
)

// project is the one that all calls charge, but those of a crowd of projects.
const project = "hot"

// run is a load under way.
type run struct {
	load    *Load
	engine  *memdynamo.Engine
	open    []Process
	calling sync.WaitGroup

	mu  sync.Mutex
	sum Result

	// of calls that hold slots: how many run now, since when, and when the last of them comes
	now            int
	changed, until time.Time
}

// Run offers load to processes that open starts. It has to be called in a bubble of testing/synctest.
func Run(ctx context.Context, load Load, open Open) (*Result, error) {
	r := &run{load: &load, engine: memdynamo.New(memdynamo.WithSeed(load.Seed + 1))}
	r.sum = Result{Load: load, Errors: map[string]int{}, Processes: make([]Tally, load.Processes)}
	if err := simulated.CreateTable(ctx, r.engine, Table); err != nil {
		return nil, err
	}
	for range load.Processes {
		p, err := open(r.engine, &load)
		if err != nil {
			return nil, err
		}
		r.open = append(r.open, p)
	}
	began := time.Now()
	r.engine.Faults().Latency(load.latency())
	r.engine.Faults().TTLLag(time.Hour) // the buckets are counted at the end
	if !load.Cold {
		if err := r.warmUp(ctx); err != nil {
			return nil, fmt.Errorf("warm up: %w", err)
		}
	}
	before, err := readCharged(ctx, r.engine)
	if err != nil {
		return nil, err
	}
	r.offer(ctx)
	elapsed := time.Since(began)
	for _, p := range r.open {
		if err := p.Close(ctx); err != nil {
			return nil, fmt.Errorf("close: %w", err)
		}
	}
	r.engine.Faults().Throttle(0)
	time.Sleep(time.Minute) // what goes on in the background ends
	after, err := readCharged(ctx, r.engine)
	if err != nil {
		return nil, err
	}
	slices.Sort(r.sum.Took)
	if load.Runs > 0 {
		r.balanceSlots(before, after)
	} else {
		r.balance(before, after, elapsed)
	}
	return &r.sum, nil
}

// warmUp has each process call once for each entity, one after the other, and then rest for a second.
func (r *run) warmUp(ctx context.Context) error {
	for _, p := range r.open {
		for n := range max(1, r.load.Users) {
			if _, err := p.Acquire(ctx, r.entity(n)); err != nil {
				return err
			}
		}
	}
	time.Sleep(time.Second)
	return nil
}

// entity is the nth user's, or the project's where there are no users.
func (r *run) entity(n int) Entity {
	if r.load.Users == 0 {
		return Entity{Project: project}
	}
	return Entity{User: strconv.Itoa(n), Project: project}
}

// offer has all calls of the load come, and waits until they have ended.
func (r *run) offer(ctx context.Context) {
	f := r.engine.Faults()
	f.HoldTransactions(r.load.Hold)
	f.PartitionThroughput(r.load.PartitionUnits, 0)
	f.RequestsPerSecond(r.load.RequestRate)
	f.Throttle(r.load.Throttled)
	r.engine.ResetConsumed()
	began := time.Now()
	r.changed, r.until = began, began.Add(r.load.For)
	var arriving sync.WaitGroup
	for i := range r.open {
		rng := rand.New(rand.NewPCG(r.load.Seed, uint64(i)))
		switch {
		case r.load.Crowd > 0:
			arriving.Go(func() { r.crowds(ctx, i) })
		case r.load.Callers > 0:
			for n := range r.load.Callers {
				arriving.Go(func() { r.closedLoop(ctx, i, n) })
			}
		default:
			arriving.Go(func() { r.openLoop(ctx, i, rng) })
		}
	}
	arriving.Wait()
	r.calling.Wait()
	r.sum.Elapsed = time.Since(began)
	c := r.engine.Consumed()
	units := c.Total().Total()
	r.sum.WriteUnits, r.sum.ReadUnits = units.Write, units.Read
	for _, n := range c.Requests {
		r.sum.Requests += n
	}
}

// openLoop has calls of process i come at random.
func (r *run) openLoop(ctx context.Context, i int, rng *rand.Rand) {
	mean := float64(time.Second) / r.load.Rate
	for at := time.Duration(0); ; {
		wait := time.Duration(mean * rng.ExpFloat64())
		if at += wait; at >= r.load.For {
			return
		}
		time.Sleep(wait)
		who := r.entity(rng.IntN(max(1, r.load.Users)))
		if r.load.Fresh {
			who.User = fmt.Sprintf("new-%d-%d", i, at)
		}
		lasts := time.Duration(0)
		if r.load.Runs > 0 {
			lasts = r.load.runs(rng)
		}
		r.calling.Go(func() { r.call(ctx, i, who, lasts) })
	}
}

// closedLoop has the nth caller of process i call again and again. After a call that took no time, as by an
// open breaker, it rests for a round trip: else the bubble's time would stand still.
func (r *run) closedLoop(ctx context.Context, i, n int) {
	who := r.entity(n % max(1, r.load.Users))
	for began := time.Now(); time.Since(began) < r.load.For; {
		called := time.Now()
		r.call(ctx, i, who, 0)
		if time.Since(called) == 0 {
			time.Sleep(r.load.RoundTrip())
		}
	}
}

// crowds has all of a crowd call at once, and others a second later. They are users of one project if the
// load has users, else projects.
func (r *run) crowds(ctx context.Context, i int) {
	for at := time.Duration(0); at < r.load.For; at += time.Second {
		for n := range r.load.Crowd {
			id := fmt.Sprintf("new-%d-%d-%d", i, int(at/time.Second), n)
			who := Entity{Project: id}
			if r.load.Users > 0 {
				who = Entity{User: id, Project: project}
			}
			r.calling.Go(func() { r.call(ctx, i, who, 0) })
		}
		time.Sleep(time.Second)
	}
}

// call is one call of process i. It runs for a while if it holds slots.
func (r *run) call(ctx context.Context, i int, who Entity, lasts time.Duration) {
	how, began := Recorded, time.Now()
	var took time.Duration
	var err error
	if h, holds := r.open[i].(Holder); holds {
		took, err = r.hold(ctx, h, who, lasts)
	} else {
		how, err = r.open[i].Acquire(ctx, who)
		took = time.Since(began)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.sum.Calls++
	r.sum.Took = append(r.sum.Took, took)
	p := &r.sum.Processes[i]
	p.Calls++
	if err != nil {
		r.sum.Errors[fmt.Sprintf("%T", err)]++
		return
	}
	p.Admitted++
	r.sum.Admitted[how]++
}
