package region

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/sluice-go/sluice/runtime/store"
)

// minSchedule is the shortest interval at which EventBridge calls a function.
const minSchedule = time.Minute

// Handler is a Lambda function that EventBridge calls once a window. Deploy one in each region, with a
// reserved concurrency of 1: two that run at once start from the floor again and again.
type Handler struct{ sync *Sync }

// NewHandler returns a Handler; it fails as New does. It also rejects windows below a minute: EventBridge
// calls no more often, and quotas would not be in force in between. A warm process keeps the Sync's state; a
// new one reads it from the snapshot.
func NewHandler(c Config) (*Handler, error) {
	s, err := New(c)
	if err != nil {
		return nil, err
	}
	if window := s.regions.Window; window < minSchedule {
		return nil, &store.SetupError{
			What: fmt.Sprintf("region.NewHandler: the window is %v, and EventBridge calls a function once in %v at "+
				"most",
				window, minSchedule),
			Do: "set window: 1m or more under regions in limits.yaml, or run `sluice region sync` in place of the " +
				"function",
		}
	}
	return &Handler{s}, nil
}

// Outcome is the result of a call, as Lambda returns it to a direct caller.
type Outcome struct {
	Region    string   `json:"region"`
	Epoch     int64    `json:"epoch"`
	Begins    string   `json:"begins,omitempty"` // why that epoch begins, if it does
	Sequence  int64    `json:"sequence"`         // of the snapshot
	Quotas    int      `json:"shares"`
	Writes    int      `json:"writes"`
	Operated  int      `json:"operated"`
	Heartbeat bool     `json:"heartbeat"`
	Away      []string `json:"away,omitempty"` // regions that are not live
}

// HandleLambda runs one cycle. It is the argument for lambda.Start; it ignores the event. It fails if
// anything did, so that the function's error metric counts it. Lambda need not retry: the next cycle tries
// again by itself.
func (h *Handler) HandleLambda(ctx context.Context) (*Outcome, error) {
	r, err := h.sync.Cycle(ctx)
	out := &Outcome{Region: r.Region, Epoch: r.Epoch, Begins: r.Begins, Sequence: r.Sequence, Quotas: r.Quotas,
		Operated: r.Operated, Heartbeat: r.Beating}
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
	return out, errors.Join(err, r.Failures(maxFailures))
}

// maxFailures is the number of a cycle's failures that the error lists.
const maxFailures = 10

// Failures returns all failures as one error, nil if there are none. It lists at most limit of them and
// counts the rest: a table that rejects one write may reject thousands.
func (r *Report) Failures(limit int) error {
	if len(r.Failed) <= limit {
		return errors.Join(r.Failed...)
	}
	return fmt.Errorf("%w\nand %d more", errors.Join(r.Failed[:limit]...), len(r.Failed)-limit)
}
