package regionsim

import (
	"container/heap"
	"fmt"
	"runtime/debug"
	"time"
)

// schedule is a virtual clock and what happens when. Exactly one goroutine runs: the schedule itself, or the
// process that it has handed the baton to. So a seed gives one history.
type schedule struct {
	now    time.Duration // since the world began
	events events
	placed int // events so far: those of one instant happen in the order in which they were placed
	living []*process
}

// after has do done after d.
func (s *schedule) after(d time.Duration, do func()) {
	s.placed++
	heap.Push(&s.events, event{s.now + max(0, d), s.placed, do})
}

// run lets time pass until an instant, or until stop says so.
func (s *schedule) run(until time.Duration, stop func() bool) {
	for len(s.events) > 0 && s.events[0].at <= until && !stop() {
		e := heap.Pop(&s.events).(event)
		s.now = e.at
		e.do()
	}
}

// end ends every process.
func (s *schedule) end() {
	for _, p := range s.living {
		p.killed = true
		p.proceed()
	}
}

// process is a goroutine that waits for its turn wherever time passes for it.
type process struct {
	schedule       *schedule
	turn           chan struct{} // the baton, to the process and back
	killed, ended  bool
	running, begun bool
	failed         func(error) // reports a panic
}

// spawn begins do after d.
func (s *schedule) spawn(d time.Duration, do func(*process), failed func(error)) {
	p := &process{schedule: s, turn: make(chan struct{}), failed: failed}
	s.living = append(s.living, p)
	s.after(d, func() {
		if p.killed {
			return
		}
		p.begun = true
		go func() {
			defer func() {
				if r := recover(); r != nil {
					p.failed(fmt.Errorf("panic: %v\n%s", r, debug.Stack()))
				}
				p.ended = true
				p.turn <- struct{}{}
			}()
			<-p.turn
			do(p)
		}()
		p.proceed()
	})
}

// proceed hands the baton to p, and returns when it is back.
func (p *process) proceed() {
	if !p.begun || p.ended {
		return
	}
	p.running = true
	p.turn <- struct{}{}
	<-p.turn
	p.running = false
}

// wait lets d pass. It reports that p was not killed meanwhile: else it has ended, and may change nothing any
// more.
func (p *process) wait(d time.Duration) bool {
	if p.killed {
		return false
	}
	if !p.running {
		panic("a sync makes two calls side by side: the simulator takes them one by one")
	}
	p.schedule.after(d, p.proceed)
	p.turn <- struct{}{}
	<-p.turn
	return !p.killed
}

// event is something that happens.
type event struct {
	at     time.Duration
	placed int
	do     func()
}

// events is a heap, the next one first.
type events []event

func (e events) Len() int      { return len(e) }
func (e events) Swap(i, j int) { e[i], e[j] = e[j], e[i] }
func (e events) Less(i, j int) bool {
	return e[i].at < e[j].at || e[i].at == e[j].at && e[i].placed < e[j].placed
}
func (e *events) Push(x any) { *e = append(*e, x.(event)) }
func (e *events) Pop() any {
	last := len(*e) - 1
	x := (*e)[last]
	*e = (*e)[:last]
	return x
}
