package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/sluice-go/sluice/internal/tool/texttable"
	"github.com/sluice-go/sluice/runtime/usage/poll"
)

// aggregateProgress shows how far a poller is. It is what its log goes to, too: the line is wiped off before another.
type aggregateProgress struct {
	mu     sync.Mutex
	status statusLine
	now    func() time.Time
	last   poll.Progress
}

func newAggregateProgress(w io.Writer, terminal bool, now func() time.Time) *aggregateProgress {
	return &aggregateProgress{status: statusLine{w: w, terminal: terminal, every: time.Minute, next: now().Add(time.Second)}, now: now}
}

// report is told how far the poller is.
func (a *aggregateProgress) report(p poll.Progress) {
	a.mu.Lock()
	defer a.mu.Unlock()
	now := a.now()
	arrived := a.status.terminal && a.status.line != "" && p.Behind == 0 && a.last.Behind != 0 // what stands there may stay for long
	a.last = p
	if arrived || a.status.due(now) {
		a.status.show(now, progressOf(p))
	}
}

// progressOf is the line.
func progressOf(p poll.Progress) string {
	return fmt.Sprintf("%s, %s counted, %s", of(p.Records, "record"), texttable.Count(p.Counted), behind(p.Behind))
}

// behind says how old the oldest is that was read last.
func behind(d time.Duration) string {
	if d == 0 {
		return "up to date"
	}
	return span(max(d.Round(time.Second), time.Second)) + " behind"
}

// Write writes what the log says.
func (a *aggregateProgress) Write(text []byte) (int, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.status.wipe()
	return a.status.w.Write(text)
}

// end wipes the line off, and returns how far it came.
func (a *aggregateProgress) end() poll.Progress {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.status.wipe()
	return a.last
}

// aggregated is what a run came to.
type aggregated struct {
	Table    string  `json:"table"`
	Records  int64   `json:"records"` // read, of whatever kind
	Counted  int64   `json:"counted"` // of them, those that say that something was consumed
	Windows  int64   `json:"windows"` // writes of windows
	Poisoned int64   `json:"poisoned"`
	Lost     int     `json:"lost_shards"`
	Behind   float64 `json:"behind_seconds"`
	Seconds  float64 `json:"seconds"`
}

// show prints it.
func (a aggregated) show(p Program, asJSON bool) error {
	if asJSON {
		text, err := json.MarshalIndent(a, "", "  ")
		if err != nil {
			return err
		}
		p.say("%s\n", text)
		return nil
	}
	p.say("table %s: %s read, %s of them counted in %s of windows; %s\n", a.Table, of(a.Records, "record"), texttable.Count(a.Counted),
		of(a.Windows, "write"), behind(time.Duration(a.Behind*float64(time.Second))))
	return nil
}

// wrong is the error for what somebody has to do something about.
func (a aggregated) wrong(aside string) error {
	var errs []error
	if a.Poisoned > 0 {
		are := "are"
		if a.Poisoned == 1 {
			are = "is"
		}
		errs = append(errs, fmt.Errorf("sluice: %s could not be read, and %s in no window: see %s", of(a.Poisoned, "record"), are, aside))
	}
	if a.Lost > 0 {
		errs = append(errs, fmt.Errorf("sluice: records of %s may be lost: the stream keeps them for 24 hours, and they were older when they were to be read; "+
			"windows of that time may lack them", of(a.Lost, "shard")))
	}
	return errors.Join(errs...)
}
