package breaker_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/sluice-go/sluice/runtime/internal/breaker"
)

var errDown = errors.New("connection refused")

// trial is a history of overlapping calls through a breaker, on a clock of its own, and what follows from it.
type trial struct {
	b        *breaker.Variant
	now      time.Duration
	event    int // counts entries and ends
	underWay []*trialCall
	probes   int

	// The definition of a breaker reads these from the history.
	answered   int           // the event of the last answer
	answeredAt time.Duration // -1 if there was none
	failures   int           // of calls that began after it
	failedAt   time.Duration // the last that opened the breaker, or was a probe's
}

type trialCall struct {
	leave func(error)
	began int
	probe bool
}

func newTrial() *trial {
	tr := &trial{answeredAt: -1}
	tr.b = &breaker.Variant{Breaker: breaker.New(func() time.Duration { return tr.now })}
	return tr
}

func (tr *trial) open() bool { return tr.failures >= 5 }

// enter sends a call, and checks whether it is let through.
func (tr *trial) enter() error {
	tr.event++
	leave, ok := tr.b.Enter()
	want := !tr.open() || tr.now >= tr.failedAt+time.Second && tr.probes < 4
	if ok != want {
		return fmt.Errorf("lets a call through: %t, want %t", ok, want)
	}
	if ok {
		tr.underWay = append(tr.underWay, &trialCall{leave, tr.event, tr.open()})
		if tr.open() {
			tr.probes++
		}
	}
	return nil
}

// end ends the i-th call under way.
func (tr *trial) end(i int, shows error) {
	tr.event++
	call := tr.underWay[i]
	tr.underWay = slices.Delete(tr.underWay, i, i+1)
	call.leave(shows)
	if call.probe {
		tr.probes--
	}
	switch {
	case shows == nil:
		tr.answered, tr.answeredAt, tr.failures = tr.event, tr.now, 0
	case errors.Is(shows, breaker.ErrNeutral), call.began < tr.answered:
	case !tr.open() || call.probe:
		if tr.failures++; tr.open() {
			tr.failedAt = tr.now
		}
	}
}

// check compares what the breaker says of the store with the history.
func (tr *trial) check() error {
	open, silent := tr.b.IsOpen(), tr.b.Silent()
	if open != tr.open() {
		return fmt.Errorf("open %t after %d failures in a row", open, tr.failures)
	}
	halfOpen := open && (tr.probes > 0 || tr.now >= tr.failedAt+time.Second)
	want := (tr.answeredAt < 0 || tr.now >= tr.answeredAt+2*time.Second) && !halfOpen
	if silent != want {
		return fmt.Errorf("silent %t, want %t: answered at %v, now %v, half-open %t",
			silent, want, tr.answeredAt, tr.now, halfOpen)
	}
	return nil
}

// run performs steps that t chooses, and returns how b differs from the definition.
func (tr *trial) run(t *rapid.T) error {
	shows := rapid.SampledFrom([]error{errDown, errDown, errDown, errDown, errDown, breaker.ErrNeutral,
		breaker.ErrNeutral, nil})
	for range rapid.IntRange(1, 80).Draw(t, "steps") {
		switch n := rapid.IntRange(0, 9).Draw(t, "step"); {
		case n < 4:
			for range rapid.IntRange(1, 6).Draw(t, "calls") {
				if err := tr.enter(); err != nil {
					return err
				}
			}
		case n < 9 && len(tr.underWay) > 0:
			tr.end(rapid.IntRange(0, len(tr.underWay)-1).Draw(t, "call"), shows.Draw(t, "shows"))
		default:
			tr.now += time.Duration(rapid.IntRange(1, 5).Draw(t, "elapsed")) * 501 * time.Millisecond
		}
		if err := tr.check(); err != nil {
			return err
		}
	}
	return nil
}

// TestBreakerLaws holds the breaker to its definition, whatever calls overlap.
func TestBreakerLaws(t *testing.T) {
	runs, opened := 0, 0
	for runs < 500 {
		rapid.Check(t, func(rt *rapid.T) {
			runs++
			tr := newTrial()
			if err := tr.run(rt); err != nil {
				rt.Fatal(err)
			}
			if tr.open() {
				opened++
			}
		})
	}
	if opened < 5 {
		t.Errorf("%d of %d histories ended with an open breaker", opened, runs)
	}
}

// TestBreakerLawsAreSeen: each broken variant is caught, for what is wrong with it.
func TestBreakerLawsAreSeen(t *testing.T) {
	for _, test := range []struct {
		name   string
		breaks func(*breaker.Variant)
		seen   string
	}{
		{"counts time-outs of a crowd beside answers", func(b *breaker.Variant) { b.Crowd = true }, "open true"},
		{"deaf to answers", func(b *breaker.Variant) { b.Deaf = true }, "open true after 0"},
		{"probes without bound", func(b *breaker.Variant) { b.Eager = true }, "lets a call through: true"},
		{"keeps places of neutral probes", func(b *breaker.Variant) { b.Sticky = true },
			"lets a call through: false"},
	} {
		t.Run(test.name, func(t *testing.T) {
			const enough = 2000
			runs, caught := 0, 0
			for runs < enough {
				rapid.Check(t, func(rt *rapid.T) {
					tr := newTrial()
					test.breaks(tr.b)
					runs++
					if err := tr.run(rt); err != nil && strings.HasPrefix(err.Error(), test.seen) {
						caught++
					}
				})
			}
			if caught < 5 {
				t.Errorf("caught in %d of %d histories", caught, runs)
			}
		})
	}
}

// TestBreakerCrowd: five time-outs of one crowd in the same instant do not open it while others are answered,
// and do if nothing is.
func TestBreakerCrowd(t *testing.T) {
	for _, test := range []struct {
		name                string
		answered, old, open bool
	}{
		{"others are answered", true, false, false},
		{"others are answered, under the old rule", true, true, true},
		{"nothing is answered", false, false, true},
	} {
		tr := newTrial()
		tr.b.Crowd = test.old
		for range 6 {
			if err := tr.enter(); err != nil {
				t.Fatal(err)
			}
		}
		tr.now += time.Second
		if test.answered {
			tr.end(5, nil)
		}
		for range 5 {
			tr.end(0, errDown)
		}
		if got := tr.b.IsOpen(); got != test.open {
			t.Errorf("%s: open %t, want %t", test.name, got, test.open)
		}
	}
}

// TestBreakerIsSharedSafely: the race detector watches. An answer that comes together with the fifth failure
// leaves the breaker closed, and no probe keeps its place.
func TestBreakerIsSharedSafely(t *testing.T) {
	start := time.Now()
	b := &breaker.Variant{Breaker: breaker.New(func() time.Duration { return time.Since(start) })}
	var wg sync.WaitGroup
	for range 2000 {
		var leave [6]func(error)
		for i := range leave {
			leave[i], _ = b.Enter()
		}
		wg.Go(func() { leave[5](nil) })
		for i := range 5 {
			wg.Go(func() { leave[i](errDown) })
		}
		wg.Wait()
		if b.IsOpen() {
			t.Fatal("it is open although the store has answered")
		}
	}
	for g := range uint64(8) {
		wg.Go(func() {
			random := rand.New(rand.NewPCG(g, 1))
			for range 2000 {
				if leave, ok := b.Enter(); ok {
					leave([]error{nil, errDown, errDown, errDown, errDown, breaker.ErrNeutral}[random.IntN(6)])
				}
			}
		})
	}
	wg.Wait()
	if n := b.Probes(); n != 0 {
		t.Errorf("%d probes are under way", n)
	}
}
