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
				catches(t, row, test.open, test.misses)
			})
		})
	}
}

// catches offers a row's load to processes that open starts, and checks which bars they miss.
func catches(t *testing.T, row traffic.Row, open traffic.Open, misses []string) {
	t.Helper()
	result, err := traffic.Run(t.Context(), row.Load, open)
	if err != nil {
		t.Fatal(err)
	}
	missed := row.Missed(result)
	if len(misses) == 0 && missed != "" {
		t.Errorf("%s\n%v", missed, result)
	}
	for _, miss := range misses {
		if !strings.Contains(missed, miss) {
			t.Errorf("the bars that it misses are %q, want %q among them\n%v", missed, miss, result)
		}
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

// holding is a process whose Hold is another.
type holding struct {
	traffic.Holder
	hold hold
}

func (h holding) Hold(
	ctx context.Context, who traffic.Entity, wait time.Duration,
) (func(context.Context), error) {
	return h.hold(ctx, who, wait)
}

// hold is Holder.Hold.
type hold = func(context.Context, traffic.Entity, time.Duration) (func(context.Context), error)

// held returns processes of this project's limiter whose Hold change replaces.
func held(change func(hold) hold) traffic.Open {
	return func(engine *memdynamo.Engine, load *traffic.Load) (traffic.Process, error) {
		p, err := traffic.Sluice(engine, load)
		if err != nil {
			return nil, err
		}
		h := p.(traffic.Holder)
		return holding{h, change(h.Hold)}, nil
	}
}

// TestCatchesSlots has limiters of calls in flight that do one thing wrong, each of which misses its bar.
func TestCatchesSlots(t *testing.T) {
	longform.Control(t)
	const asked, waited = "1.5 asked for", "1.5 waited for"
	var processes atomic.Int64
	for name, test := range map[string]struct {
		row    string
		change func(hold) hold
		misses string
	}{
		"calls take no slot": {asked, func(hold) hold {
			return func(context.Context, traffic.Entity, time.Duration) (func(context.Context), error) {
				return func(context.Context) {}, nil
			}
		}, "tokens wrong"},
		"a denial is another error": {asked, func(call hold) hold {
			return func(ctx context.Context, who traffic.Entity, wait time.Duration) (func(context.Context), error) {
				end, err := call(ctx, who, wait)
				if err != nil {
					err = errors.New(err.Error())
				}
				return end, err
			}
		}, " failed, want <= 0"},
		"a call takes its slot twice": {waited, func(call hold) hold {
			return func(ctx context.Context, who traffic.Entity, wait time.Duration) (func(context.Context), error) {
				if end, err := call(ctx, who, wait); err == nil {
					end(ctx)
				}
				return call(ctx, who, wait)
			}
		}, " units, want <= 3"},
		"half of the processes do not wait": {waited, func(call hold) hold {
			if processes.Add(1)%2 == 0 {
				return call
			}
			return func(ctx context.Context, who traffic.Entity, _ time.Duration) (func(context.Context), error) {
				return call(ctx, who, 0)
			}
		}, " of Jain, want >= 0.94"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				for _, row := range traffic.Rows() {
					if row.Name == "slots: 20 of 16 processes, "+test.row {
						catches(t, row, held(test.change), []string{test.misses})
					}
				}
			})
		})
	}
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
