// Package longform lets a test run in two forms: the usual one, which `make test` runs, and the long one,
// which CI runs, as does SLUICE_TEST=long. The usual form plays fewer histories of the same kinds, and leaves
// out controls that take a second or more. It leaves out no other assertion.
//
// Each test notes what its usual form leaves out, and `make test` prints these notes when it is through.
//
// CI also runs tests under the race detector. Histories and NoRace leave out what the detector gains nothing
// from.
package longform

import (
	"fmt"
	"os"
	"testing"
)

// Attribute is the key of the test attribute that says what a test left out.
const Attribute = "left-out"

// variable asks for the long form.
const variable = "SLUICE_TEST"

// Wanted reports whether this run is of the long form. The form that -short asks for is never long.
func Wanted() bool { return os.Getenv(variable) == "long" && !testing.Short() }

// Only skips a test whose usual form is to be left out. The reason says what other test of the usual form
// comes close.
func Only(t testing.TB, reason string) {
	t.Helper()
	if !Wanted() {
		t.Skip("long form only: " + reason)
	}
}

// Control skips a control that takes a second or more of a processor, unless this run is of the long form. It
// shows that a check finds broken variants, so only a changed check can make it fail.
func Control(t testing.TB) {
	t.Helper()
	if !Wanted() {
		t.Skip("long form only: a control, whose broken variants ship nowhere")
	}
	NoRace(t, "a control, whose broken variants ship nowhere")
}

// Count returns how many things, such as "histories", a test plays: all of them in the long form, else the
// usual number.
func Count[N ~int | ~uint64](t testing.TB, what string, all, usual N) N {
	t.Helper()
	if Wanted() || usual == all {
		return all
	}
	t.Attr(Attribute, fmt.Sprintf("%d of %d %s", all-usual, all, what))
	return usual
}

// Histories is Count for random histories. Under the race detector a test plays a third of the usual number,
// at least one. The detector looks for accesses without an order, which the histories of a kind have in
// common.
func Histories[N ~int | ~uint64](t testing.TB, what string, all, usual N) N {
	t.Helper()
	n := Count(t, what, all, usual)
	if detector {
		n = max(1, min(n, usual/3))
	}
	return n
}

// NoRace skips a test under the race detector. The reason says why it proves nothing there: the test measures
// a cost, or is a control, whose broken variant ships nowhere, or other tests run the same goroutines.
func NoRace(t testing.TB, reason string) {
	t.Helper()
	if detector {
		t.Skip("not under the race detector: " + reason)
	}
}
