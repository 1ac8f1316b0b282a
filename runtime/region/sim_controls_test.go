package region_test

import (
	"strings"
	"testing"

	"github.com/sluice-go/sluice/internal/test/longform"
	"github.com/sluice-go/sluice/internal/test/regionsim"
)

// TestSimControls plays syncs that are broken in one way each: the simulator catches every way, in half of
// the worlds at the least. The same worlds are fine with the sync as it is.
func TestSimControls(t *testing.T) {
	longform.NoRace(t, "a control, whose broken variant ships nowhere")
	t.Parallel()
	worlds := longform.Count[uint64](t, "worlds for each broken sync", 60, 8)
	away := []regionsim.Fault{{Kind: regionsim.Kill, Region: 1, At: 10 * window, For: 8 * window}}
	deaf := regionsim.Fault{Kind: regionsim.NoPeers, Region: 1, At: 10 * window, For: 40 * window, Percent: 100}
	mute := deaf
	mute.Kind = regionsim.NoPut
	for name, faults := range map[string][]regionsim.Fault{
		"no faults": nil, "away": away, "cut off": {deaf, mute},
	} {
		t.Run("nothing broken, "+name, func(t *testing.T) {
			t.Parallel()
			for seed := range worlds {
				w := faulty(seed, faults)
				if err := judged(w.Run()); err != nil {
					t.Fatalf("seed %d: %v", seed, err)
				}
			}
		})
	}
	for _, test := range []struct {
		name   string
		what   string
		faults []regionsim.Fault
		breaks func(w *regionsim.World)
	}{
		{"targets without escrow", "are in force", nil, func(w *regionsim.World) {
			w.New, w.Books = newNaive,
				false
		}},
		{"given before it is lowered", "are in force", nil, wrapped(lowersLate(false))},
		{"given as soon as it is lowered", "are in force", nil, wrapped(lowersLate(true))},
		{"processes remember for two windows", "are in force", nil,
			func(w *regionsim.World) { w.Keep = 2 * window }},
		{"taken twice", "are in force", nil, wrapped(reads(takesTwice))},
		{"heartbeat before snapshot", "are in force", []regionsim.Fault{deaf, mute}, wrapped(beatsFirst)},
		{"shared out without waiting", "are in force", away, wrapped(reads(evicts))},
		{"less than the floor", "less than the floor", nil, wrapped(halves)},
		{"nothing is found again", "in nobody's hands", nil, wrapped(reads(strangers))},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			caught := uint64(0)
			for seed := range worlds {
				w := faulty(seed, test.faults)
				test.breaks(&w)
				if err := judged(w.Run()); err != nil && strings.Contains(err.Error(), test.what) {
					if caught++; caught == 1 {
						t.Logf("seed %d: %v", seed, err)
					}
				}
			}
			if t.Logf("caught in %d of %d worlds", caught, worlds); caught < worlds/2 {
				t.Errorf("caught in %d of %d worlds, want half", caught, worlds)
			}
		})
	}
}

// faulty returns a world of a sync that is not broken.
func faulty(seed uint64, faults []regionsim.Fault) regionsim.World {
	return calm(small(seed, func(w *regionsim.World) { w.New, w.Faults = newSync, faults }))
}

// wrapped breaks a world by what its syncs see.
func wrapped(by regionsim.Wrap) func(*regionsim.World) {
	return func(w *regionsim.World) { w.Wrap = by }
}

// TestSimOrder is the control of what is played twice: a sync that does what it does in the order in which
// buckets are read.
func TestSimOrder(t *testing.T) {
	for seed := range uint64(20) {
		w := small(seed, func(w *regionsim.World) { w.New, w.Books = newNaive, false })
		if w.Run().Digest != backwards(w) {
			return
		}
	}
	t.Error("the order in which buckets are read changed nothing in any world")
}
