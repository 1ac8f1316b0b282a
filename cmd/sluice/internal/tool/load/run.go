// Package load drives the limits of a schema: many callers acquire, through the limiters that users have,
// while what comes of it is counted.
//
//	Plan: which calls -> Run: callers make them, at a rate or as fast as they are answered -> Result
package load

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sluice-go/sluice/gen"
	"github.com/sluice-go/sluice/internal/tool/untyped"
	"github.com/sluice-go/sluice/runtime"
	"github.com/sluice-go/sluice/runtime/store"
)

// Config is how a Plan is run.
type Config struct {
	Plan       *Plan
	Statements []gen.Statements   // of Plan.Specs
	Store      func() store.Store // makes one for each limiter
	Limiters   int                // with nothing in common but the store, as processes
	Callers    int                // of all limiters together: so many calls are under way at most
	Rate       float64            // calls that come due in a second; 0 is as fast as they are answered
	Duration   time.Duration
	Calls      int64   // 0 is no bound
	Units      float64 // no call begins once so many capacity units were consumed; 0 is no bound
	Clock      store.Clock
	OnReport   func(Progress) // is called a few times a second; may be nil
}

// resource is an entry to one resource, whose costs are vectors in schema order.
type resource = runtime.Resource[*Entity, []int64]

// limiter is one as generated code makes it.
type limiter struct {
	*runtime.Limiter
	resources []*resource
}

// Run is a load under way, or to come.
type Run struct {
	Config

	limiters []limiter
	book     *book
	next     atomic.Int64 // the number of the call that begins next; more are given out than begin
	begun    atomic.Int64 // calls
	began    time.Time
	stop     context.CancelFunc     // of callers who wait for a call to come due
	ended    atomic.Pointer[string] // why no more calls begin
}

// Why a load ended.
const (
	EndedDuration = "duration"
	EndedCalls    = "calls"
	EndedUnits    = "units"
	EndedEarly    = "interrupted"
	EndedSetup    = "setup"
)

// New opens the store for each limiter. It does no I/O.
func New(c Config) (*Run, error) {
	r := &Run{Config: c, book: newBook(len(c.Plan.Mix))}
	var definitions []store.Definition
	for i, spec := range c.Plan.Specs {
		definitions = append(definitions, untyped.Define(spec, c.Statements[i]))
	}
	for range c.Limiters {
		b := runtime.NewBuilder(c.Store(), runtime.WithObserver(r.book.observer()), runtime.WithClock(c.Clock),
			runtime.WithLogger(slog.New(slog.DiscardHandler))) // the report counts what it would say
		var l limiter
		for _, d := range definitions {
			l.resources = append(l.resources, runtime.Bind[*Entity](b, d,
				func(cost []int64, dst []int64) []int64 { return append(dst, cost...) },
				slices.Clone[[]int64]))
		}
		var err error
		if l.Limiter, err = b.Limiter(); err != nil {
			return nil, err
		}
		r.limiters = append(r.limiters, l)
	}
	return r, nil
}

// Check asks the store whether it can serve, as programs do before they serve.
func (r *Run) Check(ctx context.Context) error { return r.limiters[0].Check(ctx) }

// Do makes the calls, until that many are made, the time is over or ctx is: what is under way then ends by
// itself. It returns once all that was to be written has been.
func (r *Run) Do(ctx context.Context) *Result {
	waits, stop := context.WithCancel(ctx)
	defer stop()
	r.began, r.stop = r.Clock.Now(), stop
	before := waitedForCPU()
	callers := make(chan struct{})
	var working sync.WaitGroup
	for i := range r.Callers {
		working.Go(func() { r.call(waits, &r.limiters[i%len(r.limiters)]) })
	}
	go func() {
		working.Wait()
		close(callers)
	}()
	r.watch(callers)
	took := r.Clock.Now().Sub(r.began)
	starved := waitedForCPU().percentile(before, 99)
	unclosed := r.close(ctx)
	result := r.result(took)
	result.Unclosed, result.Starved = unclosed, milliseconds(starved)
	return result
}

