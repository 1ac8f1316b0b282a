package traffic

import (
	"context"
	"math"
	"math/rand/v2"
	"time"

	"github.com/sluice-go/sluice/gen/testdata/golden/inflight/out"
	"github.com/sluice-go/sluice/runtime"
)

// Slots are the calls that may run at the same time, of an org and of each user.
const Slots = 20

// Holder is a Process whose calls hold a slot of each bucket while they run.
type Holder interface {
	Process
	// Hold takes the slots, and returns what gives them back. With a wait it sleeps for that long at most.
	Hold(ctx context.Context, who Entity, wait time.Duration) (end func(context.Context), err error)
}

// slotted is a process of this project's limiter whose calls hold slots. A project is an org.
type slotted struct {
	*inflight.Limiter
}

func newSlotted(s runtime.Store, opts ...runtime.Option) (Process, error) {
	lim, err := inflight.New(s, opts...)
	if err != nil {
		return nil, err
	}
	return slotted{lim}, nil
}

// Hold implements Holder.
func (f slotted) Hold(ctx context.Context, who Entity, wait time.Duration) (func(context.Context), error) {
	org := inflight.Org{ID: who.Project}
	entity := inflight.CallsEntity(org)
	if who.User != "" {
		entity = inflight.User{ID: who.User, Org: org}
	}
	var lease *inflight.CallsLease
	var err error
	if wait > 0 {
		lease, err = f.Calls.Wait(ctx, entity, inflight.CallsCost{}, runtime.MaxWait(wait))
	} else {
		lease, err = f.Calls.Acquire(ctx, entity, inflight.CallsCost{})
	}
	if err != nil {
		return nil, err
	}
	return lease.Keep, nil
}

// Acquire implements Process: the call takes no time.
func (f slotted) Acquire(ctx context.Context, who Entity) (Admission, error) {
	end, err := f.Hold(ctx, who, 0)
	if err == nil {
		end(ctx)
	}
	return Recorded, err
}

// Bounds of how long a call runs, and the sigma of its lognormal distribution.
const (
	shortestRun = 300 * time.Millisecond
	longestRun  = 3 * time.Second
	runSigma    = 0.5
)

// runs draws how long a call runs.
func (l *Load) runs(rng *rand.Rand) time.Duration {
	d := time.Duration(float64(l.Runs) * math.Exp(runSigma*rng.NormFloat64()))
	return min(max(d, shortestRun), longestRun)
}

// meanRun is the mean of runs.
func (l *Load) meanRun() time.Duration {
	rng, sum := rand.New(rand.NewPCG(1, 1)), time.Duration(0)
	const n = 20_000
	for range n {
		sum += l.runs(rng)
	}
	return sum / n
}

// demanding returns l with a rate of calls that ask for so many times the slots of the org.
func (l Load) demanding(times float64) Load {
	l.Rate = times * Slots / l.meanRun().Seconds() / float64(l.Processes)
	return l
}

// hold has a call of a Holder take its slots, and run. It returns how long the decision took.
func (r *run) hold(ctx context.Context, h Holder, who Entity, lasts time.Duration) (time.Duration, error) {
	began := time.Now()
	end, err := h.Hold(ctx, who, r.load.Wait)
	took := time.Since(began)
	if err != nil {
		return took, err
	}
	r.running(1)
	time.Sleep(lasts)
	r.running(-1)
	end(ctx)
	return took, nil
}

// running notes that so many more calls run from now on.
func (r *run) running(more int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := time.Now()
	if now.After(r.until) {
		now = r.until // what runs after the last arrival is not of the load
	}
	if span := now.Sub(r.changed); span > 0 {
		r.sum.InUse += float64(r.now) * span.Seconds()
		r.changed = now
	}
	r.now += more
	r.sum.Most = max(r.sum.Most, r.now)
}

// balanceSlots is balance for calls in flight: slots are lost if they are not free once all calls have ended.
// More calls than slots are above the limit.
func (r *run) balanceSlots(before, after charged) {
	r.sum.InUse *= 100 / (Slots * r.load.For.Seconds())
	r.sum.AboveLimit = int64(max(0, r.sum.Most-Slots))
	r.counted(before, after)
	r.sum.Lost += after.held
}

// Denied is how many calls were denied.
func (r *Result) Denied() int { return r.Errors["*store.DeniedError"] }

// Broken is how many calls ended with an error that is no denial.
func (r *Result) Broken() float64 {
	n := -r.Denied()
	for _, errors := range r.Errors {
		n += errors
	}
	return float64(n)
}

// Used is the part of the slots that calls had while the load lasted, in percent.
func (r *Result) Used() float64 { return r.InUse }

// broken is a bar of calls in flight, which a full limit may deny.
func broken() Bar {
	return Bar{"failed but for denials", "%.0f failed", (*Result).Broken, false, 0}
}

func used(percent float64) Bar {
	return Bar{"slots in use, percent", "%.1f%% in use", (*Result).Used, true, percent}
}

func jain(index float64) Bar {
	return Bar{"Jain's index", "%.3f of Jain", (*Result).Jain, true, index}
}

// slotRows are 16 processes whose calls hold slots of one org for 0.3 to 3 s.
func slotRows() []Row {
	var rows []Row
	row := func(name string, demand float64, change func(*Load), bars ...Bar) {
		load := Load{
			Resource: inflight.Calls, Processes: 16, Runs: time.Second, OneWay: 5 * time.Millisecond, Sigma: 0.5,
			Policy: runtime.Deny, For: time.Minute,
		}
		change(&load)
		rows = append(rows, Row{
			Name: "slots: 20 of 16 processes, " + name, Load: load.demanding(demand), Bars: bars,
		})
	}
	acquire := func(*Load) {}
	wait := func(l *Load) { l.Wait = 5 * time.Second }
	siblings := func(l *Load) { l.Users = 64 }
	fresh := func(l *Load) { l.Fresh = true }
	row("0.9 asked for", 0.9, acquire, exact(), broken(), p99(6), units(3), jain(0.98))
	row("1.5 asked for", 1.5, acquire, exact(), broken(), p99(6), units(3), jain(0.97), used(83))
	row("0.9 waited for", 0.9, wait, exact(), broken(), units(3), jain(0.98))
	row("1.5 waited for", 1.5, wait, exact(), broken(), units(3), jain(0.94), used(88))
	row("0.9 asked for by 64 siblings", 0.9, siblings, exact(), broken(), p99(6), units(8.5), jain(0.98))
	row("1.5 asked for by 64 siblings", 1.5, siblings, exact(), broken(), p99(6), units(8.5), jain(0.95),
		used(83))
	row("0.9 asked for by new users", 0.9, fresh, exact(), broken(), p99(6), units(9.5), jain(0.98))
	return rows
}
