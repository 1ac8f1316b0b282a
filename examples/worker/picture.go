package main

import (
	"fmt"
	"strings"
	"time"
)

// column is the time that one column of the picture stands for.
const column = 100 * time.Millisecond

// glyphs are what a column shows of each phase. Of several, the last counts, for how a job ended is what is
// to be seen.
var glyphs = [...]rune{waiting: '.', running: '█', done: '█', failed: 'x', late: '!', abandoned: '|',
	broken: '?'}

// draw draws a line for each worker.
func (s *shift) draw(out *strings.Builder) {
	width := int(s.ended.Sub(s.began)/column) + 1
	lines := make([][]rune, each*len(s.tenants))
	for i := range lines {
		lines[i] = []rune(strings.Repeat(" ", width))
	}
	for _, sp := range s.spans {
		first, last := int(sp.from.Sub(s.began)/column), int(sp.until.Sub(s.began)/column)
		if sp.what == waiting && first == last || sp.what == done {
			continue // no wait worth a column; a job that is done shows where it ran
		}
		for at := first; at < max(last, first+1); at++ {
			lines[sp.worker][at] = glyphs[sp.what]
		}
	}
	fmt.Fprint(out,
		"A column is 100 ms.  .: waits for its turn  █: runs  x: failed, its units are given back  !: would "+
			"come too late\n",
		"|: the workers stopped while it waited\n\n")
	out.WriteString(strings.Repeat(" ", 10) + "0 s")
	for second := 1; second*10 < width; second++ {
		fmt.Fprintf(out, "%10s", fmt.Sprintf("%d s", second))
	}
	out.WriteByte('\n')
	for i, line := range lines {
		fmt.Fprintf(out, "%-10s%s\n", fmt.Sprintf("%s/%d", s.tenants[i/each].ID, i%each+1),
			strings.TrimRight(string(line), " "))
	}
	out.WriteByte('\n')
}

// drawUnits draws a bar for each second: the units that jobs took at their start, a letter each, the tenant's
// first.
func (s *shift) drawUnits(out *strings.Builder, fleet allowance) {
	fmt.Fprintf(out,
		"Units that jobs took as they began, a letter each; what they did not use came back. The fleet has %d a "+
			"second, %d at once.\n\n",
		fleet.rate, fleet.burst)
	last := int64(s.ended.Sub(s.began) / time.Second)
	for second := range last + 1 {
		var bar strings.Builder
		for i := range s.tenants {
			bar.WriteString(strings.Repeat(s.tenants[i].ID[:1], int(s.taken[i][second])))
		}
		if bar.Len() > 0 || second < last { // in the last one jobs may only have ended
			fmt.Fprintf(out, "%2d s  %-30s %3d\n", second, &bar, bar.Len())
		}
	}
	out.WriteByte('\n')
}
