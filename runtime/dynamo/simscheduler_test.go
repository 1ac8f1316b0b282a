package dynamo

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sluice-go/sluice/internal/test/longform"
	"github.com/sluice-go/sluice/runtime/bucket"
	"github.com/sluice-go/sluice/runtime/dynamo/internal/pace"
	"github.com/sluice-go/sluice/runtime/dynamo/internal/scheduler"
	"github.com/sluice-go/sluice/runtime/store"
)

// loads are open loads by name. Those without an overload, or few turns, ask for less than 8 tenths of their
// limits.
func loads() map[string]openLoad {
	one := openLoad{
		processes: 1, rate: 150, duration: 3 * time.Second, cost: always(1000, 1000),
		limits: []bucket.Limit{perSecond(100_000), perSecond(1_000_000)},
	}
	of := func(processes int, rate float64, change ...func(*openLoad)) openLoad {
		l := one
		l.processes, l.rate = processes, rate
		for _, f := range change {
			f(&l)
		}
		return l
	}
	slow := func(l *openLoad) { l.delay, l.budget = 50*time.Millisecond, 2*time.Second }
	siblings := func(l *openLoad) { l.users, l.direct = 64, 0.2 }
	drained := func(l *openLoad) { l.limits = []bucket.Limit{perSecond(2000), perSecond(20_000)} }
	mixedSizes := func(l *openLoad) { l.cost = mixed }
	few := func(l *openLoad) {
		l.users, l.inFlight, l.duration, l.budget = 640, 4, time.Second, 300*time.Millisecond
	}
	compensated := func(l *openLoad) { l.cascade = store.CascadeCompensated }
	return map[string]openLoad{
		"2 processes":        of(2, 150),
		"4 processes":        of(4, 400),
		"16 processes":       of(16, 400),
		"16 processes, slow": of(16, 150, slow),
		"16 processes, skew": of(16, 150, func(l *openLoad) { l.skew = 10 * time.Millisecond }),
		"small burst": of(8, 400, func(l *openLoad) { // so that the slack is less than a round trip's refill
			l.limits = []bucket.Limit{bucket.Per(10_000, 100*time.Millisecond), perSecond(1_000_000)}
		}),
		"siblings in one process": of(1, 400, siblings),
		"siblings in 4 processes": of(4, 50, siblings),
		"throttled":               of(2, 150, func(l *openLoad) { l.faults.throttled = 0.3 }),
		"conflicts":               of(2, 150, func(l *openLoad) { l.faults.conflict = 0.3 }),

		"overload":                           of(1, 4000, drained),
		"overload, mixed sizes":              of(1, 2000, drained, mixedSizes),
		"overload, mixed sizes, 4 processes": of(4, 400, drained, mixedSizes),
		"few turns":                          of(1, 2000, few, func(l *openLoad) { l.direct = 1 }),
		"few turns, compensated":             of(1, 1000, few, compensated),
	}
}

// pause is how long a request may wait while nothing is under way for its queue and a turn is free.
func (l *openLoad) pause() time.Duration {
	trip := max(8*time.Millisecond, 2*l.delay*11/10) + time.Millisecond // the longest
	longest := trip / 20                                                // for callers who come back
	const above = 1.5                                                   // the longest random pause, in means
	switch {
	case l.faults.throttled > 0:
		return longest + time.Duration(above*float64(pace.LongestGap))
	case l.faults.conflict > 0, l.users > 0:
		return longest + time.Duration(above*pace.ConflictGap*float64(trip))
	}
	return longest
}

// property is one that the scheduler promises (docs/design.md, "Scheduler").
type property struct {
	loads    []string
	wrong    func(*openLoad, *seen) string // describes how a load breaks it; "" if it holds
	controls map[string]breakage
}

// breakage is a load on a broken scheduler, and what has to be said of it.
type breakage struct {
	load   string
	change func(*openLoad)
	want   string
}

