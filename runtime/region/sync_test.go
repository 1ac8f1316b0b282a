package region

import (
	"errors"
	"testing"
	"time"

	"github.com/sluice-go/sluice/runtime/bucket"
	"github.com/sluice-go/sluice/runtime/store"
)

// TestQuotasFollowDemand begins at the floor, and ends where three quarters of the demand are.
func TestQuotasFollowDemand(t *testing.T) {
	w := newWorld(t, 1000, "a", "b")
	w.run(2)
	w.regions[0].rates[user], w.regions[1].rates[user] = 3, 1
	w.run(16)
	w.want(725, 275)
	w.regions[0].rates[user], w.regions[1].rates[user] = 1, 3
	w.run(16)
	w.want(275, 725)
	writes := w.regions[0].writes + w.regions[1].writes
	w.run(20)
	if more := w.regions[0].writes + w.regions[1].writes - writes; more != 0 {
		t.Errorf("%d writes while nothing changed", more)
	}
}

// TestAllShort has two regions want more than there is, one of which came late, and a third little: it has
// what it wants, and they the same.
func TestAllShort(t *testing.T) {
	w := newWorld(t, 1000, "a", "b", "c")
	w.regions[0].rates[user] = 20
	w.run(16)
	w.want(900, 50, 50)
	w.regions[1].rates[user], w.regions[2].rates[user] = 30, 2
	w.run(40)
	a, b, c := w.regions[0].inForce(user), w.regions[1].inForce(user), w.regions[2].inForce(user)
	if a < 360 || b < 360 || c < 120 {
		t.Errorf("%d, %d and %d are in force for demands of 1200, 1800 and 120: want the third served, and the "+
			"others alike", a, b, c)
	}
}

// TestStartedAgain loses what a sync has in memory before each cycle.
func TestStartedAgain(t *testing.T) {
	w := newWorld(t, 1000, "a", "b", "c")
	for _, s := range w.regions {
		s.rates[user] = int64(len(s.name))
	}
	w.regions[1].rates[user] = 8
	for range 20 {
		w.run(1)
		for _, s := range w.regions {
			s.restart()
		}
	}
	w.want(135, 730, 135)
}

// TestSilentRegion keeps its quota until it is gone, and then no more than the floor; when it returns it
// begins there.
func TestSilentRegion(t *testing.T) {
	w := newWorld(t, 1000, "a", "b", "c")
	for _, s := range w.regions {
		s.rates[user] = 5
	}
	w.run(20)
	w.want(334, 333, 333)
	w.run(4, "a", "b")
	w.want(334, 333, 50) // its heartbeat is stale, and what it holds reserved
	w.run(14, "a", "b")
	w.want(475, 475, 50)
	w.run(24)
	w.want(334, 333, 333)
}

// TestFirstRegionEvicted has the region silent that presides.
func TestFirstRegionEvicted(t *testing.T) {
	w := newWorld(t, 1000, "a", "b", "c")
	for _, s := range w.regions {
		s.rates[user] = 5
	}
	w.run(20)
	w.run(24, "b", "c")
	w.want(50, 475, 475)
	w.run(24)
	w.want(334, 333, 333)
}

// TestOperator has what an operator sets win, and comes back when it is deleted.
func TestOperator(t *testing.T) {
	w := newWorld(t, 1000, "a", "b")
	w.regions[0].rates[user], w.regions[1].rates[user] = 3, 1
	w.run(16)
	a, limit := w.regions[0], bucket.Per(5000, 60_000_000_000)
	a.stored[user], a.ours[user] = store.Stored{At: user, Limits: []*bucket.Limit{&limit}, Revision: "77"},
		false
	w.run(30)
	w.want(5000, 275)
	a.stored[user], a.ours[user] = store.Stored{At: user, Revision: "78"}, true
	w.run(20)
	w.want(725, 275)
}

