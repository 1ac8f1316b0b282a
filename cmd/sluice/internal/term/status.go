// Package term writes to terminals: a status line that is overwritten, and bars.
package term

import (
	"fmt"
	"io"
	"os"
	"strings"
	"time"
)

// StatusLine shows progress. A terminal has one line, which is overwritten and finally erased. A log gets a
// line at an interval.
//
// It is not safe for concurrent use.
type StatusLine struct {
	W        io.Writer
	Terminal bool
	Every    time.Duration // between lines of a log
	Next     time.Time     // when the next line is due
	line     string
}

// Due reports whether the next line is due.
func (s *StatusLine) Due(now time.Time) bool { return !now.Before(s.Next) }

// Show writes a line.
func (s *StatusLine) Show(now time.Time, line string) {
	if s.Terminal { // spaces overwrite the rest of a longer line
		s.Next = now.Add(200 * time.Millisecond)
		line = fmt.Sprintf("%-*s", len(s.line), line)
		_, _ = io.WriteString(s.W, "\r"+line)
	} else {
		s.Next = now.Add(s.Every)
		_, _ = io.WriteString(s.W, line+"\n")
	}
	s.line = line
}

// Wipe erases the line from a terminal.
func (s *StatusLine) Wipe() {
	if s.Terminal && s.line != "" {
		_, _ = io.WriteString(s.W, "\r"+strings.Repeat(" ", len(s.line))+"\r")
	}
	s.line = ""
}

// IsTerminal reports whether w is a terminal, on which a line can be overwritten.
func IsTerminal(w io.Writer) bool {
	file, ok := w.(*os.File)
	if !ok {
		return false
	}
	info, err := file.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}

// Shown reports whether a line is on the screen.
func (s *StatusLine) Shown() bool { return s.line != "" }
