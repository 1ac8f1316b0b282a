package cli

import (
	"fmt"
	"time"

	"github.com/sluice-go/sluice/internal/load"
	"github.com/sluice-go/sluice/internal/texttable"
)

// loadProgress shows how far a load is.
type loadProgress struct {
	statusLine

	p        Program
	duration time.Duration
	units    bool // are consumed
}

func newLoadProgress(p Program, c *loadCommand) *loadProgress {
	return &loadProgress{
		statusLine{w: p.Stderr, terminal: isTerminal(p.Stderr), every: 5 * time.Second, next: p.Now().Add(time.Second)},
		p, c.Duration, c.Redis == nil,
	}
}

// show writes a line, if it is time for one.
func (l *loadProgress) show(s load.Progress) {
	now := l.p.Now()
	if !l.due(now) {
		return
	}
	line := fmt.Sprintf("%v of %v: %s", s.Elapsed.Round(time.Second), l.duration, of(s.Began, "call"))
	for o, n := range s.Ended {
		if n > 0 {
			line += fmt.Sprintf(", %s %s", texttable.Count(n), load.Outcome(o))
		}
	}
	line += ", 99% within " + latencyOf(float64(s.P99)/1e6)
	if l.units {
		line += fmt.Sprintf(", %s", of(int64(s.Units.Read+s.Units.Write), "unit"))
	}
	l.statusLine.show(now, line)
}
