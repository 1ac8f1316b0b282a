package migrate

import (
	"fmt"
	"io"
	"math"
	"strings"
	"sync"
	"time"

	"github.com/sluice-go/sluice/internal/tool/texttable"
)

// How often progress is shown.
const (
	onTerminal = 200 * time.Millisecond
	inLines    = 5 * time.Second
)

// progress shows how far a run is. It writes when segments report to it, and needs no timer of its own.
type progress struct {
	w        io.Writer
	terminal bool
	now      func() time.Time
	began    time.Time
	job      Job

	mu          sync.Mutex
	before      int64 // items that earlier runs have read
	read, total int64 // items; total is 0 while it is not known
	done        int64 // what the job is about
	shown       time.Time
	line        string
}

// start sets how many items earlier runs have read, and the total.
func (p *progress) start(before, total int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.before, p.read, p.total = before, before, total
	p.shown = p.now()
}

// add reports that n items of a page are done. If did, one more of what the job counts is done.
func (p *progress) add(n int, did bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.read += int64(n)
	if did {
		p.done++
	}
	p.show(false)
}

// page reports that a page of n items is done; early of them were reported by add.
func (p *progress) page(n, early int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.read += n - early
	p.show(false)
}

// end writes the last line. After a complete run, the number of items read is the total.
func (p *progress) end(complete bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.line == "" { // nothing was shown
		return
	}
	if complete {
		p.total = p.read
	}
	p.show(true)
	if p.terminal {
		_, _ = io.WriteString(p.w, "\n")
	}
}

// show writes a line, if it is time for one.
func (p *progress) show(last bool) {
	every := inLines
	if p.terminal {
		every = onTerminal
	}
	now := p.now()
	if !last && now.Sub(p.shown) < every {
		return
	}
	p.shown = now
	line := p.text(now.Sub(p.began))
	if p.terminal { // over the last one, with spaces where that was longer
		_, _ = fmt.Fprintf(p.w, "\r%-*s", len(p.line), line)
	} else {
		_, _ = io.WriteString(p.w, line+"\n")
	}
	p.line = line
}

// doing is what each job counts.
var doing = map[Job]string{
	DryRun: "buckets to convert", Convert: "buckets converted", Verify: "items verified",
	Cleanup: "items deleted",
}

const barWidth = 20

// text is the line after elapsed.
func (p *progress) text(elapsed time.Duration) string {
	count := fmt.Sprintf("%s %s", texttable.Count(p.done), doing[p.job])
	if p.total <= 0 || p.read > p.total { // DynamoDB counts a table's items every six hours
		return fmt.Sprintf("%s items read, %s, %v", texttable.Count(p.read), count, elapsed.Round(time.Second))
	}
	bar := int(barWidth * p.read / p.total)
	line := fmt.Sprintf("[%s%s] %3d%%  %s of %s items read, %s", strings.Repeat("#", bar),
		strings.Repeat("-", barWidth-bar),
		100*p.read/p.total, texttable.Count(p.read), texttable.Count(p.total), count)
	if own := p.read - p.before; own > 0 && p.read < p.total {
		left := elapsed.Seconds() * float64(p.total-p.read) / float64(own)
		line += fmt.Sprintf(", about %v left", time.Duration(math.Ceil(left))*time.Second)
	}
	return line
}
