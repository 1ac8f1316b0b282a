package region_test

import (
	"strings"
	"testing"

	"github.com/sluice-go/sluice/internal/regionsim"
)

// TestSimControls plays syncs that are broken in one way each: the simulator catches every way, in so many worlds at the least. The
// same worlds are fine with the sync as it is.
func TestSimControls(t *testing.T) {
	const worlds = 60
	away := []regionsim.Fault{{Kind: regionsim.Kill, Region: 1, At: 10 * window, For: 8 * window}}
	deaf := regionsim.Fault{Kind: regionsim.NoPeers, Region: 1, At: 10 * window, For: 40 * window, Percent: 100}
	mute := deaf
	mute.Kind = regionsim.NoPut
	for _, test := range []struct {
		name   string
		least  int // of the worlds
		what   string
		faults []regionsim.Fault
		breaks func(w *regionsim.World)
	}{
		{"targets without escrow", 40, "are in force", nil, func(w *regionsim.World) { w.New, w.Books = newNaive, false }},
		{"given before it is lowered", 1, "are in force", nil, wrapped(lowersLate(false))},
		{"given as soon as it is lowered", 1, "are in force", nil, wrapped(lowersLate(true))},
		{"processes remember for two windows", 1, "are in force", nil, func(w *regionsim.World) { w.Keep = 2 * window }},
		{"taken twice", 1, "are in force", nil, wrapped(reads(takesTwice))},
		{"heartbeat before snapshot", 1, "are in force", []regionsim.Fault{deaf, mute}, wrapped(beatsFirst)},
		{"shared out without waiting", 1, "are in force", away, wrapped(reads(evicts))},
		{"less than the floor", 1, "less than the floor", nil, wrapped(halves)},
		{"nothing is found again", 1, "in nobody's hands", nil, wrapped(reads(strangers))},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			caught := 0
			for seed := range uint64(worlds) {
				w := calm(small(seed, func(w *regionsim.World) { w.New, w.Faults = newSync, test.faults }))
				if err := judged(w.Run()); err != nil {
					t.Fatalf("seed %d, nothing broken: %v", seed, err)
				}
				test.breaks(&w)
				if err := judged(w.Run()); err != nil && strings.Contains(err.Error(), test.what) {
					if caught++; caught == 1 {
						t.Logf("seed %d: %v", seed, err)
					}
				}
			}
			if t.Logf("caught in %d of %d worlds", caught, worlds); caught < test.least {
				t.Errorf("caught in %d of %d worlds, want %d", caught, worlds, test.least)
			}
		})
	}
}

// wrapped breaks a world by what its syncs see.
func wrapped(by wrap) func(*regionsim.World) { return func(w *regionsim.World) { w.Wrap = by } }
