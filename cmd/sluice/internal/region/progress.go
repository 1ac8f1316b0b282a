package region

import (
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/sluice-go/sluice/cmd/sluice/internal/format"
	"github.com/sluice-go/sluice/cmd/sluice/internal/program"
	"github.com/sluice-go/sluice/cmd/sluice/internal/term"

	"github.com/sluice-go/sluice/internal/tool/texttable"
	"github.com/sluice-go/sluice/runtime/region"
)

// progress shows the cycles of regional sync. The log of sync goes through it, so that the status line is
// erased before a line of the log.
type progress struct {
	mu     sync.Mutex
	p      program.Env
	status term.StatusLine
	json   bool

	cycles, writes, failed int
	peers                  map[string]region.State
}

func newProgress(p program.Env, asJSON bool) *progress {
	return &progress{
		p: p, json: asJSON, peers: map[string]region.State{},
		status: term.StatusLine{W: p.Stderr, Terminal: term.IsTerminal(p.Stderr), Every: time.Minute,
			Next: p.Now()},
	}
}

// report shows a cycle.
func (r *progress) report(report *region.Report) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.cycles++
	done := doneOf(report)
	r.writes += done
	r.failed += len(report.Failed)
	r.turns(report)
	if err := report.Failures(format.First); err != nil {
		r.status.Wipe()
		_, _ = fmt.Fprintf(r.status.W, "cycle %d: %s\n", r.cycles, term.Escape(err.Error()))
	}
	if r.json {
		_ = reportJSON(r.p, report) // Output keeps the error
		return
	}
	if now := r.p.Now(); r.status.Due(now) {
		r.status.Show(now, fmt.Sprintf("cycle %s: %s, %s, %s", texttable.Count(int64(r.cycles)),
			format.Quantity(report.Quotas, "quota"), format.Quantity(done, "write"), awayOf(report)))
	}
}

// turns writes the regions whose state has changed, which needs attention.
func (r *progress) turns(report *region.Report) {
	for _, peer := range report.Peers {
		if was, known := r.peers[peer.Region]; (known || peer.State != region.Live) && was != peer.State {
			r.status.Wipe()
			why := ""
			if peer.Err != nil {
				why = " (" + term.Quote(peer.Err.Error()) + ")"
			}
			_, _ = fmt.Fprintf(r.status.W, "cycle %d: %s is %s: %s%s\n", r.cycles, peer.Region, peer.State,
				meaning[peer.State], why)
		}
		r.peers[peer.Region] = peer.State
	}
}

// meaning is the effect of a region's state on its quotas.
var meaning = map[region.State]string{
	region.Live:      "it takes part",
	region.Silent:    "its quota is reserved for it",
	region.Evicted:   "the others divide its quota, and it starts again from what every region keeps",
	region.NeverSeen: "it has never published, and what every region keeps is reserved for it",
}

// doneOf returns the number of writes that a cycle has done.
func doneOf(report *region.Report) (done int) {
	for _, w := range report.Writes {
		if w.Done {
			done++
		}
	}
	return done
}

// awayOf names the regions that do not take part, or says why this one does not yet.
func awayOf(report *region.Report) string {
	var away []string
	for _, peer := range report.Peers {
		if peer.State != region.Live {
			away = append(away, fmt.Sprintf("%s %s", peer.Region, peer.State))
		}
	}
	switch {
	case report.Begins != "":
		return fmt.Sprintf("epoch %s begins: %s", texttable.Count(report.Epoch), report.Begins)
	case !report.Waits.IsZero():
		return fmt.Sprintf("epoch %s waits until %s", texttable.Count(report.Epoch),
			report.Waits.UTC().Format(time.RFC3339))
	case report.Peers == nil:
		return "nothing was published"
	case away == nil:
		return "all regions live"
	}
	return strings.Join(away, ", ")
}

// Write writes a line of the log.
func (r *progress) Write(text []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.status.Wipe()
	return r.status.W.Write(text)
}

// end prints the totals of all cycles.
func (r *progress) end() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.status.Wipe()
	if !r.json {
		r.p.Say("%s, %s done, %s\n", format.Quantity(r.cycles, "cycle"), format.Quantity(r.writes, "write"),
			format.Quantity(r.failed, "failure"))
	}
}
