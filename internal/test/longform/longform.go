// Package longform lets a test run in two forms: the usual one, which `make test` runs, and the long one,
// which CI runs, as does SLUICE_TEST=long. The usual form plays fewer histories of the same kinds; it leaves
// out no assertion.
//
// Each test notes what its usual form leaves out, and `make test` prints these notes when it is through.
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

// Count returns how many things, such as "histories", a test plays: all of them in the long form, else the
// usual number.
func Count[N ~int | ~uint64](t testing.TB, what string, all, usual N) N {
	t.Helper()
	if Wanted() {
		return all
	}
	t.Attr(Attribute, fmt.Sprintf("%d of %d %s", all-usual, all, what))
	return usual
}
