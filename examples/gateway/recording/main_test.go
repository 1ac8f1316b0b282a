package main

import (
	"encoding/xml"
	"errors"
	"io"
	"strings"
	"testing"
)

// TestRecord draws two bars and what stands around them.
func TestRecord(t *testing.T) {
	var out strings.Builder
	const screen = "a < b\nbar  \x1b[32m████████\x1b[0m····  8\n" +
		"\x1b[1Abar  \x1b[31m░░░░░░░░\x1b[0m····  9\nok: an end\n"
	if err := record(strings.NewReader(screen), &out); err != nil {
		t.Fatal(err)
	}
	for d := xml.NewDecoder(strings.NewReader(out.String())); ; {
		if _, err := d.Token(); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatalf("%v:\n%s", err, &out)
		}
	}
	for text, times := range map[string]int{
		`>a &lt; b</tspan>`: 1, ">ok: an end</tspan>": 1,
		` width="64" height="16" fill="#f85149" opacity="0.4"/>`: 1,
		"#3fb950": 0, `class="cover"`: 1, `<g class="end">`: 1, "</g>": 1,
	} {
		if n := strings.Count(out.String(), text); n != times {
			t.Errorf("%d times %q, want %d:\n%s", n, text, times, &out)
		}
	}
}

// TestNoBars: a recording that was no demo on a terminal is refused, and so is an unknown control.
func TestNoBars(t *testing.T) {
	for screen, want := range map[string]string{
		"one\ntwo\n": "no bar in 2 lines: record a demo on a terminal of 100 columns",
		"\x1b[2B":    `the terminal does not know the control "\x1b[2B"`,
	} {
		if err := record(strings.NewReader(screen), io.Discard); err == nil || err.Error() != want {
			t.Errorf("%q: %v", screen, err)
		}
	}
}
