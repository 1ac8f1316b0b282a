package region

import (
	"encoding/json"
	"strings"
	"testing"
)

// TestRefuse: an account that cannot be is refused with the name of its region, and nothing is raised by it.
// The next snapshot is believed again.
func TestRefuse(t *testing.T) {
	for name, test := range map[string]struct {
		corrupt func(h *Holding)
		want    string
	}{
		"given above the limit": {func(h *Holding) { h.Given = withEntry(h.Given, "a", h.Given["a"]+1001) },
			"are given to a, which has taken "},
		"taken and never given": {func(h *Holding) { h.Taken = withEntry(h.Taken, "a", h.Taken["a"]+1) },
			"are taken from a, which has given "},
		"the control": {func(h *Holding) { h.Given = withEntry(h.Given, "a", h.Given["a"]+1) }, ""},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, 1000, "a", "b")
			a := w.regions[0]
			a.rates[user], w.regions[1].rates[user] = 3, 1
			w.run(16)
			sound := w.objects["b/snapshot.json"]
			var snap Snapshot
			if err := json.Unmarshal(sound, &snap); err != nil {
				t.Fatal(err)
			}
			test.corrupt(snap.Entries[0].holding("rpm"))
			object, err := json.Marshal(&snap)
			if err != nil {
				t.Fatal(err)
			}
			w.objects["b/snapshot.json"] = object
			before := a.inForce(user)
			w.run(1, "a")
			err = a.report.Peers[0].Err
			if test.want == "" {
				if err != nil {
					t.Error(err)
				}
				return
			}
			if err == nil || !strings.HasPrefix(err.Error(), "the snapshot of b, b/snapshot.json, says that ") ||
				!strings.Contains(err.Error(), test.want) || a.report.Peers[0].State != Silent {
				t.Errorf("%v, %s; want %q", err, a.report.Peers[0].State, test.want)
			}
			if a.inForce(user) > before {
				t.Errorf("%d in force after %d", a.inForce(user), before)
			}
			w.objects["b/snapshot.json"] = sound
			w.run(3)
			if err := a.report.Peers[0].Err; err != nil || a.report.Peers[0].State != Live {
				t.Errorf("then %v", err)
			}
		})
	}
}
