package region

import (
	"strings"
	"testing"
)

// TestOlderSnapshot puts back a snapshot that was replaced, of the same epoch and of one that has ended. Its
// given and held tokens are out of date, so the region counts as one that cannot be read.
func TestOlderSnapshot(t *testing.T) {
	for name, test := range map[string]struct {
		between func(w *world)
		want    string
	}{
		"of the same epoch": {func(w *world) { w.run(3) },
			"the snapshot of b, b/snapshot.json, has sequence 15, below the 17 that was seen before: "},
		"of an earlier epoch": {func(w *world) {
			delete(w.objects, "b/snapshot.json")
			w.run(8)
		}, "the snapshot of b, b/snapshot.json, is of epoch 1, which has ended; "},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, 1000, "a", "b")
			a, b := w.regions[0], w.regions[1]
			a.rates[user], b.rates[user] = 3, 1
			w.run(16)
			older := w.objects["b/snapshot.json"]
			test.between(w)
			known := a.sync.known["b"]
			w.objects["b/snapshot.json"] = older
			w.run(1, "a")
			if err := a.report.Peers[0].Err; err == nil || !strings.HasPrefix(err.Error(), test.want) {
				t.Errorf("%v, want %q", err, test.want)
			}
			if got := a.sync.known["b"]; got != known || a.report.Peers[0].State != Silent {
				t.Errorf("b is %v and %+v, want silent and %+v", a.report.Peers[0].State, got, known)
			}
		})
	}
}

// TestTake: tokens are taken from a region once, as far as it gave them in the books of today. Those of books
// that were closed, or of an epoch that has ended, are in nobody's hands.
func TestTake(t *testing.T) {
	taken := func(n int64) func(*book, *Entry, *peer) {
		return func(own *book, _ *Entry, _ *peer) { own.Limits[0].Taken = map[string]int64{"b": n} }
	}
	says := func(of Known) func(*book, *Entry, *peer) {
		return func(_ *book, _ *Entry, p *peer) { p.snap.Peers["a"] = of }
	}
	for name, test := range map[string]struct {
		change func(own *book, theirs *Entry, p *peer)
		want   int64
	}{
		"given":              {func(*book, *Entry, *peer) {}, 100},
		"taken in part":      {taken(70), 30},
		"taken":              {taken(100), 0},
		"by an older row":    {taken(120), 0},
		"in closed books":    {func(_ *book, theirs *Entry, _ *peer) { theirs.Gen = 6 }, 0},
		"before own books":   {func(own *book, theirs *Entry, _ *peer) { own.Gen, theirs.Gen = 0, 0 }, 0},
		"to an older epoch":  {says(Known{Epoch: 2}), 0},
		"to an evicted one":  {says(Known{Epoch: 3, Evicted: true}), 0},
		"by a silent region": {func(_ *book, _ *Entry, p *peer) { p.state = Silent }, 0},
		"of another limit":   {func(_ *book, theirs *Entry, _ *peer) { theirs.Limits[0].Limit = "tpm" }, 0},
	} {
		w := newWorld(t, 1000, "a", "b")
		s := planner{membership{w.regions[0].sync}}
		s.epoch = 3
		own := &book{spec: w.spec, Entry: Entry{Entity: user, Resource: "gpt-4", Gen: 7, Limits: []Holding{{
			Limit: "rpm", Held: 50,
		}}}}
		theirs := &Entry{Entity: user, Resource: "gpt-4", Gen: 7, Limits: []Holding{{
			Limit: "rpm", Given: map[string]int64{"a": 100},
		}}}
		b := &peer{name: "b", state: Live, snap: &Snapshot{Peers: map[string]Known{"a": {Epoch: 3}}}}
		test.change(own, theirs, b)
		s.entries["b"] = map[key]*Entry{own.key(): theirs}
		before := own.Limits[0].Taken["b"]
		s.take(own, &own.Limits[0], []*peer{b})
		h := &own.Limits[0]
		if h.Held != 50+test.want || h.Taken["b"] != before+test.want {
			t.Errorf("%s: holds %d, has taken %d, want %d more than 50 and %d", name, h.Held, h.Taken["b"],
				test.want, before)
		}
	}
}
