package region

import (
	"log/slog"
	"testing"
	"time"

	"github.com/sluice-go/sluice/runtime/store"
)

// TestReopened reopens books right after one region has closed them and before the other has. Tokens that
// moved in the old books do not move again, and are not lost.
func TestReopened(t *testing.T) {
	w := newWorld(t, 1000, "a", "b")
	a, b := w.regions[0], w.regions[1]
	for _, s := range w.regions {
		s.sync.Unused = 20 * window
	}
	for range 4 { // much is given and taken
		a.rates[user], b.rates[user] = 3, 1
		w.run(8)
		a.rates[user], b.rates[user] = 1, 3
		w.run(8)
	}
	for _, s := range w.regions {
		clear(s.rates)
		clear(s.used)
	}
	for range 60 {
		w.run(1, "b")
		if w.run(1, "a"); len(a.sync.books.of) == 0 {
			break
		}
	}
	if len(a.sync.books.of) != 0 || len(b.sync.books.of) != 1 {
		t.Fatalf("%d and %d books, want those of b alone", len(a.sync.books.of), len(b.sync.books.of))
	}
	a.rates[user] = 3
	w.run(1, "a")
	for range 3 {
		a.rates[user], b.rates[user] = 3, 1
		w.run(12)
		w.want(725, 275)
		a.rates[user], b.rates[user] = 1, 3
		w.run(12)
		w.want(275, 725)
	}
}

// TestLimitIsBack has a region run without a limit for a while, by a limits.yaml that was put back: what was
// given to it before it does not take again.
func TestLimitIsBack(t *testing.T) {
	w := newWorld(t, 1000, "a", "b")
	a, b := w.regions[0], w.regions[1]
	for range 4 {
		a.rates[user], b.rates[user] = 3, 1
		w.run(8)
		a.rates[user], b.rates[user] = 1, 3
		w.run(8)
	}
	whole := *w.spec
	bare := whole
	bare.Limits = []string{"tpm"}
	b.deploy(&bare)
	w.run(1)
	b.deploy(&whole)
	for range 3 {
		a.rates[user], b.rates[user] = 3, 1
		w.run(12)
		w.want(725, 275)
		a.rates[user], b.rates[user] = 1, 3
		w.run(12)
		w.want(275, 725)
	}
}

// deploy starts s's sync again with another schema.
func (s *site) deploy(spec *store.Spec) {
	sync, err := New(Config{
		Region: s.name, Table: s, Snapshots: objects{s}, Specs: []*store.Spec{spec}, Clock: s,
		Logger: slog.New(slog.DiscardHandler), Writers: 1,
	})
	if err != nil {
		s.t.Fatal(err)
	}
	s.sync = sync
}

// TestNobodyServed has a region called that cannot serve anybody with the floor: it is given what nobody else
// asks for.
func TestNobodyServed(t *testing.T) {
	w := newWorld(t, 1000, "a", "b", "c")
	w.regions[1].used[user] = 0
	w.run(8)
	w.want(50, 900, 50)
	w = newWorld(t, 2, "a", "b", "c") // the floor is nothing
	w.regions[2].used[user] = 0
	w.run(8)
	if w.regions[2].inForce(user) == 0 {
		t.Error("the only region that is called has nothing")
	}
}

// TestOldBucket: one region has a bucket last used long ago when another begins to use its own. The old
// consumption is no demand and takes nothing away.
func TestOldBucket(t *testing.T) {
	w := newWorld(t, 1000, "a", "b")
	a, b := w.regions[0], w.regions[1]
	b.used[user], b.last[user] = 1_000_000, w.now.Add(-25*time.Hour)
	w.run(3)
	a.rates[user] = 4
	w.run(1)
	for range 8 {
		w.want(950, 50)
		w.run(1)
	}
	if a.writes != 1 || b.writes != 0 {
		t.Errorf("%d and %d writes, want one of a", a.writes, b.writes)
	}
}

// TestHeartbeatDeleted has a region's heartbeat deleted while processes remember it: nothing is published
// until they have forgotten, however soon the next cycles are.
func TestHeartbeatDeleted(t *testing.T) {
	w := newWorld(t, 1000, "a", "b")
	w.regions[0].rates[user], w.regions[1].rates[user] = 1, 3
	w.run(8)
	b, published := w.regions[1], string(w.objects["b/snapshot.json"])
	b.beat = store.Heartbeat{}
	b.restart()
	for range 3 {
		if _, err := b.sync.Cycle(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if string(w.objects["b/snapshot.json"]) != published {
		t.Error("a new epoch is published at once")
	}
	w.run(12)
	w.want(275, 725)
}
