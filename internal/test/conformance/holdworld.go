package conformance

import (
	"context"
	"errors"
	"math"
	goruntime "runtime"
	"slices"
	"sync"
	"time"

	limits "github.com/sluice-go/sluice/generated"
	"github.com/sluice-go/sluice/runtime"
	"github.com/sluice-go/sluice/runtime/bucket"
	"github.com/sluice-go/sluice/runtime/store"
)

// holds says which limits of a schema count holds.
type holds int

const (
	nothingHeld holds = iota
	slotsHeld         // rpm is in flight
	bothHeld          // and what is reserved of tpm, which has windows, comes back after a crash
)

// pauses is the clock of a process whose leases hold something. A pause ends when a test says so. The store
// has another one: its pauses take no time.
type pauses struct {
	store.Clock

	mu      sync.Mutex
	waiting []chan time.Time
	pausing *sync.Cond         // signals that a pause has begun that does not end at once
	running bool               // pauses end at once
	dead    bool               // goroutines end that ask for the time
	asked   chan time.Duration // pauses that began; none beyond its capacity
}

// Now implements store.Clock.
func (p *pauses) Now() time.Time {
	p.mu.Lock()
	dead := p.dead
	p.mu.Unlock()
	if dead {
		goruntime.Goexit()
	}
	return p.Clock.Now()
}

// After implements store.Clock.
func (p *pauses) After(d time.Duration) <-chan time.Time {
	p.mu.Lock()
	defer p.mu.Unlock()
	over := make(chan time.Time)
	if p.running {
		close(over)
		return over
	}
	p.waiting = append(p.waiting, over)
	p.pausing.Broadcast()
	select {
	case p.asked <- d:
	default:
	}
	return over
}

// end ends all pauses that have begun, and those that begin while running.
func (p *pauses) end(running bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.running = running
	for _, over := range p.waiting {
		close(over)
	}
	p.waiting = nil
}

// rest ends that pauses end at once, and waits until one has begun that does not.
func (p *pauses) rest() {
	p.end(false)
	p.mu.Lock()
	defer p.mu.Unlock()
	for len(p.waiting) == 0 {
		p.pausing.Wait()
	}
}

// newPauses returns a clock that has the time of another one.
func newPauses(clock store.Clock) *pauses {
	p := &pauses{Clock: clock, asked: make(chan time.Duration, 1000)}
	p.pausing = sync.NewCond(&p.mu)
	return p
}

// longest is how long a test waits for what is to happen at once, by the system's clock.
const longest = 10 * time.Second

// await waits until done has something, or is closed.
func await[T any](w *world, what string, done <-chan T) (got T) {
	w.Helper()
	late := time.NewTimer(longest)
	defer late.Stop()
	select {
	case got = <-done:
	case <-late.C:
		w.Fatalf("%s: nothing has happened", what)
	}
	return got
}

// kill ends a process as SIGKILL does: it neither extends nor returns anything from then on.
func (w *world) kill(l *limits.Limiter) {
	p := w.processes[l]
	delete(w.processes, l)
	p.mu.Lock()
	p.dead = true
	p.mu.Unlock()
	p.end(true)
}

// frozen is kill, if it is for a while. It returns what ends that.
func (w *world) frozen(l *limits.Limiter) (thaw func()) {
	p := w.processes[l]
	delete(w.processes, l)
	return func() { w.processes[l] = p }
}

// newHeld returns a lease of l that took portions. Processes that are alive extend it.
func (w *world) newHeld(l *limits.Limiter, lease *limits.GPT4Lease, portions []portion) *held {
	h := &held{GPT4Lease: lease, portions: portions, shadow: w.shadow, in: l}
	w.leases = append(w.leases, h)
	return h
}

// noteHolds has what a call took of portions be held, as the store says in which epochs.
func (w *world) noteHolds(what string, portions []portion, now int64) {
	w.Helper()
	if w.schema.holds == nothingHeld {
		return
	}
	for i := range portions {
		s := &portions[i]
		for _, part := range w.spy.newest() {
			at := slices.IndexFunc(part.Buckets, func(b store.Bucket) bool { return b.Entity == s.entity })
			spec, known := part.Def.Spec(), s.charges[len(s.charges)-1].holds != nil
			if spec.Resource != s.resource || spec.Held == nil || at < 0 || known {
				continue
			}
			if wrong := s.noteHolds(spec.Held, part.Buckets[at].Epochs, now); wrong != "" {
				w.Fatalf("%s: %s", what, wrong)
			}
		}
	}
}

// write is what one write extends: what a process holds of a bucket, of each limit in one epoch and window.
type write struct {
	in    *limits.Limiter
	of    *ideal
	holds [2]*hold // one of each limit
	all   []*hold
}