// properties are those of the scheduler, by name.
func properties() map[string]property {
	return map[string]property{
		"one write per queue": {
			loads: []string{"4 processes", "siblings in one process", "siblings in 4 processes"},
			wrong: func(_ *openLoad, s *seen) string {
				if s.writes > 1 {
					return fmt.Sprintf("%d writes of a queue at once", s.writes)
				}
				return ""
			},
			controls: map[string]breakage{
				"two queues of a bucket": {"4 processes", twoStores, "2 writes of a queue at once"},
				"two queues of a root":   {"siblings in one process", twoStores, "2 writes of a queue at once"},
			},
		},
		"bounded work": {
			loads: []string{"few turns", "few turns, compensated"},
			wrong: func(l *openLoad, s *seen) string {
				if s.inFlight != l.inFlight { // fewer: the load does not fill the turns
					return fmt.Sprintf("%d reads and writes at once, want %d", s.inFlight, l.inFlight)
				}
				return ""
			},
			controls: map[string]breakage{
				"no turn is taken": {"few turns", endlessTurns, "reads and writes at once, want 4"},
			},
		},
		"without a turn nothing is sent": {
			loads: []string{"few turns"},
			wrong: func(_ *openLoad, s *seen) string {
				if s.unsent == 0 || s.sent > 0 {
					return fmt.Sprintf("%d calls ended with ErrNotSent, %d of them after a write", s.unsent, s.sent)
				}
				return ""
			},
			controls: map[string]breakage{
				// The write of a chain's first bucket had a turn.
				"bucket by bucket": {"few turns, compensated", func(*openLoad) {}, " of them after a write"},
			},
		},
		"no starvation": {
			loads: []string{
				"2 processes", "4 processes", "16 processes", "16 processes, slow", "16 processes, skew", "small burst",
			},
			wrong: func(l *openLoad, s *seen) string {
				switch {
				case s.failed > 0 || s.denied > 0:
					return fmt.Sprintf("%d calls failed, %d were denied: %v", s.failed, s.denied, s.failure)
				case s.lost > scheduler.RacesAtOnce && l.skew == 0:
					return fmt.Sprintf("a call lost %d races", s.lost)
				}
				return ""
			},
			controls: map[string]breakage{
				"newcomers join, slow": {"16 processes, slow", newcomersJoin, "contended after 8 attempts"},
				"newcomers join":       {"small burst", newcomersJoin, "contended after 8 attempts"},
			},
		},
		"first in, first out": {
			loads: []string{
				"16 processes, slow", "overload", "overload, mixed sizes", "overload, mixed sizes, 4 processes",
			},
			wrong: func(l *openLoad, s *seen) string {
				switch {
				case s.passed > 1 && l.processes == 1:
					return fmt.Sprintf("a call was passed over %d times", s.passed)
				case s.larger > 0:
					return "a call was passed over by one that takes as much"
				}
				return ""
			},
			controls: map[string]breakage{
				"last in, first out":    {"overload", lastInFirstOut, "passed over by one that takes as much"},
				"one is held back":      {"overload, mixed sizes", holdingBack, "a call was passed over "},
				"one of many held back": {"16 processes, slow", holdingBack, "passed over by one that takes as much"},
			},
		},
		"work-conserving": {
			loads: []string{
				"2 processes", "16 processes", "16 processes, slow", "siblings in one process", "siblings in 4 processes",
				"throttled", "conflicts", "overload", "few turns",
			},
			wrong: func(l *openLoad, s *seen) string {
				if most := l.pause(); s.idle > most {
					return fmt.Sprintf("a call waited for %v with nothing under way, want %v", s.idle, most)
				}
				return ""
			},
			controls: map[string]breakage{
				"a second after each request": {"2 processes", resting(time.Second), "a call waited for 1"},
				"a millisecond":               {"overload", resting(time.Millisecond), "a call waited for 1"},
				"a second, throttled":         {"throttled", resting(time.Second), "a call waited for 1."},
			},
		},
	}
}

func endlessTurns(l *openLoad) { l.change = option(InFlight(math.MaxInt32)) }

func newcomersJoin(l *openLoad) {
	l.change = func(s *Store) { s.seams.NewcomersJoin = true }
}

// twoStores has the calls of a process go to two stores in turn.
func twoStores(l *openLoad) { l.stores = 2 }

// resting has each request take longer than its reply does.
func resting(d time.Duration) func(*openLoad) {
	return func(l *openLoad) { l.replied = func(*watch) { <-time.After(d) } }
}

// reordering has change reorder the queue of user 1 before each reply.
func reordering(change func(waiting *[]*scheduler.Request)) func(*watch) {
	return func(w *watch) {
		w.mu.Lock()
		all := slices.Clone(w.shared)
		w.mu.Unlock()
		for _, q := range all {
			q.mu.Lock()
			change(q.waiting)
			q.mu.Unlock()
		}
	}
}

func lastInFirstOut(l *openLoad) {
	l.replied = reordering(func(waiting *[]*scheduler.Request) { slices.Reverse(*waiting) })
}

// holdingBack has each queue hold a request back for three writes, again and again.
func holdingBack(l *openLoad) {
	type held struct {
		request *scheduler.Request
		writes  int
	}
	var mu sync.Mutex
	all := map[*[]*scheduler.Request]held{}
	l.replied = reordering(func(waiting *[]*scheduler.Request) {
		mu.Lock()
		defer mu.Unlock()
		h := all[waiting]
		switch h.writes++; {
		case h.request == nil && len(*waiting) > 1:
			h.request, h.writes = (*waiting)[0], 0
			*waiting = (*waiting)[1:]
		case h.request != nil && h.writes > 3:
			*waiting = append(*waiting, h.request)
			h.request = nil
		}
		all[waiting] = h
	})
}

// TestScheduler holds what docs/design.md promises of the scheduler.
func TestScheduler(t *testing.T) {
	skipOnLocal(t)
	t.Parallel()
	gpt4, _ := generated(t)
	seeds := longform.Histories[uint64](t, "histories of each load", 6, 1)
	for load, l := range loads() {
		t.Run(load, func(t *testing.T) {
			t.Parallel()
			if load == "16 processes" {
				longform.Only(t, "16 processes with skew, and with a slow table, are played")
			}
			for seed := range seeds {
				s := l.run(t, gpt4, seed)
				for name, p := range properties() {
					if wrong := p.wrong(&l, &s); slices.Contains(p.loads, load) && wrong != "" {
						t.Errorf("%s, seed %d: %s\n%+v", name, seed, wrong, s)
					}
				}
			}
		})
	}
}

// TestSchedulerControls shows that each property is seen to fail where the scheduler is broken.
func TestSchedulerControls(t *testing.T) {
	skipOnLocal(t)
	longform.Control(t)
	t.Parallel()
	gpt4, _ := generated(t)
	all := loads()
	for name, p := range properties() {
		for control, broken := range p.controls {
			t.Run(name+", "+control, func(t *testing.T) {
				t.Parallel()
				l := all[broken.load]
				broken.change(&l)
				s := l.run(t, gpt4, 1)
				if wrong := p.wrong(&l, &s); !strings.Contains(wrong, broken.want) {
					t.Errorf("it says %q, want %q\n%+v", wrong, broken.want, s)
				}
			})
		}
	}
}
