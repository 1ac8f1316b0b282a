package cli

import (
	"fmt"
	"io"
	"strings"
	"time"
)

// statusLine says how far something is. On a terminal it is one line, written over and in the end wiped off; a log keeps a line
// every so often.
type statusLine struct {
	w        io.Writer
	terminal bool
	every    time.Duration // between lines of a log
	next     time.Time     // when it is time for another
	line     string
}

// due reports that it is time for a line.
func (s *statusLine) due(now time.Time) bool { return !now.Before(s.next) }

// show writes a line.
func (s *statusLine) show(now time.Time, line string) {
	if s.terminal { // over the last one, with spaces where that was longer
		s.next = now.Add(200 * time.Millisecond)
		line = fmt.Sprintf("%-*s", len(s.line), line)
		_, _ = io.WriteString(s.w, "\r"+line)
	} else {
		s.next = now.Add(s.every)
		_, _ = io.WriteString(s.w, line+"\n")
	}
	s.line = line
}

// wipe takes the line off a terminal.
func (s *statusLine) wipe() {
	if s.terminal && s.line != "" {
		_, _ = io.WriteString(s.w, "\r"+strings.Repeat(" ", len(s.line))+"\r")
	}
	s.line = ""
}