// fits reports whether all of due, of one charge, are of w's epochs and windows.
func (w *write) fits(due []*hold) bool {
	return !slices.ContainsFunc(due, func(h *hold) bool {
		has := w.holds[h.limit]
		return has != nil && (has.epoch != h.epoch || has.window != h.window)
	})
}

// latest is how long before the end of its epoch a hold is extended at the latest, in ms.
const latest = 20_000

// isDue is when a hold is due that its process extends, in ms. The process looks no earlier, as it pauses.
func (h *hold) isDue() int64 { return bucket.EpochEnd(h.epoch) - latest }

// alive yields the portions of leases that their processes extend.
func (w *world) alive(yield func(*held, *portion) bool) {
	for _, h := range w.leases {
		if w.processes[h.in] == nil || h.ended || h.lost {
			continue
		}
		for i := range h.portions {
			if !yield(h, &h.portions[i]) {
				return
			}
		}
	}
}

// due returns when the first hold is due, in ms, and the writes of that instant. There are none if nothing is
// held.
func (w *world) due() (at int64, all []*write) {
	at = math.MaxInt64
	for h := range w.alive {
		for _, one := range h.all() {
			at = min(at, one.isDue())
		}
	}
	for h, s := range w.alive {
		for _, c := range s.charges {
			due := slices.DeleteFunc(slices.Clone(c.holds), func(h *hold) bool { return h == nil || h.isDue() > at })
			if len(due) == 0 {
				continue
			}
			i := slices.IndexFunc(all, func(o *write) bool { return o.in == h.in && o.of == s.ideal && o.fits(due) })
			if i < 0 {
				i, all = len(all), append(all, &write{in: h.in, of: s.ideal})
			}
			all[i].all = append(all[i].all, due...)
			for _, one := range due {
				all[i].holds[one.limit] = one
			}
		}
	}
	return at, all
}

// all returns the holds of a lease.
func (h *held) all() (all []*hold) {
	for _, s := range h.portions {
		for _, c := range s.charges {
			all = append(all, slices.DeleteFunc(slices.Clone(c.holds), func(h *hold) bool { return h == nil })...)
		}
	}
	return all
}

// pass lets time pass. At each instant at which holds are due, their processes extend them, by one write for
// each bucket.
func (w *world) pass(d time.Duration) {
	w.Helper()
	end := w.store.Clock.Now().Add(d)
	for {
		at, all := w.due()
		for _, one := range all {
			w.processes[one.in].rest() // its goroutine may not have looked at the time yet
		}
		if len(all) == 0 || time.UnixMilli(at).After(end) {
			break
		}
		w.store.Advance(max(0, time.UnixMilli(at).Sub(w.store.Clock.Now())))
		w.extend(all)
	}
	w.store.Advance(end.Sub(w.store.Clock.Now()))
}

// until is pass up to an instant, in ms.
func (w *world) until(at int64) {
	w.Helper()
	w.pass(time.UnixMilli(at).Sub(w.store.Clock.Now()))
}

// extend has processes write now what is due.
func (w *world) extend(all []*write) {
	w.Helper()
	for _, one := range all {
		w.processes[one.in].end(true)
	}
	for range all {
		await(w, "an extension", w.spy.extended)
	}
	w.extended += len(all)
	for _, one := range all {
		w.processes[one.in].rest()
	}
	for h := range w.alive { // a settle waits until nothing extends its lease
		for _, lease := range append(h.others, h.GPT4Lease) {
			failed[*store.InvalidError](w, "a negative settle", lease.Settle(w.Context(), cost(1, -1)))
		}
	}
	for _, one := range all {
		for _, h := range one.all {
			h.extend(w.store.Decided())
		}
	}
	for _, h := range w.leases {
		h.lost = h.lost || slices.ContainsFunc(h.all(), func(h *hold) bool { return h.lost })
	}
}

// loses holds that h, whose context is ctx, is lost once its process looks at the time.
func (w *world) loses(ctx context.Context, h *held) {
	w.Helper()
	p := w.processes[h.in]
	p.end(true)
	p.rest() // it has looked, and pauses
	if err := context.Cause(ctx); !errors.Is(err, runtime.ErrLeaseLost) {
		w.Errorf("its context ends by %v, want ErrLeaseLost", err)
	}
	h.lost = true
}

// notExtended holds that no more was written to extend holds than the model knows of.
func (w *world) notExtended() {
	if n := len(w.spy.extended); n > 0 {
		w.Errorf("%d more writes extend holds", n)
	}
}

// withHolds has run end all processes that it began.
func withHolds(run func(*world)) func(*world) {
	return func(w *world) {
		defer func() {
			for l := range w.processes {
				w.kill(l)
			}
		}()
		run(w)
		w.notExtended()
	}
}
