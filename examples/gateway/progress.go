package main

import (
	"fmt"
	"os"
	"time"
)

// showProgress prints how the simulation goes, until the function that it returns is called: on a terminal
// one line that changes, elsewhere a line every other second.
func showProgress(out *os.File, m *meter, all time.Duration) (done func()) {
	every, begin, end := 2*time.Second, "", "\n"
	if isTerminal(out) {
		every, begin, end = 200*time.Millisecond, "\r", ""
	}
	started := time.Now()
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		tick := time.NewTicker(every)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				_, _ = fmt.Fprint(out, begin, progressLine(m.counts(), moment(time.Since(started), all)), end)
			case <-stop:
				_, _ = fmt.Fprint(out, begin, progressLine(m.counts(), "ended"), "\n\n")
				return
			}
		}
	}()
	return func() {
		close(stop)
		<-stopped
	}
}

// moment says where in the simulation it is. After all the time, calls that are under way are waited for; a
// tick that comes a little late is still the last of the regular ones.
func moment(elapsed, all time.Duration) string {
	if elapsed > all+time.Second/2 {
		return "finishing"
	}
	return fmt.Sprintf("%.0f of %.0f s", min(elapsed, all).Seconds(), all.Seconds())
}

// progressLine has the same width each time, so that it covers the one before.
func progressLine(c counts, when string) string {
	return fmt.Sprintf("%10s   admitted %5d  denied %5d  degraded %4d  settled %5d  released %4d  failed %3d",
		when, c.admitted, c.denied, c.degraded, c.settled, c.released, c.failed)
}

// isTerminal reports that f is a terminal.
func isTerminal(f *os.File) bool {
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}
