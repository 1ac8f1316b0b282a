package main

import (
	"context"
	"errors"
	"time"

	"github.com/sluice-go/sluice/examples/worker/limits"
)

// job is work for a tenant.
type job struct {
	tenant   limits.Tenant
	estimate int64 // units that it takes at most
	run      func(ctx context.Context) (used int64, err error)
}

// worker runs jobs, one after the other.
type worker struct {
	jobs  limits.JobsAcquirer // its options say how long a job may wait: runtime.MaxWait
	watch func(from time.Time, what phase)
}

// phase is what a worker does for a job, or how that has ended.
type phase int

const (
	waiting phase = iota // for its turn
	running
	done      // settled for what it used
	failed    // its units are given back
	late      // its turn would have come too late: it was refused as soon as that was clear, and took nothing
	abandoned // the workers stopped while it waited: it took nothing
	broken    // the limits could not be looked up, or the settle did not get through
)

// work runs the jobs of queue until ctx ends. A job that has begun is brought to its end.
func (w *worker) work(ctx context.Context, queue <-chan job) {
	for ctx.Err() == nil {
		select {
		case j := <-queue:
			w.watch(time.Now(), w.do(ctx, j))
		case <-ctx.Done():
		}
	}
}

// do waits for a job's turn, runs it, and settles for what it has used.
func (w *worker) do(ctx context.Context, j job) phase {
	began := time.Now()
	lease, err := w.jobs.Wait(ctx, j.tenant, limits.JobsCost{Units: j.estimate})
	w.watch(began, waiting)
	switch {
	case errors.Is(err, context.DeadlineExceeded): // MaxWait is
		return late
	case errors.Is(err, context.Canceled): // a shutdown is
		return abandoned
	case err != nil:
		return broken
	}
	defer lease.Release(ctx) // does nothing once settled; works though ctx has ended

	began = time.Now()
	used, err := j.run(context.WithoutCancel(ctx))
	w.watch(began, running)
	if err != nil {
		return failed
	}
	if err := lease.Settle(ctx, limits.JobsCost{Units: used}); err != nil {
		return broken
	}
	return done
}
