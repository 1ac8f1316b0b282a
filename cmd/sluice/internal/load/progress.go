package load

import (
	"fmt"
	"strings"
	"time"

	"github.com/sluice-go/sluice/cmd/sluice/internal/format"
	"github.com/sluice-go/sluice/cmd/sluice/internal/program"
	"github.com/sluice-go/sluice/cmd/sluice/internal/term"

	"github.com/sluice-go/sluice/cmd/sluice/internal/tool/load"
	"github.com/sluice-go/sluice/internal/tool/texttable"
)

// progress shows the progress of a load.
type progress struct {
	term.StatusLine

	p        program.Env
	duration time.Duration
	units    bool // the store consumes capacity units
}

func newProgress(p program.Env, c *Command) *progress {
	return &progress{
		term.StatusLine{W: p.Stderr, Terminal: term.IsTerminal(p.Stderr), Every: 5 * time.Second,
			Next: p.Now().Add(time.Second)},
		p, c.Duration, c.Redis == nil,
	}
}

// show writes a line if one is due.
func (l *progress) show(s load.Progress) {
	now := l.p.Now()
	if !l.Due(now) {
		return
	}
	parts := []string{format.Quantity(s.Began, "call")}
	for o, n := range s.Ended {
		if n > 0 {
			parts = append(parts, texttable.Count(n)+" "+load.Outcome(o).String())
		}
	}
	parts = append(parts, "99% within "+latencyOf(float64(s.P99)/1e6))
	if l.units {
		parts = append(parts, format.Quantity(int64(s.Units.Read+s.Units.Write), "unit"))
	}
	line := fmt.Sprintf("%v of %v: %s", s.Elapsed.Round(time.Second), l.duration, strings.Join(parts, ", "))
	l.StatusLine.Show(now, line)
}
