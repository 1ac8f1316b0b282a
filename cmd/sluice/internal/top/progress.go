package top

import (
	"fmt"
	"io"
	"time"

	"github.com/sluice-go/sluice/cmd/sluice/internal/format"
	"github.com/sluice-go/sluice/cmd/sluice/internal/term"
)

// progress shows how many buckets have been read, if the read takes more than a second.
type progress struct {
	term.StatusLine

	began time.Time
}

func newProgress(w io.Writer, terminal bool, began time.Time) *progress {
	return &progress{term.StatusLine{W: w, Terminal: terminal, Every: 5 * time.Second,
		Next: began.Add(time.Second)}, began}
}

// show writes a line if one is due.
func (t *progress) show(now time.Time, buckets int) {
	if t.Due(now) {
		t.StatusLine.Show(now, fmt.Sprintf("%s read, %v", format.Quantity(buckets, "bucket"),
			now.Sub(t.began).Round(time.Second)))
	}
}
