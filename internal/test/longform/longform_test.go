package longform_test

import (
	"testing"

	"github.com/sluice-go/sluice/internal/test/longform"
)

// attributes notes the attributes that a test sets, and whether it skips.
type attributes struct {
	testing.TB
	all     []string
	skipped bool
}

// Skip implements testing.TB, but does not end the test.
func (a *attributes) Skip(...any) { a.skipped = true }

// Attr implements testing.TB.
func (a *attributes) Attr(key, value string) { a.all = append(a.all, key+": "+value) }

func TestCount(t *testing.T) {
	for variable, want := range map[string]struct{ n, notes int }{"": {30, 1}, "long": {300, 0}} {
		t.Setenv("SLUICE_TEST", variable)
		if testing.Short() && variable == "long" {
			continue
		}
		a := &attributes{TB: t}
		if n := longform.Count(a, "histories", 300, 30); n != want.n || len(a.all) != want.notes {
			t.Errorf("%q: %d histories, notes %q", variable, n, a.all)
		}
		if want.notes > 0 && a.all[0] != "left-out: 270 of 300 histories" {
			t.Errorf("notes %q", a.all)
		}
	}
}

func TestOnly(t *testing.T) {
	for _, variable := range []string{"", "long"} {
		t.Setenv("SLUICE_TEST", variable)
		a := &attributes{TB: t}
		longform.Only(a, "it takes a minute")
		if want := variable != "long" || testing.Short(); a.skipped != want {
			t.Errorf("%q: skipped %t", variable, a.skipped)
		}
	}
}

// TestControl: controls are of the long form, and never under the race detector.
func TestControl(t *testing.T) {
	for _, variable := range []string{"", "long"} {
		t.Setenv("SLUICE_TEST", variable)
		a := &attributes{TB: t}
		longform.Control(a)
		if want := variable != "long" || testing.Short() || longform.Detector; a.skipped != want {
			t.Errorf("%q: skipped %t", variable, a.skipped)
		}
	}
}

// TestHistories: the race detector sees fewer of them, and never none.
func TestHistories(t *testing.T) {
	t.Setenv("SLUICE_TEST", "")
	for usual, detector := range map[int]int{30: 10, 2: 1} {
		want := usual
		if longform.Detector {
			want = detector
		}
		if n := longform.Histories(&attributes{TB: t}, "histories", 300, usual); n != want {
			t.Errorf("%d histories, want %d", n, want)
		}
	}
}

func TestNoRace(t *testing.T) {
	a := &attributes{TB: t}
	if longform.NoRace(a, "it measures memory"); a.skipped != longform.Detector {
		t.Errorf("skipped %t, want %t", a.skipped, longform.Detector)
	}
}
