package main

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/sluice-go/sluice/examples/worker/limits"
	"github.com/sluice-go/sluice/gen"
	"github.com/sluice-go/sluice/runtime"
	"github.com/sluice-go/sluice/runtime/dynamo"
	"github.com/sluice-go/sluice/runtime/dynamo/operator"
	"github.com/sluice-go/sluice/runtime/limittest"
	"github.com/sluice-go/sluice/runtime/memdynamo"
)

// TestGenerated: the code is what limits.yaml gives.
func TestGenerated(t *testing.T) {
	result, err := gen.Run(gen.Config{Schema: "limits.yaml"})
	if err != nil {
		t.Fatal(err)
	}
	if diff := result.Diff(); diff != "" {
		t.Errorf("run `go run ../../cmd/sluice generate` in examples/worker and commit:\n%s", diff)
	}
}

// TestRun runs the program in time that takes none: to its end, and with a Ctrl-C in its second second.
func TestRun(t *testing.T) {
	for name, test := range map[string]struct {
		interrupt time.Duration
		took      string
	}{
		"to its end": {time.Hour, "8."},
		"Ctrl-C":     {1300 * time.Millisecond, "1."},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancel(t.Context())
				defer time.AfterFunc(test.interrupt, cancel).Stop()
				var out strings.Builder
				if err := run(ctx, &out); err != nil {
					t.Error(err)
				}
				for _, part := range []string{
					"3 tenants with 2 workers each; after 8s the workers stop\n\n",
					"\nacme/1    ████████",
					"\n 0 s  aaaaaaaaaaaa",
					"\ncheck: ok: on all 4 buckets as much was consumed as jobs used: what failed, came too late or was " +
						"stopped cost nothing\n",
					"\ncheck: ok: and nowhere more than the limit gives in " + test.took,
				} {
					if !strings.Contains(out.String(), part) {
						t.Errorf("it did not print %q", part)
					}
				}
				if t.Failed() {
					t.Logf("it printed:\n%s", &out)
				}
			})
		})
	}
}

// TestShift: the greedy tenant's backlog keeps nobody's jobs from running. The checks find the faults that
// are put in.
func TestShift(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		defer time.AfterFunc(open, stop).Stop()
		client, lim := newLimiter(t)
		s := newShift(ctx, lim.Jobs, tenants())
		if s.left[0] == 0 || s.left[1] != 0 || s.counts[1][late] != 0 {
			t.Errorf("acme has %d jobs left, bolt %d, and %d came too late", s.left[0], s.left[1], s.counts[1][late])
		}
		for _, what := range []phase{done, failed, late} {
			if s.sum(what) == 0 {
				t.Errorf("no job ended in phase %d", what)
			}
		}
		check := func() error {
			t.Helper()
			accounts, err := s.accounts(t.Context(), client, lim.Jobs)
			if err != nil {
				t.Fatal(err)
			}
			return s.check(new(strings.Builder), accounts)
		}
		if err := check(); err != nil {
			t.Error(err)
		}

		// A worker that does not give back what a failed job took.
		if _, err := lim.Jobs.Wait(t.Context(), s.tenants[2].Tenant, limits.JobsCost{Units: 3}); err != nil {
			t.Fatal(err)
		}
		if err := check(); err == nil || !strings.HasPrefix(err.Error(), "tenant-coyote: the table has ") ||
			!strings.Contains(err.Error(), "\nfleet-main: the table has ") {
			t.Errorf("units that nobody gave back: %v", err)
		}
		// A limit that lets too much through.
		s.ended = s.began
		if err := check(); err == nil || !strings.Contains(err.Error(), "tenant-acme: its jobs used ") {
			t.Errorf("more than a burst at once: %v", err)
		}
		s.counts[0][broken]++
		if err := check(); err == nil ||
			!strings.HasSuffix(err.Error(), "the limits of 1 jobs could not be looked up, or settled") {
			t.Errorf("a job without limits: %v", err)
		}
	})
}

