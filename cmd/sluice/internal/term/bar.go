package term

import "strings"

// How wide bars are. Where long names make a row wider than a terminal, bars give way: a name that is cut off can be used no more.
const (
	BarWidth     = 20
	NarrowestBar = 8
	ScreenWidth  = 80 // of a terminal, at the least
)

// bar is what bars are made of.
type Bar struct {
	Screen     bool
	Used, Left string
	Width      int
}

// barOf returns what can be written: on a terminal blocks, elsewhere plain text.
func NewBar(screen bool) Bar {
	if screen {
		return Bar{true, "█", "░", BarWidth}
	}
	return Bar{false, "#", "-", BarWidth}
}

// of returns a bar of which so many parts are used.
func (b Bar) Of(parts uint64) string {
	n := int(min(parts, uint64(b.Width)))
	return strings.Repeat(b.Used, n) + strings.Repeat(b.Left, b.Width-n)
}
