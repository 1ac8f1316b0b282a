package term

import (
	"fmt"
	"io"
	"os"
	"strings"
	"time"
)

// statusLine says how far something is. On a terminal it is one line, written over and in the end wiped off; a log keeps a line
// every so often.
type StatusLine struct {
	W        io.Writer
	Terminal bool
	Every    time.Duration // between lines of a log
	Next     time.Time     // when it is time for another
	Line     string
}

// due reports that it is time for a line.
func (s *StatusLine) Due(now time.Time) bool { return !now.Before(s.Next) }

// show writes a line.
func (s *StatusLine) Show(now time.Time, line string) {
	if s.Terminal { // over the last one, with spaces where that was longer
		s.Next = now.Add(200 * time.Millisecond)
		line = fmt.Sprintf("%-*s", len(s.Line), line)
		_, _ = io.WriteString(s.W, "\r"+line)
	} else {
		s.Next = now.Add(s.Every)
		_, _ = io.WriteString(s.W, line+"\n")
	}
	s.Line = line
}

// wipe takes the line off a terminal.
func (s *StatusLine) Wipe() {
	if s.Terminal && s.Line != "" {
		_, _ = io.WriteString(s.W, "\r"+strings.Repeat(" ", len(s.Line))+"\r")
	}
	s.Line = ""
}

// isTerminal reports whether w is a terminal, on which a line can be overwritten.
func IsTerminal(w io.Writer) bool {
	file, ok := w.(*os.File)
	if !ok {
		return false
	}
	info, err := file.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}
