package region

import (
	"testing"
	"time"
)

// snapshots are what w's regions have published last, by name.
func (w *world) snapshots() []*Snapshot {
	w.t.Helper()
	var all []*Snapshot
	for _, s := range w.regions {
		snap, err := Decode(w.objects[objectName(s.name)], s.name, window, w.now, 0)
		if err != nil {
			w.t.Fatal(err)
		}
		all = append(all, snap)
	}
	return all
}

// TestStand: at every moment, snapshots of different moments included, the regions hold together what there
// is, no more and no less. The control is a sum that does not look at what is on its way.
func TestStand(t *testing.T) {
	w := newWorld(t, 1000, "asia", "eu", "us")
	w.regions[1].rates[user], w.regions[2].rates[user] = 30, 10
	w.run(6)
	naive := false
	before := w.snapshots()
	for i := range 40 {
		if i == 10 {
			w.regions[0].rates[user], w.regions[1].rates[user], w.regions[2].rates[user] = 50, 1, 1
		}
		w.run(1)
		now := w.snapshots()
		for _, cut := range [][]*Snapshot{now, {before[0], now[1], now[2]}, {now[0], before[1], now[2]},
			{now[0], now[1], before[2]}} {
			all := Summarize(w.spec.Regions, cut)
			if len(all) != 1 || all[0].Entity != user || all[0].Limit != "rpm" || all[0].Whole != 1000 {
				t.Fatalf("%+v", all)
			}
			if all[0].Sum() != 1000 {
				t.Fatalf("%d are held in all: %+v", all[0].Sum(), all[0])
			}
			naive = naive || all[0].InTransit != 0
		}
		before = now
	}
	if !naive {
		t.Error("nothing was ever on its way")
	}
	last := Summarize(w.spec.Regions, before)[0]
	if last.Held[0] < 700 || last.Known[0] == nil || last.Known[0].Quota != last.Held[0] {
		t.Errorf("asia wants nearly all, and has %+v", last)
	}
	absent := Summarize(w.spec.Regions, []*Snapshot{nil, before[1], before[2]})[0]
	if absent.Held[0] != 50 || absent.Known[0] != nil || absent.Held[1] != last.Held[1] {
		t.Errorf("without what asia says: %+v", absent)
	}
	if none := Summarize(w.spec.Regions, make([]*Snapshot, 3)); len(none) != 0 {
		t.Errorf("of nobody: %+v", none)
	}
}

// TestFreshAndEnded: a region is silent after three windows, and its epoch has ended once the others say so.
func TestFreshAndEnded(t *testing.T) {
	w := newWorld(t, 1000, "eu", "us")
	w.run(4)
	us := w.snapshots()[1]
	at := time.UnixMilli(us.GeneratedAt)
	if !us.Fresh(at.Add(3*window)) || us.Fresh(at.Add(3*window+time.Millisecond)) {
		t.Error("it is not fresh for three windows")
	}
	w.run(5, "eu")
	if others := w.snapshots(); others[1].Ended(others[:1]) {
		t.Error("it has ended before it may")
	}
	w.run(10, "eu")
	if others := w.snapshots(); !others[1].Ended(others[:1]) || others[0].Ended(others[1:]) {
		t.Error("it has not ended, or the other one has")
	}
}
