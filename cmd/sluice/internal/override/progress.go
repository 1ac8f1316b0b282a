package override

import (
	"fmt"
	"sync"
	"time"

	"github.com/sluice-go/sluice/cmd/sluice/internal/program"
	"github.com/sluice-go/sluice/cmd/sluice/internal/term"
)

// progress shows how many overrides are done, if that takes more than a second. It is safe for concurrent
// use.
type progress struct {
	mu     sync.Mutex
	now    func() time.Time
	status term.StatusLine
}

func newProgress(p program.Env) *progress {
	return &progress{now: p.Now, status: term.StatusLine{W: p.Stderr, Terminal: term.IsTerminal(p.Stderr),
		Every: 10 * time.Second, Next: p.Now().Add(time.Second)}}
}

// show writes a line if one is due.
func (r *progress) show(format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if now := r.now(); r.status.Due(now) {
		r.status.Show(now, fmt.Sprintf(format, args...))
	}
}

// end erases the line.
func (r *progress) end() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.status.Wipe()
}
