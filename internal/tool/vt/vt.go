// Package vt is a terminal that shows what stays on the screen. It knows the few controls that the demo uses:
// carriage return, newline, cursor up, erase to the end of the line or of the screen, colours.
package vt

import (
	"bytes"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Cell is a character on the screen.
type Cell struct {
	Rune   rune
	Colour string // of SGR, such as 32; "" is the terminal's own
}

// Screen is what a terminal shows. It grows downwards, and does not wrap lines.
type Screen struct {
	lines    [][]Cell
	row, col int
	colour   string
	pending  []byte // the start of a sequence that is not whole yet
}

// control is a control sequence: its number and its letter.
var control = regexp.MustCompile(`^\x1b\[([0-9]*)([A-Za-z])`)

// Write shows text. It fails at a control that the package does not know.
func (s *Screen) Write(text []byte) (int, error) {
	s.pending = append(s.pending, text...)
	for len(s.pending) > 0 {
		n, err := s.next(s.pending)
		if err != nil {
			return 0, err
		}
		if n == 0 {
			break
		}
		s.pending = s.pending[n:]
	}
	return len(text), nil
}

// next shows the first character, or runs the first control, and returns its length; 0 if it is not whole.
func (s *Screen) next(text []byte) (int, error) {
	switch text[0] {
	case '\r':
		s.col = 0
		return 1, nil
	case '\n': // as a terminal's driver writes it: with a carriage return
		s.row, s.col = s.row+1, 0
		return 1, nil
	case '\x1b':
		m := control.FindSubmatch(text)
		if m == nil {
			if len(text) > 8 || bytes.ContainsAny(text[1:], "\x1b\n") {
				return 0, fmt.Errorf("the terminal does not know the control %q", text[:min(len(text), 9)])
			}
			return 0, nil
		}
		return len(m[0]), s.run(string(m[1]), string(m[2]))
	}
	if !utf8.FullRune(text) {
		return 0, nil
	}
	r, n := utf8.DecodeRune(text)
	s.put(Cell{r, s.colour})
	return n, nil
}

// run runs a control.
func (s *Screen) run(number, letter string) error {
	switch letter {
	case "A":
		n, _ := strconv.Atoi(number)
		s.row = max(0, s.row-max(1, n))
	case "K":
		s.erase()
	case "J":
		s.erase()
		s.lines = s.lines[:min(len(s.lines), s.row+1)]
	case "m":
		s.colour = strings.TrimPrefix(number, "0")
	default:
		return fmt.Errorf("the terminal does not know the control %q", "\x1b["+number+letter)
	}
	return nil
}

// erase erases the line from the cursor on.
func (s *Screen) erase() {
	if s.row < len(s.lines) {
		line := s.lines[s.row]
		s.lines[s.row] = line[:min(len(line), s.col)]
	}
}

// put shows a character at the cursor.
func (s *Screen) put(c Cell) {
	for len(s.lines) <= s.row {
		s.lines = append(s.lines, nil)
	}
	line := s.lines[s.row]
	for len(line) <= s.col {
		line = append(line, Cell{Rune: ' '})
	}
	line[s.col] = c
	s.lines[s.row] = line
	s.col++
}

// Cells returns the lines of the screen, up to the last that has a character.
func (s *Screen) Cells() [][]Cell {
	n := len(s.lines)
	for n > 0 && len(s.lines[n-1]) == 0 {
		n--
	}
	return s.lines[:n]
}

// Lines returns the screen's text without the spaces at the ends of lines.
func (s *Screen) Lines() []string {
	var all []string
	for _, line := range s.Cells() {
		var b strings.Builder
		for _, c := range line {
			b.WriteRune(c.Rune)
		}
		all = append(all, strings.TrimRight(b.String(), " "))
	}
	return all
}

// Cursor returns where the next character goes.
func (s *Screen) Cursor() (row, col int) { return s.row, s.col }

// Colour returns the colour that the next character has; "" is the terminal's own.
func (s *Screen) Colour() string { return s.colour }
