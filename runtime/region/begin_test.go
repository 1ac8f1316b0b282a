package region

import (
	"context"
	"errors"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/sluice-go/sluice/internal/test/errtext"
	"github.com/sluice-go/sluice/runtime/bucket"
	"github.com/sluice-go/sluice/runtime/store"
)

// TestBegins: where an epoch is to begin, a plan says so, and why, and writes nothing; the next cycle begins
// it, and what follows waits.
func TestBegins(t *testing.T) {
	const name = "a/snapshot.json"
	for what, test := range map[string]struct {
		before func(w *world, a *site)
		epoch  int64
		why    string
	}{
		"a snapshot that is gone": {func(w *world, _ *site) { delete(w.objects, name) }, 2,
			"its snapshot is missing"},
		"one that is cut off": {func(w *world, _ *site) { w.objects[name] = w.objects[name][:9] }, 2,
			"the snapshot of a, a/snapshot.json, cannot be read: it is cut off; " +
				"see to it that only the sync of a writes there: its next cycle puts a new one"},
		"a table that is made anew": {func(_ *world, a *site) { a.beat = store.Heartbeat{} }, 2,
			"its snapshot is of epoch 1 and its table's heartbeat of epoch 0: one of them is out of date"},
		"another window": {func(w *world, _ *site) { w.spec.Regions.Window = time.Minute }, 2,
			"the window was 10s and is 1m0s"},
		"an older snapshot": {func(_ *world, a *site) { a.beat.Expires++ }, 2,
			"its snapshot is older than its table's heartbeat: it is not the one that was put last"},
		"too long a silence": {func(w *world, _ *site) { w.run(20, "b") }, 2,
			"the other regions have divided what it held, since it was silent for too long"},
		"another's table": {func(w *world, a *site) {
			a.beat.Region, a.beat.Epoch, w.now = "b", 7,
				w.now.Add(3*window)
		}, 8, "its table was that of b"},
	} {
		t.Run(what, func(t *testing.T) {
			w := newWorld(t, 1000, "a", "b")
			a := w.regions[0]
			a.rates[user] = 4
			w.run(12)
			test.before(w, a)
			a.restart()
			objects, beat, writes := maps.Clone(w.objects), a.beat, a.writes
			plan, err := a.sync.Plan(t.Context())
			if err != nil || plan.Epoch != test.epoch || plan.Begins != test.why || plan.Writes != nil ||
				!plan.Waits.IsZero() {
				t.Errorf("planned: %+v, %v", plan, err)
			}
			if a.beat != beat || a.writes != writes ||
				!maps.EqualFunc(objects, w.objects, func(x, y []byte) bool { return string(x) == string(y) }) {
				t.Error("a plan changed something")
			}
			r, err := a.sync.Cycle(t.Context())
			if err != nil || r.Epoch != test.epoch || r.Begins != test.why ||
				!r.Waits.Equal(w.now.Add(2*w.spec.Regions.Window)) || a.beat.Epoch != test.epoch || a.beat.Region != "a" {
				t.Errorf("begun: %+v, %v; %+v", r, err, a.beat)
			}
			for _, cycle := range []func(context.Context) (*Report, error){a.sync.Plan, a.sync.Cycle} {
				if r, err := cycle(t.Context()); err != nil || r.Epoch != test.epoch || r.Begins != "" ||
					!r.Waits.Equal(w.now.Add(2*w.spec.Regions.Window)) || r.Writes != nil {
					t.Errorf("while it waits: %+v, %v", r, err)
				}
			}
		})
	}
	w := newWorld(t, 1000, "a", "b")
	for range 2 {
		if plan, err := w.regions[0].sync.Plan(t.Context()); err != nil || plan.Epoch != 1 ||
			plan.Begins != "it has published nothing yet" {
			t.Errorf("of a new region: %+v, %v", plan, err)
		}
	}
	w.run(4)
	for _, cycle := range []func(context.Context) (*Report, error){w.regions[0].sync.Plan,
		w.regions[0].sync.Cycle} {
		if r, err := cycle(t.Context()); err != nil || r.Epoch != 1 || r.Begins != "" || !r.Waits.IsZero() {
			t.Errorf("where nothing begins: %+v, %v", r, err)
		}
	}
}

