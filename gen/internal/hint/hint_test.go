package hint

import (
	"fmt"
	"testing"
)

// TestHints gives hints for misspellings, and a list of what there is, not too long, for all else.
func TestHints(t *testing.T) {
	many := make([]string, 15)
	for i := range many {
		many[i] = fmt.Sprintf("kind%c", 'a'+i)
	}
	for _, c := range []struct {
		text  string
		known []string
		want  string
	}{
		{"refil", []string{"capacity", "refill", "burst"}, `did you mean "refill"?`},
		{"Burst", []string{"capacity", "refill", "burst"}, `did you mean "burst"?`},
		{"colour", []string{"doc"}, "it can be doc"},
		{"colour", []string{"doc", "go_name"}, "it can be doc or go_name"},
		{"colour", many[:13], "it can be kinda, kindb, kindc, kindd, kinde, kindf, kindg, kindh, kindi, kindj, " +
			"kindk, kindl or kindm"},
		{"colour", many, "it can be kinda, kindb, kindc, kindd, kinde, kindf, kindg, kindh, kindi, kindj, kindk, " +
			"kindl or one of 3 more"},
	} {
		if got := new(Hints).Cure(c.text, c.known); got != c.want {
			t.Errorf("%s: got %s, want %s", c.text, got, c.want)
		}
	}
}

// TestHintsEnd holds the work on hints to its bound: thousands of mistakes among thousands of names would
// take minutes.
func TestHintsEnd(t *testing.T) {
	known := make([]string, 3000)
	for i := range known {
		known[i] = fmt.Sprintf("a_name_of_many_letters_%04d", i)
	}
	r := new(Hints)
	if _, found := r.Nearest("a_name_of_many_leters_0001", known); !found || r.distances == 0 {
		t.Errorf("no hint at first, after %d distances", r.distances)
	}
	for range known {
		r.Nearest("another_of_27_letters______", known)
	}
	if most := maxDistances + len(known); r.distances > most {
		t.Errorf("%d distances, want at most %d", r.distances, most)
	}
	if _, found := r.Nearest("a_name_of_many_leters_0001", known); found {
		t.Error("a hint beyond the bound")
	}
}