// watch calls OnReport until the run is over.
func (r *Run) watch(over <-chan struct{}) {
	for {
		select {
		case <-over:
			return
		case <-r.Clock.After(200 * time.Millisecond):
			if r.OnReport != nil {
				r.OnReport(r.progress())
			}
		}
	}
}

// close has the limiters write what settles have left for later. It returns why that may be missing.
func (r *Run) close(ctx context.Context) (err error) {
	bounded, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*store.DefaultSettleTimeout)
	defer cancel()
	for _, l := range r.limiters {
		if failed := l.Close(bounded); err == nil {
			err = failed
		}
	}
	return err
}

// call makes one call after the other. Those that have begun are not broken off: what they came to would be
// unknown.
func (r *Run) call(ctx context.Context, l *limiter) {
	drawer, calls := r.Plan.NewDrawer(), context.WithoutCancel(ctx)
	for {
		n, due, ok := r.take(ctx)
		if !ok {
			return
		}
		r.acquire(calls, l, drawer.Draw(n), due)
	}
}

// take waits for the next call to come due. due is when that was; where there is no rate, it is now.
func (r *Run) take(ctx context.Context) (n int64, due time.Time, ok bool) {
	now := r.Clock.Now()
	if r.over(ctx, now) {
		return 0, now, false
	}
	n = r.next.Add(1) - 1
	if r.Calls > 0 && n >= r.Calls {
		return r.end(EndedCalls)
	}
	if r.Rate == 0 {
		return n, now, true
	}
	after := r.due(n)
	if after >= r.Duration {
		return r.end(EndedDuration)
	}
	due = r.began.Add(after)
	wait := due.Sub(now)
	if wait > 0 {
		select {
		case <-r.Clock.After(wait):
		case <-ctx.Done():
		}
		if r.over(ctx, due) { // as many callers wait as are free: each would make one more call
			return 0, now, false
		}
	}
	now = r.Clock.Now()
	late := now.Sub(due)
	r.book.waiting(late)
	if wait > 0 && late <= tick {
		due = now
	}
	return n, due, true
}

// tick is how late a timer may be. A caller that was free when its call came due may begin up to a tick late
// because of its timer. No service waits for such a timer, so the call counts as due when it begins. A call
// that is later has waited for a caller or a CPU, and its latency includes that.
const tick = 2 * time.Millisecond

// over reports that no call begins any more, and records why. It also ends the waits of callers for their
// next call, if neither the duration nor ctx does.
func (r *Run) over(ctx context.Context, now time.Time) bool {
	switch {
	case ctx.Err() != nil:
		r.end(EndedEarly)
	case r.book.failedSetup() != nil:
		r.end(EndedSetup)
		r.stop()
	case r.Units > 0 && r.book.consumed().sum() >= r.Units:
		r.end(EndedUnits)
		r.stop()
	case now.Sub(r.began) >= r.Duration:
		r.end(EndedDuration)
	default:
		return false
	}
	return true
}

// due returns how long after the beginning the nth call comes due.
func (r *Run) due(n int64) time.Duration {
	return time.Duration(float64(n) / r.Rate * float64(time.Second))
}

// end notes why no more calls begin: the first reason stands.
func (r *Run) end(why string) (int64, time.Time, bool) {
	r.ended.CompareAndSwap(nil, &why)
	return 0, time.Time{}, false
}

// acquire makes a call. Its latency counts from when it was due: a call that had to wait because others took
// long would have waited at a user's, too.
func (r *Run) acquire(ctx context.Context, l *limiter, call Call, due time.Time) {
	r.begun.Add(1)
	on := l.resources[call.Resource]
	observed := &seen{}
	lease, err := on.Acquire(context.WithValue(ctx, seenKey{}, observed), call.Entity, call.Cost)
	r.book.acquired(call, r.Clock.Now().Sub(due), lease.Degraded(), observed, err)
	if err != nil {
		return
	}
	if call.Settle == nil { // writes only if the lease holds tokens
		lease.Keep(ctx)
		return
	}
	began := r.Clock.Now()
	err = lease.Settle(ctx, call.Settle)
	r.book.settled(r.Clock.Now().Sub(began), err)
}