// TestAnothersTable: a table whose heartbeat is another region's, alive or just begun, is refused, and left
// as it is. One that does not say whose it is was stored by an older sync: it goes on, and says it from then
// on.
func TestAnothersTable(t *testing.T) {
	const want = "setup: this is the regional sync of a, and the heartbeat in its table is that of b, alive " +
		"until 2023-11-14T22:"
	refused := func(w *world) {
		t.Helper()
		a, objects := w.regions[0], maps.Clone(w.objects)
		a.beat = w.regions[1].beat
		a.restart()
		_, planned := a.sync.Plan(t.Context())
		_, cycled := a.sync.Cycle(t.Context())
		for _, err := range []error{planned, cycled, a.sync.Check(t.Context())} {
			if got := errtext.Of(err); !strings.HasPrefix(got, want) ||
				!strings.HasSuffix(got,
					" | name the table of a; or, if this is its table, stop the sync that runs for b on it, and wait "+
						"until then") {
				t.Errorf("%v", err)
			}
		}
		if a.beat != w.regions[1].beat || len(w.objects) != len(objects) ||
			string(w.objects["a/snapshot.json"]) != string(objects["a/snapshot.json"]) {
			t.Errorf("something was written: %+v", a.beat)
		}
	}
	w := newWorld(t, 1000, "a", "b")
	w.run(1, "b")
	refused(w) // begun, and not yet alive
	w.run(4, "b")
	refused(w)

	w = newWorld(t, 1000, "a", "b")
	w.run(12)
	a := w.regions[0]
	a.beat.Region = ""
	a.restart()
	if err := a.sync.Check(t.Context()); err != nil {
		t.Error(err)
	}
	w.run(1)
	if a.report.Begins != "" || a.report.Sequence == 0 || a.beat.Region != "a" {
		t.Errorf("an older heartbeat: %+v, %+v", a.report, a.beat)
	}
	a.beat.Region = "b" // of a sync that has run on this table since
	w.run(1)
	if n := len(a.report.Failed); n != 1 || !strings.Contains(errtext.Of(a.report.Failed[0]),
		"heartbeat: "+want) || a.report.Beating {
		t.Errorf("%+v", a.report)
	}
}

// TestTableTaken: a sync that finds another region's heartbeat in its table writes nothing there while that
// one is alive. Once it is not, the sync has its table back, from the floor and without a restart. The same
// holds if the other sync began with the same epoch.
func TestTableTaken(t *testing.T) {
	for what, epoch := range map[string]int64{"a higher epoch": 5, "the same, as its heartbeat was deleted": 1} {
		t.Run(what, func(t *testing.T) {
			w := newWorld(t, 1000, "a", "b")
			a, b := w.regions[0], w.regions[1]
			a.rates[user], b.rates[user] = 12, 1
			w.run(20)
			if a.report.Begins != "" || !a.report.Beating || a.inForce(user) < 600 {
				t.Fatalf("%+v; %d in force", a.report, a.inForce(user))
			}
			taken := store.Heartbeat{Region: "b", Epoch: epoch, Since: w.now.UnixMilli(),
				Expires: w.now.Add(5 * window).UnixMilli()}
			a.beat = taken
			a.stored[user] = store.Stored{At: user, Epoch: epoch,
				Limits: []*bucket.Limit{new(w.spec.Kinds[0].Limits[0].Quota(100))}, Revision: "99"}
			w.run(1)
			if n := len(a.report.Failed); n != 1 || a.report.Beating {
				t.Errorf("the first cycle: %+v", a.report)
			}
			writes, object := a.writes, string(w.objects["a/snapshot.json"])
			w.now = w.now.Add(window)
			_, err := a.sync.Cycle(t.Context())
			if _, ok := errors.AsType[*store.SetupError](err); !ok || a.writes != writes ||
				string(w.objects["a/snapshot.json"]) != object || a.beat != taken {
				t.Errorf("the second cycle: %v; %d writes; %+v", err, a.writes-writes, a.beat)
			}
			w.run(20)
			if a.beat.Region != "a" || a.beat.Epoch <= epoch || !a.report.Beating || len(a.report.Failed) != 0 ||
				a.inForce(user) < 600 {
				t.Errorf("later: %+v, %+v; %d in force", a.beat, a.report, a.inForce(user))
			}
		})
	}
}

// TestClockBack: a heartbeat that expires later than the next one would, as after a clock that was set back,
// ends no epoch: there is nothing that the region has lost.
func TestClockBack(t *testing.T) {
	w := newWorld(t, 1000, "a", "b")
	a := w.regions[0]
	w.run(12)
	w.now = w.now.Add(-window)
	if r, err := a.sync.Cycle(t.Context()); err != nil || len(r.Failed) != 1 || r.Beating {
		t.Errorf("%+v, %v", r, err)
	}
	w.run(3)
	if a.report.Epoch != 1 || !a.report.Beating {
		t.Errorf("%+v", a.report)
	}
}

// probed is a store that can tell that Put will fail.
type probed struct {
	objects

	err error
}

// Probe implements Prober.
func (p probed) Probe(_ context.Context, name string) error {
	if name != "a/snapshot.json" {
		return errors.New("want a's own")
	}
	return p.err
}

// TestProbe: where nothing can be published, no epoch begins.
func TestProbe(t *testing.T) {
	w := newWorld(t, 1000, "a", "b")
	a := w.regions[0]
	for _, err := range []error{errors.New("read-only"), nil} {
		c := a.config()
		c.Snapshots = probed{objects{a}, err}
		s, bad := New(c)
		if bad != nil {
			t.Fatal(bad)
		}
		if got := s.Check(t.Context()); !errors.Is(got, err) || err != nil &&
			got.Error() != "this region's own snapshot: read-only" {
			t.Errorf("Check: %v, want %v", got, err)
		}
		if _, got := s.Cycle(t.Context()); !errors.Is(got, err) || (a.beat.Epoch == 0) != (err != nil) {
			t.Errorf("Cycle: %v, want %v; %+v", got, err, a.beat)
		}
	}
}
