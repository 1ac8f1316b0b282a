package cli

import (
	"fmt"
	"io"
	"time"
)

// topProgress shows how many buckets have been read, where that takes more than a second.
type topProgress struct {
	statusLine

	began time.Time
}

func newTopProgress(w io.Writer, terminal bool, began time.Time) *topProgress {
	return &topProgress{statusLine{w: w, terminal: terminal, every: 5 * time.Second, next: began.Add(time.Second)}, began}
}

// show writes a line, if it is time for one.
func (t *topProgress) show(now time.Time, buckets int) {
	if t.due(now) {
		t.statusLine.show(now, fmt.Sprintf("%s read, %v", of(buckets, "bucket"), now.Sub(t.began).Round(time.Second)))
	}
}
