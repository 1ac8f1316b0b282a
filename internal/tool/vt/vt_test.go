package vt_test

import (
	"slices"
	"testing"

	"github.com/sluice-go/sluice/internal/tool/vt"
)

// TestScreen writes byte by byte, as a terminal may get it.
func TestScreen(t *testing.T) {
	for text, want := range map[string][]string{
		"a\nb":                       {"a", "b"},
		"abc\rx":                     {"xbc"},
		"one\ntwo\n\x1b[2Ax\x1b[K\n": {"x", "two"},
		"one\ntwo\n\r\x1b[A\x1b[Jx":  {"one", "x"},
		"one\ntwo^C\r\x1b[J":         {"one"},
		"\x1b[32m█\x1b[0m ·":         {"█ ·"},
	} {
		var s vt.Screen
		for i := range len(text) {
			if _, err := s.Write([]byte{text[i]}); err != nil {
				t.Fatalf("%q: %v", text, err)
			}
		}
		if got := s.Lines(); !slices.Equal(got, want) {
			t.Errorf("%q shows %q, want %q", text, got, want)
		}
	}
}

func TestColours(t *testing.T) {
	var s vt.Screen
	if _, err := s.Write([]byte("\x1b[32ma\x1b[0mb\x1b[31m")); err != nil {
		t.Fatal(err)
	}
	if got := s.Cells()[0]; !slices.Equal(got, []vt.Cell{{'a', "32"}, {'b', ""}}) || s.Colour() != "31" {
		t.Errorf("cells %v, colour %q", got, s.Colour())
	}
	if row, col := s.Cursor(); row != 0 || col != 2 {
		t.Errorf("cursor at %d, %d", row, col)
	}
}

// TestUnknown: what the screen would show wrongly is an error.
func TestUnknown(t *testing.T) {
	for _, text := range []string{"\x1b[2B", "\x1b]0;title\a and more"} {
		if _, err := new(vt.Screen).Write([]byte(text)); err == nil {
			t.Errorf("%q is no error", text)
		}
	}
}
