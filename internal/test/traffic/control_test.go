package traffic_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluice-go/sluice/internal/test/longform"
	"github.com/sluice-go/sluice/internal/test/traffic"
	"github.com/sluice-go/sluice/internal/test/traffic/generated"
	"github.com/sluice-go/sluice/runtime"
	"github.com/sluice-go/sluice/runtime/memdynamo"
)

// wrapped is a process whose Acquire is another.
type wrapped struct {
	traffic.Process
	acquire func(context.Context, traffic.Entity) (traffic.Admission, error)
}

func (w wrapped) Acquire(ctx context.Context, who traffic.Entity) (traffic.Admission, error) {
	return w.acquire(ctx, who)
}

// acquire is Process.Acquire.
type acquire = func(context.Context, traffic.Entity) (traffic.Admission, error)

// first returns processes as open starts them, but for the first, whose Acquire change replaces.
func first(open traffic.Open, change func(acquire) acquire) traffic.Open {
	started := 0
	return func(engine *memdynamo.Engine, load *traffic.Load) (traffic.Process, error) {
		p, err := open(engine, load)
		if started++; started > 1 || err != nil {
			return p, err
		}
		return wrapped{p, change(p.Acquire)}, nil
	}
}

// TestCatches has limiters that do one thing wrong, each of which misses its bar.
func TestCatches(t *testing.T) {
	longform.NoRace(t, "a control, whose broken variant ships nowhere")
	for name, test := range map[string]struct {
		rate   float64
		open   traffic.Open
		misses []string
	}{
		"none": {100, traffic.Bare, nil},
		"one process is served half": {100, first(traffic.Bare, func(call acquire) acquire {
			var calls atomic.Int64
			return func(ctx context.Context, who traffic.Entity) (traffic.Admission, error) {
				if calls.Add(1)%2 == 0 {
					return 0, errors.New("starved")
				}
				return call(ctx, who)
			}
		}), []string{"% failed, want <= 0", " of fair, want >= 0.95"}},
		"one process waits": {100, first(traffic.Bare, func(call acquire) acquire {
			return func(ctx context.Context, who traffic.Entity) (traffic.Admission, error) {
				time.Sleep(60 * time.Millisecond) //nolint:forbidigo // on the bubble's clock
				return call(ctx, who)
			}
		}), []string{"7.0 RTT p99"}},
		"one process records nothing": {100, first(traffic.Bare, func(acquire) acquire {
			return func(context.Context, traffic.Entity) (traffic.Admission, error) { return traffic.Recorded, nil }
		}), []string{"tokens wrong"}},
		"one process writes twice": {100, first(traffic.Bare, func(call acquire) acquire {
			return func(ctx context.Context, who traffic.Entity) (traffic.Admission, error) {
				_, _ = call(ctx, who)
				return call(ctx, who)
			}
		}), []string{"tokens wrong", " units, want <= 1.3"}},
		"no limit": {2500, traffic.Bare, []string{"tokens wrong"}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				row := bare()
				row.Load.Rate = test.rate
				result, err := traffic.Run(t.Context(), row.Load, test.open)
				if err != nil {
					t.Fatal(err)
				}
				missed := row.Missed(result)
				if len(test.misses) == 0 && missed != "" {
					t.Errorf("%s\n%v", missed, result)
				}
				for _, miss := range test.misses {
					if !strings.Contains(missed, miss) {
						t.Errorf("the bars that it misses are %q, want %q among them\n%v", missed, miss, result)
					}
				}
			})
		})
	}
}

// bare returns the row of two processes, for a second.
func bare() traffic.Row {
	for _, row := range traffic.Rows() {
		if strings.HasPrefix(row.Name, "open: 2 x 150/s, small bucket, 10 ms") {
			row.Load.For, row.Load.Cold = time.Second, true
			return row
		}
	}
	return traffic.Row{}
}

// TestAdmission: a process tells by which policy a call was admitted while DynamoDB is down.
func TestAdmission(t *testing.T) {
	for policy, want := range map[runtime.Policy]traffic.Admission{
		runtime.Allow: traffic.ByAllow, runtime.Local: traffic.ByLocal,
	} {
		synctest.Test(t, func(t *testing.T) {
			engine := memdynamo.New()
			engine.Faults().Down(true)
			p, err := traffic.Sluice(engine, &traffic.Load{Resource: generated.Large, Policy: policy})
			if err != nil {
				t.Fatal(err)
			}
			how, err := p.Acquire(t.Context(), traffic.Entity{User: "1", Project: "1"})
			if err != nil || how != want {
				t.Errorf("%v: admitted as %v (%v), want %v", policy, how, err, want)
			}
		})
	}
}
