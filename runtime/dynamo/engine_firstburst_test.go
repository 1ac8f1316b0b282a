package dynamo

import (
	"log/slog"
	"testing"

	"github.com/sluice-go/sluice/runtime/region"
	"github.com/sluice-go/sluice/runtime/region/filestore"
	"github.com/sluice-go/sluice/runtime/store"
)

// TestFirstBurst: through tables and syncs, a new entity that takes all it can get is served the burst of all
// regions within eight windows, and no more. That holds if it is called in one region, which leaves the other
// its floor, and if it is called in both.
func TestFirstBurst(t *testing.T) {
	for name, called := range map[string]int{"in one region": 1, "in both": 2} {
		t.Run(name, func(t *testing.T) {
			served := firstBurst(t, called)
			if t.Logf("%d are served", served); served[0]+served[1] < 950 || served[0]+served[1] > 1001 {
				t.Errorf("%d are served, want 1,000 less a floor that is not called for, and one refilled", served)
			}
		})
	}
}

// firstBurst returns what so many of two regions serve of daily in the first eight windows.
func firstBurst(t *testing.T, called int) (served [2]int) {
	t.Helper()
	snapshots, err := filestore.New(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	def := global(t)
	var sites [2]struct {
		*engine
		*desk
		*region.Sync
	}
	for i, name := range def.Spec().Regions.Names {
		at := &sites[i]
		at.engine = newEngine(t)
		at.desk = at.engine.desk(t, at.engine.client, def)
		at.Sync, err = region.New(region.Config{
			Region: name, Table: at.regional(at.engine.client, 0), Snapshots: snapshots,
			Specs: []*store.Spec{def.Spec()}, Clock: &at.clock, Logger: slog.New(slog.DiscardHandler),
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	for n := range int64(8) {
		for i := range sites {
			at := &sites[i]
			at.clock.set(n*window + int64(i)*window/2)
			if r, err := at.Cycle(t.Context()); err != nil || len(r.Failed) > 0 {
				t.Fatal(err, r)
			}
			if i < called {
				served[i] += drainOf(t, at.desk, "1")
			}
		}
	}
	return served
}
