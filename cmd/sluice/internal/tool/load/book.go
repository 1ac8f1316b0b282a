package load

import (
	"context"
	"errors"
	"math"
	"sync"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"github.com/sluice-go/sluice/runtime/store"
)

// Outcome is how an acquire ended.
type Outcome int

// Outcomes, in the order of reports.
const (
	Admitted Outcome = iota
	Denied
	Degraded // admitted by the failure policy, without a record in the store
	Shadowed // admitted by shadow mode, which reports what would have been refused
	Failed
	outcomes
)

// String returns o as reports have it.
func (o Outcome) String() string {
	return [...]string{"admitted", "denied", "degraded", "shadowed", "failed"}[o]
}

// book records all calls of a run.
type book struct {
	mu       sync.Mutex
	latency  [outcomes]*hdrhistogram.Histogram
	all      *hdrhistogram.Histogram // of every outcome
	settle   *hdrhistogram.Histogram
	waited   *hdrhistogram.Histogram // of calls that were due, until a caller was free
	unsettle int64                   // settles that failed
	portions [][outcomes]int64
	drawn    []map[int]struct{} // by portion, the entities that called
	denials  map[refusal]int64
	failures map[string]*Failure
	setup    error // the first

	reported      [outcomes]int64 // by the observer, of acquires
	reportedLater int64           // by the observer, of settles that failed
	pooled        int64           // by the observer, of acquires that made no request
	paths         map[string]*Path
	units         Units
}

// refusal is the limit, and the kind of its bucket, that refused calls on a resource.
type refusal struct {
	resource    int
	limit, kind string
}

func newBook(portions int) *book {
	b := &book{
		all: histogram(), settle: histogram(), waited: histogram(), portions: make([][outcomes]int64, portions),
		denials: map[refusal]int64{}, failures: map[string]*Failure{}, paths: map[string]*Path{},
	}
	for o := range b.latency {
		b.latency[o] = histogram()
	}
	for range portions {
		b.drawn = append(b.drawn, map[int]struct{}{})
	}
	return b
}

// longest is the longest duration that a histogram records; a longer one counts as this.
const longest = 10 * time.Minute

// histogram holds durations in nanoseconds, to a thousandth of them: 250 KB.
func histogram() *hdrhistogram.Histogram {
	return hdrhistogram.New(1, longest.Nanoseconds(), 3)
}

func record(h *hdrhistogram.Histogram, d time.Duration) {
	_ = h.RecordValue(max(0, min(d, longest)).Nanoseconds()) // which is in its range
}

// seenKey is the context key of a call's *seen.
type seenKey struct{}

// seen is what the limiter reported to the observer about one acquire.
type seen struct {
	shadowed    bool
	limit, kind string // which refused
}

// acquired records an acquire, its duration and what the observer saw of it.
func (b *book) acquired(call Call, took time.Duration, degraded bool, s *seen, err error) {
	outcome := Admitted
	_, refused := errors.AsType[*store.DeniedError](err)
	switch {
	case refused:
		outcome = Denied
	case err != nil:
		outcome = Failed
	case s.shadowed:
		outcome = Shadowed
	case degraded:
		outcome = Degraded
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	record(b.latency[outcome], took)
	record(b.all, took)
	b.portions[call.Portion][outcome]++
	b.drawn[call.Portion][call.Index] = struct{}{}
	switch outcome {
	case Denied, Shadowed:
		b.denials[refusal{call.Resource, s.limit, s.kind}]++
	case Failed:
		b.fail("acquire", err)
	}
}

// waiting records how long a call that was due had to wait for a caller.
func (b *book) waiting(d time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	record(b.waited, d)
}

// settled records a settle.
func (b *book) settled(took time.Duration, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	record(b.settle, took)
	if err != nil {
		b.unsettle++
		b.fail("settle", err)
	}
}

// fail counts what an acquire or a settle failed with. The lock is held.
func (b *book) fail(verb string, err error) {
	if _, ok := errors.AsType[*store.SetupError](err); ok && b.setup == nil {
		b.setup = err
	}
	key := verb + ": " + kindOfError(err)
	f := b.failures[key]
	if f == nil {
		f = &Failure{What: key, First: err.Error()}
		b.failures[key] = f
	}
	f.Calls++
}

// kindOfError names what an error is, whatever its numbers are.
func kindOfError(err error) string {
	if _, ok := errors.AsType[*store.UnavailableError](err); ok {
		return "the store did not answer"
	}
	if _, ok := errors.AsType[*store.ContendedError](err); ok {
		return "contended"
	}
	if _, ok := errors.AsType[*store.CostTooLargeError](err); ok {
		return "the cost is above the burst"
	}
	if _, ok := errors.AsType[*store.InvalidError](err); ok {
		return "invalid"
	}
	if _, ok := errors.AsType[*store.SetupError](err); ok {
		return "the installation is at fault"
	}
	return "other"
}

// observer returns an observer that records what a limiter reports.
func (b *book) observer() *store.Observer {
	report := func(o Outcome) func(context.Context, store.Event) {
		return func(ctx context.Context, e store.Event) {
			b.mu.Lock()
			defer b.mu.Unlock()
			if e.Operation != store.OperationAcquire {
				b.reportedLater++
				return
			}
			if b.reported[o]++; e.Pooled {
				b.pooled++
			}
			if s, ok := ctx.Value(seenKey{}).(*seen); ok {
				*s = seen{o == Shadowed, e.Limit, e.LimitKind}
			}
		}
	}
	return &store.Observer{
		Acquired: report(Admitted), Denied: report(Denied), Degraded: report(Degraded),
		Shadowed: report(Shadowed), Failed: report(Failed), Store: b.stored,
	}
}

// stored records a call to the store.
func (b *book) stored(_ context.Context, e store.StoreEvent) {
	b.mu.Lock()
	defer b.mu.Unlock()
	p := b.paths[e.Path]
	if p == nil {
		p = &Path{Path: e.Path, Outcomes: map[string]int64{}}
		b.paths[e.Path] = p
	}
	p.Calls++
	p.Outcomes[e.Outcome]++
	p.Read += e.Read
	p.Write += e.Write
	b.units.Read += e.Read
	b.units.Write += e.Write
	if e.Outcome == "applied" && e.Coalesced > 0 {
		p.Coalesced += int64(e.Coalesced)
		p.Coalescing++
	}
}

// consumed returns the units so far.
func (b *book) consumed() Units {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.units
}

// failedSetup returns the first *store.SetupError: calls fail until the installation is fixed.
func (b *book) failedSetup() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.setup
}

// percentile returns the duration that percent of h do not exceed.
func percentile(h *hdrhistogram.Histogram, percent float64) time.Duration {
	return time.Duration(min(h.ValueAtPercentile(percent), math.MaxInt64))
}