// TestDo: what becomes of a job, and of what it took.
func TestDo(t *testing.T) {
	jobs := func(used int64, err error) job {
		return job{limits.Tenant{ID: "1"}, 5, func(context.Context) (int64, error) { return used, err }}
	}
	unavailable := &limits.UnavailableError{Err: errors.New("connection refused")}
	for name, test := range map[string]struct {
		job      job
		limited  func(*limittest.Fake[limits.JobsEntity, limits.JobsCost])
		stop     time.Duration
		want     phase
		settled  int64
		released bool
	}{
		"done":        {job: jobs(3, nil), want: done, settled: 3},
		"in its turn": {job: jobs(3, nil), limited: deny(time.Second), want: done, settled: 3},
		"failed":      {job: jobs(3, errJob), want: failed, released: true},
		"too late":    {job: jobs(3, nil), limited: deny(time.Minute), want: late},
		"stopped":     {job: jobs(3, nil), limited: deny(5 * time.Second), stop: time.Second, want: abandoned},
		"unavailable": {job: jobs(3, nil), limited: func(f *limittest.Fake[limits.JobsEntity, limits.JobsCost]) {
			f.Fail(unavailable)
		}, want: broken},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				fake := limittest.NewFake((*limits.JobsResource)(nil))
				if test.limited != nil {
					test.limited(fake)
				}
				ctx, stop := context.WithCancel(t.Context())
				defer stop()
				if test.stop > 0 {
					defer time.AfterFunc(test.stop, stop).Stop()
				}
				w := worker{patient{fake}, func(time.Time, phase) {}}
				if got := w.do(ctx, test.job); got != test.want {
					t.Errorf("it ended in phase %d, want %d", got, test.want)
				}
				call := fake.Calls()[0]
				if call.Cost.Units != 5 || call.Settled.Units != test.settled || call.Released != test.released {
					t.Errorf("took %d, settled for %d, released: %v", call.Cost.Units, call.Settled.Units, call.Released)
				}
			})
		})
	}
}

// TestWorkEndsJobs: a job that runs when the workers are to stop is brought to its end, and the next one does
// not begin.
func TestWorkEndsJobs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fake := limittest.NewFake((*limits.JobsResource)(nil))
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		queue := make(chan job, 2)
		for range cap(queue) {
			queue <- job{limits.Tenant{ID: "1"}, 5, func(ctx context.Context) (int64, error) {
				stop()
				return 4, ctx.Err()
			}}
		}
		var ends []phase
		w := worker{fake, func(_ time.Time, what phase) { ends = append(ends, what) }}
		w.work(ctx, queue)
		if calls := fake.Calls(); len(calls) != 1 || calls[0].Settled.Units != 4 || len(queue) != 1 ||
			ends[len(ends)-1] != done {
			t.Errorf("%d jobs are left; %+v; %v", len(queue), calls, ends)
		}
	})
}

// patient waits ten seconds for its turn, as With would have it of a real resource.
type patient struct{ limits.JobsAcquirer }

// Wait implements limits.JobsAcquirer.
func (p patient) Wait(
	ctx context.Context, e limits.JobsEntity, c limits.JobsCost, opts ...runtime.CallOption,
) (*limits.JobsLease, error) {
	return p.JobsAcquirer.Wait(ctx, e, c, append(opts, runtime.MaxWait(10*time.Second))...)
}

// deny has jobs wait so long.
func deny(wait time.Duration) func(*limittest.Fake[limits.JobsEntity, limits.JobsCost]) {
	return func(f *limittest.Fake[limits.JobsEntity, limits.JobsCost]) { f.Deny(limits.JobsUnits, wait) }
}

// newLimiter returns a limiter on a table of its own.
func newLimiter(t *testing.T) (*dynamodb.Client, *limits.Limiter) {
	t.Helper()
	client := memdynamo.New().Client()
	if _, err := operator.CreateTable(t.Context(), client, table); err != nil {
		t.Fatal(err)
	}
	lim, err := limits.New(dynamo.New(client, table))
	if err != nil {
		t.Fatal(err)
	}
	return client, lim
}
