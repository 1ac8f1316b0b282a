package aggregate

import (
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/sluice-go/sluice/cmd/sluice/internal/format"
	"github.com/sluice-go/sluice/cmd/sluice/internal/program"
	"github.com/sluice-go/sluice/cmd/sluice/internal/term"

	"github.com/sluice-go/sluice/internal/tool/texttable"
	"github.com/sluice-go/sluice/runtime/usage/poll"
)

// progress shows how far a poller is. The poller's log goes through it, so that the status line is erased
// before a line of the log.
type progress struct {
	mu     sync.Mutex
	status term.StatusLine
	now    func() time.Time
	last   poll.Progress
}

func newProgress(w io.Writer, terminal bool, now func() time.Time) *progress {
	return &progress{status: term.StatusLine{W: w, Terminal: terminal, Every: time.Minute,
		Next: now().Add(time.Second)}, now: now}
}

// report shows the progress of the poller.
func (a *progress) report(p poll.Progress) {
	a.mu.Lock()
	defer a.mu.Unlock()
	now := a.now()
	// the next report may be long after the end of the stream is reached
	arrived := a.status.Terminal && a.status.Shown() && p.Behind == 0 && a.last.Behind != 0
	a.last = p
	if arrived || a.status.Due(now) {
		a.status.Show(now, progressOf(p))
	}
}

// progressOf returns the status line.
func progressOf(p poll.Progress) string {
	return fmt.Sprintf("%s, %s counted, %s", format.Quantity(p.Records, "record"), texttable.Count(p.Counted),
		behind(p.Behind))
}

// behind writes the age of the oldest record of the last read.
func behind(d time.Duration) string {
	if d == 0 {
		return "up to date"
	}
	return format.Span(max(d.Round(time.Second), time.Second)) + " behind"
}

// Write writes a line of the log.
func (a *progress) Write(text []byte) (int, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.status.Wipe()
	return a.status.W.Write(text)
}

// end erases the status line and returns the last progress.
func (a *progress) end() poll.Progress {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.status.Wipe()
	return a.last
}

// summary is the result of a run.
type summary struct {
	Table    string  `json:"table"`
	Records  int64   `json:"records"` // read, of any kind
	Counted  int64   `json:"counted"` // of these, records of consumption
	Windows  int64   `json:"windows"` // writes of windows
	Poisoned int64   `json:"poisoned"`
	Lost     int     `json:"lost_shards"`
	Behind   float64 `json:"behind_seconds"`
	Seconds  float64 `json:"seconds"`
}

// show prints the summary.
func (a summary) show(p program.Env, asJSON bool) error {
	if asJSON {
		return p.JSON(a)
	}
	p.Say("table %s: %s read, %s of them counted in %s of windows; %s\n", a.Table,
		format.Quantity(a.Records, "record"), texttable.Count(a.Counted),
		format.Quantity(a.Windows, "write"), behind(time.Duration(a.Behind*float64(time.Second))))
	return nil
}

// wrong returns the error for records that could not be read or were lost. aside is the place of the
// unreadable ones.
func (a summary) wrong(aside string) error {
	var errs []error
	if a.Poisoned > 0 {
		are := "are"
		if a.Poisoned == 1 {
			are = "is"
		}
		errs = append(errs, fmt.Errorf("sluice: %s could not be read and %s not counted: see %s",
			format.Quantity(a.Poisoned, "record"), are, aside))
	}
	if a.Lost > 0 {
		errs = append(errs, fmt.Errorf("sluice: records of %s may be lost: the stream keeps them for 24 hours, "+
			"and they were older when they were to be read; "+
			"windows of that time may be without them", format.Quantity(a.Lost, "shard")))
	}
	return errors.Join(errs...)
}
