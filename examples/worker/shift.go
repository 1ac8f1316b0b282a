package main

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/sluice-go/sluice/examples/worker/limits"
	"github.com/sluice-go/sluice/runtime"
)

// tenant is whose jobs there are, and how they come.
type tenant struct {
	limits.Tenant

	manner   string
	atOnce   int           // jobs that are there at the start
	every    time.Duration // a new one comes so often; 0: none
	estimate int64
	takes    time.Duration
	maxWait  time.Duration // how long a job may wait
}

// tenants returns the cast. Together they want more than the fleet has, and two of them more than their
// share.
func tenants() []tenant {
	fleet := limits.Fleet{ID: "main"}
	return []tenant{
		{limits.Tenant{ID: "acme", Fleet: fleet}, "greedy", 60, 0, 3, 500 * time.Millisecond, 30 * time.Second},
		{limits.Tenant{ID: "bolt", Fleet: fleet}, "steady", 0, 700 * time.Millisecond, 3, 500 * time.Millisecond,
			10 * time.Second},
		{limits.Tenant{ID: "coyote", Fleet: fleet}, "in a hurry", 0, 400 * time.Millisecond, 4,
			300 * time.Millisecond, 300 * time.Millisecond},
	}
}

// each is how many workers a tenant has. Each tenant has its own queue: with one queue for all, every worker
// would soon wait for the tenant whose turn is the furthest off.
const each = 2

// shift is the workers at work, and what was seen of them.
type shift struct {
	began, ended time.Time
	tenants      []tenant

	mu     sync.Mutex
	spans  []span            // what each worker did, and when
	counts []map[phase]int   // of jobs, by tenant
	used   []int64           // units, by tenant, as the jobs say
	left   []int             // jobs that nobody has begun, by tenant
	taken  []map[int64]int64 // units that were taken, by tenant and second
}

// span is a time that a worker spent on a job.
type span struct {
	worker      int
	from, until time.Time
	what        phase
}

// errJob is a job that fails, as some do.
var errJob = errors.New("the job failed")

// newShift runs the tenants' jobs until ctx ends, and returns when the last that has begun is at its end.
func newShift(ctx context.Context, jobs *limits.JobsResource, cast []tenant) *shift {
	s := &shift{began: time.Now(), tenants: cast, used: make([]int64, len(cast)), left: make([]int, len(cast))}
	for range cast {
		s.counts, s.taken = append(s.counts, map[phase]int{}), append(s.taken, map[int64]int64{})
	}
	var working sync.WaitGroup
	for i := range cast {
		t := &cast[i]
		patient := jobs.With(runtime.MaxWait(t.maxWait))
		queue := make(chan job, 1000)
		working.Go(func() { s.feed(ctx, i, queue) })
		for n := range each {
			w := &worker{jobs: patient, watch: func(from time.Time, what phase) { s.saw(i, i*each+n, from, what) }}
			working.Go(func() { w.work(ctx, queue) })
		}
		defer func() { s.left[i] = len(queue) }()
	}
	working.Wait()
	s.ended = time.Now()
	return s
}

// feed makes a tenant's jobs.
func (s *shift) feed(ctx context.Context, index int, queue chan<- job) {
	t := &s.tenants[index]
	random := rand.New(rand.NewPCG(1, uint64(index)))
	for range t.atOnce {
		queue <- s.job(index, random)
	}
	if t.every == 0 {
		return
	}
	tick := time.NewTicker(t.every)
	defer tick.Stop()
	for {
		select {
		case queue <- s.job(index, random):
		case <-ctx.Done():
			return
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

// job makes a job that takes its time, and now and then fails half way.
func (s *shift) job(index int, random *rand.Rand) job {
	t := &s.tenants[index]
	fails, used := random.IntN(8) == 0, t.estimate-random.Int64N(2)
	return job{t.Tenant, t.estimate, func(context.Context) (int64, error) {
		s.mu.Lock()
		s.taken[index][int64(time.Since(s.began)/time.Second)] += t.estimate
		s.mu.Unlock()
		if fails {
			time.Sleep(t.takes / 2)
			return 0, errJob
		}
		time.Sleep(t.takes)
		s.mu.Lock()
		defer s.mu.Unlock()
		s.used[index] += used
		return used, nil
	}}
}

// saw notes what a worker has done for a tenant since from: of what has no length, only how a job ended.
func (s *shift) saw(index, worker int, from time.Time, what phase) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.spans = append(s.spans, span{worker, from, time.Now(), what})
	if what != waiting && what != running {
		s.counts[index][what]++
	}
}
