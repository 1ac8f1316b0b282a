package chart

import (
	"strings"
	"testing"
)

// TestNamedBars: bars that are no windows of time have names, and nothing lies between them.
func TestNamedBars(t *testing.T) {
	c := Chart{Title: "How long calls took", Panels: []Panel{{Name: "admitted", Unit: "calls", Bars: []Bar{
		{Name: "5 ms", Tokens: 4, Text: "4"}, {Name: "10 ms", Text: "0"}, {Name: "1.5 s", Tokens: 1, Text: "1"},
	}}}}
	const want = `How long calls took

admitted, calls
   5 ms  4  ████████████████████████████████████████
  10 ms  0
  1.5 s  1  ██████████
`
	var s strings.Builder
	if err := c.Text(&s); err != nil || s.String() != want {
		t.Errorf("%v\n%s\nwant\n%s", err, s.String(), want)
	}
}
