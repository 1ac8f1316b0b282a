package cli

import (
	"fmt"
	"io"
	"strings"
	"time"
)

// topProgress shows how many buckets have been read, where that takes more than a second. On a terminal the line is gone once
// all are read; a log keeps what it was told.
type topProgress struct {
	w           io.Writer
	terminal    bool
	began, next time.Time
	line        string
}

// show writes a line, if it is time for one.
func (t *topProgress) show(now time.Time, buckets int) {
	if now.Before(t.next) {
		return
	}
	line := fmt.Sprintf("%s read, %v", of(buckets, "bucket"), now.Sub(t.began).Round(time.Second))
	if t.terminal { // over the last one, with spaces where that was longer
		t.next = now.Add(200 * time.Millisecond)
		line = fmt.Sprintf("%-*s", len(t.line), line)
		_, _ = io.WriteString(t.w, "\r"+line)
	} else {
		t.next = now.Add(5 * time.Second)
		_, _ = io.WriteString(t.w, line+"\n")
	}
	t.line = line
}

// end wipes the line off a terminal.
func (t *topProgress) end() {
	if t.terminal && t.line != "" {
		_, _ = io.WriteString(t.w, "\r"+strings.Repeat(" ", len(t.line))+"\r")
	}
}