// TestLimitChanged is lowered and raised in all regions at once.
func TestLimitChanged(t *testing.T) {
	w := newWorld(t, 1000, "a", "b")
	w.regions[0].rates[user], w.regions[1].rates[user] = 3, 1
	w.run(16)
	w.spec.Kinds[0].Limits[0] = bucket.Per(400, 60_000_000_000)
	for _, s := range w.regions {
		for range 2 {
			if _, err := s.sync.Cycle(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
	}
	w.run(16)
	w.want(290, 110)
	w.spec.Kinds[0].Limits[0] = bucket.Per(2000, 60_000_000_000)
	w.run(16)
	w.want(1450, 550)
}

// TestUnusedIsClosed returns what nobody uses to the floor, with tombstones, and forgets it.
func TestUnusedIsClosed(t *testing.T) {
	w := newWorld(t, 1000, "a", "b", "c")
	for _, s := range w.regions {
		s.sync.Unused = 20 * window
		s.rates[user] = 4
	}
	w.run(16)
	w.want(334, 333, 333)
	for _, s := range w.regions {
		clear(s.rates)
		clear(s.used)
	}
	w.run(40)
	w.want(50, 50, 50)
	for _, s := range w.regions {
		if s.stored[user].Overrides() || s.stored[user].Revision == "" {
			t.Errorf("%s has %+v stored, want a tombstone", s.name, s.stored[user])
		}
		if n := len(s.sync.books.of); n != 0 {
			t.Errorf("%s has %d books", s.name, n)
		}
	}
	w.regions[2].rates[user] = 4
	w.run(16)
	w.want(50, 50, 900)
}

// TestFewerTokensThanRegions gives one to each of those who are called, though who has nothing consumes
// nothing.
func TestFewerTokensThanRegions(t *testing.T) {
	w := newWorld(t, 2, "a", "b", "c")
	w.regions[1].rates[user], w.regions[2].rates[user] = 1, 5
	w.run(20)
	w.want(0, 1, 1)
}

// TestStoreDown raises nothing while a region does not reach the store, and its quotas end with the
// heartbeat.
func TestStoreDown(t *testing.T) {
	w := newWorld(t, 1000, "a", "b")
	w.regions[0].rates[user], w.regions[1].rates[user] = 3, 1
	w.run(16)
	w.down["b"] = true
	w.run(5)
	w.want(725, 50)
	w.down["b"] = false
	w.run(2)
	w.want(725, 275)
}

// TestTableDown reports it, and has nothing half done.
func TestTableDown(t *testing.T) {
	w := newWorld(t, 1000, "a", "b")
	w.regions[0].rates[user], w.regions[1].rates[user] = 3, 1
	w.run(16)
	w.regions[0].broken = errors.New("no table")
	w.run(3)
	if len(w.regions[0].report.Failed) == 0 {
		t.Error("nothing was reported")
	}
	w.regions[0].broken = nil
	w.regions[0].rates[user], w.regions[1].rates[user] = 1, 3
	w.run(16)
	w.want(275, 725)
}

// TestCycleSoonAfter has cycles follow each other by milliseconds, as beside a loop or by hand: in so short a
// time nobody has called.
func TestCycleSoonAfter(t *testing.T) {
	for name, again := range map[string]func(*site){"warm": func(*site) {}, "cold": (*site).restart} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, 1000, "a", "b")
			w.regions[0].rates[user], w.regions[1].rates[user] = 3, 1
			w.run(16)
			for range 20 {
				for _, s := range w.regions {
					w.now = w.now.Add(3 * time.Millisecond)
					again(s)
					report, err := s.sync.Cycle(t.Context())
					if err != nil || len(report.Writes) != 0 {
						t.Fatalf("%s: %v, wrote %+v", s.name, err, report.Writes)
					}
				}
			}
			w.want(725, 275)
		})
	}
}

// TestRateOverLastWindow follows what is consumed whatever the time between cycles, and by one window in
// full.
func TestRateOverLastWindow(t *testing.T) {
	for _, test := range []struct{ rate, consumed, ms, want int64 }{
		{0, 40_000, 10_000, 4000},
		{4000, 0, 3, 3998},
		{4000, 12, 3, 3999},
		{4000, 0, 10_000, 0},
		{4000, 0, 5000, 2000},
		{4000, 10_000, 5000, 3000},
		{1, 80_000, 20_000, 4000},
		{1, 0, 1, 0},
		{1 << 62, 1 << 62, 9999, 1<<62/10_000 + 1<<62/10},
	} {
		if got := averageRate(test.rate, test.consumed, test.ms, 10_000); got != test.want {
			t.Errorf("%d, and %d in the last %d ms: %d, want %d", test.rate, test.consumed, test.ms, got, test.want)
		}
	}
	for rate, i := int64(0), 0; ; i++ { // ten cycles a window
		if rate = averageRate(rate, 4000, 1000, 10_000); rate > 3900 {
			break
		}
		if i == 50 {
			t.Fatalf("after %d s of 4,000 a second, the rate is %d", i, rate)
		}
	}
}
