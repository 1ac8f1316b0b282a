package cli

import (
	"fmt"
	"strings"
	"time"

	"github.com/sluice-go/sluice/internal/tool/load"
	"github.com/sluice-go/sluice/internal/tool/texttable"
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
	parts := []string{of(s.Began, "call")}
	for o, n := range s.Ended {
		if n > 0 {
			parts = append(parts, texttable.Count(n)+" "+load.Outcome(o).String())
		}
	}
	parts = append(parts, "99% within "+latencyOf(float64(s.P99)/1e6))
	if l.units {
		parts = append(parts, of(int64(s.Units.Read+s.Units.Write), "unit"))
	}
	line := fmt.Sprintf("%v of %v: %s", s.Elapsed.Round(time.Second), l.duration, strings.Join(parts, ", "))
	l.statusLine.show(now, line)
}
