package regionsim

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/sluice-go/sluice/runtime/region"
)

// host is where a region's sync runs.
type host struct {
	world   *world
	home    *home
	started int
	taken   map[int]bool // faults of syncs that have happened
}

// instance is one run of a sync, until it is killed.
type instance struct {
	*host

	process *process
	skew    time.Duration
	fault   *Fault // that happens in this cycle
	calls   int    // of this cycle
}

// clock is an instance's, as the region's hosts have them.
type clock struct{ *instance }

// Now returns what the clock shows.
func (c clock) Now() time.Time { return begin.Add(c.world.now + c.skew) }

// After is nothing that a cycle may do: it would wait without the schedule.
func (c clock) After(time.Duration) <-chan time.Time { panic("a cycle waits") }

// start starts a sync after d.
func (h *host) start(d time.Duration) {
	w := h.world
	i := &instance{host: h}
	if w.Skew > 0 {
		i.skew = upTo(w.rng, 2*w.Skew) - w.Skew
	}
	h.started++
	w.spawn(d, func(p *process) {
		i.process = p
		i.run()
	}, func(err error) { w.judge.wrong(h.home, nil, err.Error()) })
}

func (i *instance) run() {
	w := i.world
	config := region.Config{
		Region: i.home.name, Table: tableFace{i}, Snapshots: storeFace{i}, Specs: w.specs, Evict: w.Evict,
		Audit: w.Audit, Clock: clock{i},
		Logger: slog.New(slog.DiscardHandler), Writers: 1,
	}
	if i.home.stream != nil {
		config.Images = i.home.stream.follow()
	}
	if w.Wrap != nil {
		config.Table, config.Snapshots = w.Wrap(i.home.index, config.Table, config.Snapshots)
	}
	sync, err := w.New(config)
	if err != nil {
		w.judge.wrong(i.home, nil, err.Error())
		return
	}
	for {
		wait := w.Window - (w.now-i.home.phase+w.Window)%w.Window // every window, a little late now and then
		if w.rng.IntN(4) == 0 {
			wait += upTo(w.rng, w.Window/5)
		}
		if !i.process.wait(wait) {
			return
		}
		i.calls, i.fault = 0, i.next()
		i.home.cycles++
		report, err := sync.Cycle(context.Background())
		if i.fault != nil {
			i.strike()
		}
		if i.process.killed {
			return
		}
		if err != nil {
			w.trace(i.home, "the cycle failed: %v", err)
		}
		w.judge.reported(i.home, report, err)
	}
}

// next returns what happens to a sync in the cycle that begins.
func (h *host) next() *Fault {
	for n, f := range h.world.Faults {
		if sync := f.Kind == Kill || f.Kind == Stall; !sync || f.Region%len(h.world.regions) != h.home.index ||
			f.At > h.world.now || h.taken[n] {
			continue
		}
		if h.taken == nil {
			h.taken = map[int]bool{}
		}
		h.taken[n] = true
		return &f
	}
	return nil
}

// strike has the cycle's fault happen.
func (i *instance) strike() {
	f := i.fault
	i.fault = nil
	i.world.trace(i.home, "%s for %v", f.Kind, f.For)
	if f.Kind == Kill {
		i.start(f.For)
		i.process.killed = true
		return
	}
	i.process.wait(f.For)
}

// ways are what a call is about.
type way int

const (
	tables way = iota // reads
	quotas
	beats
	gets
	peers // gets of others
	puts
)

// errKilled is what the calls of who was killed return: nobody hears it.
var errKilled = errors.New("regionsim: killed")

// call lets the time of a call pass, and says what becomes of it.
func (i *instance) call(about way, what string) error {
	if i.fault != nil && i.calls >= i.fault.Call && !i.process.killed {
		i.strike()
	}
	i.calls++
	w := i.world
	takes := 2*time.Millisecond + upTo(w.rng, 8*time.Millisecond)
	switch {
	case about >= gets:
		takes *= 8
	case about == quotas:
		takes /= time.Duration(max(w.Writers, 1))
	}
	err := i.refused(about)
	if err != nil {
		takes += upTo(w.rng, w.Window/10)
	}
	if !i.process.wait(takes) {
		return errKilled
	}
	if err != nil {
		w.trace(i.home, "%s: %v", what, err)
	}
	w.judge.called(about)
	return err
}

// refused returns what is wrong with a call.
func (i *instance) refused(about way) error {
	for _, f := range i.world.Faults {
		if f.Region%len(i.world.regions) != i.home.index || !f.covers(i.world.now) ||
			i.world.rng.IntN(100) >= f.Percent {
			continue
		}
		switch {
		case f.Kind == NoGet && (about == gets || about == peers), f.Kind == NoPeers && about == peers,
			f.Kind == NoPut && about == puts, f.Kind == NoTable && about < gets:
			return errRefused
		case f.Kind == LostPut && about == puts, f.Kind == LostTurn && (about == quotas || about == beats):
			return errUnsure
		}
	}
	return nil
}

// lag is how old others' snapshots are that the region reads.
func (h *host) lag() (lag time.Duration) {
	for _, f := range h.world.Faults {
		if f.Kind == Lag && f.Region%len(h.world.regions) == h.home.index && f.covers(h.world.now) {
			lag = max(lag, upTo(h.world.rng, h.world.Window*time.Duration(f.Percent)/100))
		}
	}
	return lag
}
