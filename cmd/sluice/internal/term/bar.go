package term

import "strings"

// Widths in columns. A row that is wider than a screen gets a narrower bar: names are not cut, since a cut
// name is of no use in another command.
const (
	BarWidth     = 20
	NarrowestBar = 8
	ScreenWidth  = 80 // of the smallest usual terminal
)

// Bar draws bars of blocks on a terminal and of ASCII elsewhere.
type Bar struct {
	Screen     bool   // for a terminal
	Used, Left string // a used part and an unused one
	Width      int    // in parts
}

// NewBar returns a bar of BarWidth parts.
func NewBar(screen bool) Bar {
	if screen {
		return Bar{true, "█", "░", BarWidth}
	}
	return Bar{false, "#", "-", BarWidth}
}

// Of returns a bar with this number of used parts.
func (b Bar) Of(parts uint64) string {
	n := int(min(parts, uint64(b.Width)))
	return strings.Repeat(b.Used, n) + strings.Repeat(b.Left, b.Width-n)
}
