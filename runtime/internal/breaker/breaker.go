// Package breaker keeps an outage from adding a time-out to every call.
package breaker

import (
	"sync"
	"sync/atomic"
	"time"
)

const (
	failuresToOpen = 5
	pause          = time.Second
	maxProbes      = 4

	// aliveFor is how long after an answer the store is not silent.
	aliveFor = 2 * time.Second
)

// Breaker refuses calls while the store does not answer. It judges the store by its answers, whatever they
// say and whichever call they are for:
//   - A call that fails counts only if nothing was answered since it began.
//   - failuresToOpen of these in a row open the breaker, which then refuses calls.
//   - A pause later it is half-open: up to maxProbes calls at a time go through as probes. One that fails
//     starts the next pause.
//   - Any answer closes it.
//
// It is safe for concurrent use (docs/design.md, "Breaker and failure policy").
type Breaker struct {
	now func() time.Duration // never goes back

	// answered is when the last answer came, by now, in ns. No two answers have the same. It is 0 before the
	// first.
	answered atomic.Int64
	open     atomic.Bool
	cause    atomic.Pointer[error] // the failure that opened it, or a later probe's

	mu       sync.Mutex    // guards the fields below, and is held while open changes
	silence  int64         // answered when the calls that failures counts began
	failures int           // of calls that began after the last answer
	retry    time.Duration // when the next probe may go, by now
	probes   int           // under way
}

// New returns a closed Breaker. now returns the time since an instant of its choice, and never goes back.
func New(now func() time.Duration) *Breaker { return &Breaker{now: now} }

// Pass lets one call through.
type Pass struct {
	answered int64 // the Breaker's when the call began
	probe    bool
}

// Enter reports whether a call may ask the store. If so, Leave takes the pass back.
func (b *Breaker) Enter() (p Pass, ok bool) {
	p.answered = b.answered.Load()
	if !b.open.Load() {
		return p, true
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case !b.open.Load():
		return p, true
	case b.probes == maxProbes, b.now() < b.retry:
		return Pass{}, false
	}
	b.probes++
	p.probe = true
	return p, true
}

// Leave records how the call ended that p let through: with an answer, with a failure, or with neither.
func (b *Breaker) Leave(p Pass, answered bool, failure error) {
	if answered {
		b.Answered()
	}
	if failure == nil && !p.probe {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if p.probe {
		b.probes--
	}
	if failure != nil {
		b.fail(p, failure)
	}
}

// Answered records an answer. It locks nothing while b is closed.
func (b *Breaker) Answered() {
	before := b.answered.Load()
	// If the swap fails, another answer has just been recorded.
	b.answered.CompareAndSwap(before, max(before+1, int64(b.now())))
	if b.open.Load() {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.open.Store(false)
	}
}

// fail records a failure of p's call. The caller holds mu.
func (b *Breaker) fail(p Pass, failure error) {
	if b.answered.Load() != p.answered || b.open.Load() && !p.probe {
		return
	}
	if b.silence != p.answered {
		b.silence, b.failures = p.answered, 0
	}
	if b.failures++; b.failures < failuresToOpen {
		return
	}
	b.retry = b.now() + pause
	b.cause.Store(&failure)
	b.open.Store(true)
	if b.answered.Load() != p.answered { // that answer may have found b closed
		b.open.Store(false)
	}
}

// IsOpen reports whether b is open or half-open.
func (b *Breaker) IsOpen() bool { return b.open.Load() }

// Cause returns the failure that opened b, or that of a later probe. It is nil if b never was open.
func (b *Breaker) Cause() error {
	if err := b.cause.Load(); err != nil {
		return *err
	}
	return nil
}

// Silent reports that the store has answered nothing for aliveFor, and that b is not half-open: no call is
// finding out just now whether the store answers.
func (b *Breaker) Silent() bool {
	now := b.now()
	if at := time.Duration(b.answered.Load()); at > 0 && now < at+aliveFor {
		return false
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	halfOpen := b.open.Load() && (b.probes > 0 || now >= b.retry)
	return !halfOpen
}
