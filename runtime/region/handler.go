package region

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/sluice-go/sluice/runtime/store"
)

// leastSchedule is how often EventBridge calls a function, at the most.
const leastSchedule = time.Minute

// Handler is a Lambda function that EventBridge calls once a window: one in each region, with a reserved concurrency of 1, for two that
// run at once start from the floor again and again.
type Handler struct{ sync *Sync }

// NewHandler returns a Handler, as New returns a Sync. It refuses windows below a minute: EventBridge calls no oftener, and shares would
// not be in force in between. What a Sync knows stays in the warm process; one that starts anew reads it back from the snapshot.
func NewHandler(c Config) (*Handler, error) {
	s, err := New(c)
	if err != nil {
		return nil, err
	}
	if window := s.regions.Window; window < leastSchedule {
		return nil, &store.SetupError{
			What: fmt.Sprintf("region.NewHandler: the window is %v, and EventBridge calls a function once in %v at the most", window, leastSchedule),
			Do:   "set window: 1m or more under regions in limits.yaml, or run `sluice region sync` in place of the function",
		}
	}
	return &Handler{s}, nil
}

// Outcome is what a call came to, as Lambda hands it to who calls by hand.
type Outcome struct {
	Region    string   `json:"region"`
	Epoch     int64    `json:"epoch"`
	Begins    string   `json:"begins,omitempty"` // why that epoch begins, where it does
	Sequence  int64    `json:"sequence"`         // of the snapshot
	Shares    int      `json:"shares"`
	Writes    int      `json:"writes"`
	Operated  int      `json:"operated"`
	Heartbeat bool     `json:"heartbeat"`
	Away      []string `json:"away,omitempty"` // the regions that are not live
}

// HandleLambda has one cycle. It is what lambda.Start takes; what the event says does not matter. It fails where anything did, so that
// the function's error metric tells: the next cycle tries again by itself, and Lambda need not.
func (h *Handler) HandleLambda(ctx context.Context) (*Outcome, error) {
	r, err := h.sync.Cycle(ctx)
	out := &Outcome{Region: r.Region, Epoch: r.Epoch, Begins: r.Begins, Sequence: r.Sequence, Shares: r.Shares, Operated: r.Operated, Heartbeat: r.Beating}
	for _, w := range r.Writes {
		if w.Done {
			out.Writes++
		}
	}
	for _, p := range r.Peers {
		if p.State != Live {
			out.Away = append(out.Away, p.Region)
		}
	}
	return out, errors.Join(err, r.Failures(mostFailures))
}

// mostFailures is how many of a cycle's failures are told one by one.
const mostFailures = 10

// Failures returns what failed as one error, nil where nothing did: so many one by one, and of the rest how many there are. A table that
// refuses one write may refuse thousands.
func (r *Report) Failures(most int) error {
	if len(r.Failed) <= most {
		return errors.Join(r.Failed...)
	}
	return fmt.Errorf("%w\nand %d more", errors.Join(r.Failed[:most]...), len(r.Failed)-most)
}
