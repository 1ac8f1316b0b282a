package main

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/sluice-go/sluice/internal/test/regionsim"
	"github.com/sluice-go/sluice/internal/tool/texttable"
	"github.com/sluice-go/sluice/runtime/region"
)

// most is how many lines a table or a picture has in a terminal.
const most = 30

// group is how many of n windows are one line together.
func group(n int) int { return max(1, (n+most-1)/most) }

// print writes what was seen, a line per window or for some of them together.
func (p *play) print(out io.Writer, prices prices) error {
	var s strings.Builder
	fmt.Fprintf(&s, "%d regions share out %s limits of G = %s tokens a minute each; demand is %s, seed %d.\n",
		p.regions, texttable.Count(int64(p.quotas())), texttable.Count(whole), p.shape, p.seed)
	for _, f := range p.faults {
		fmt.Fprintf(&s, "fault: %s of %s at %v for %v\n", f.Kind, p.names()[f.Region], f.At.Round(time.Second),
			f.For.Round(time.Second))
	}
	s.WriteString(
		"\nWRITES: of quotas, in one region and window. SUM: of the quotas that processes may use at worst, " +
			"caches and clocks\n" +
			"included, the largest of any limit. STARVED: refused, while it was left over in another region. " +
			"DISTANCE: of quotas from\n" +
			"where demand would have them. The last three are of 1000, where 1000 is G.\n\n")
	if err := p.table(&s); err != nil {
		return err
	}
	s.WriteString("\n")
	if err := p.chart(group(len(p.samples))).Text(&s); err != nil {
		return err
	}
	s.WriteString("\n")
	if err := p.summary(&s, prices); err != nil {
		return err
	}
	_, err := io.WriteString(out, s.String())
	return err
}

// table has a line for each group of windows.
func (p *play) table(out *strings.Builder) error {
	rows := [][]string{{"UNTIL", "WRITES", "SUM", "STARVED", "DISTANCE"}}
	for some := range slices.Chunk(p.samples, group(len(p.samples))) {
		m := p.mean(some)
		rows = append(rows, []string{clock(some[len(some)-1].At), tenths(m.writes), tenths(m.sum * 1000),
			tenths(m.starved * 1000), tenths(m.distance * 1000)})
	}
	return texttable.Write(out, "", "rrrrr", rows)
}

// means are of some samples: sum is their largest.
type means struct {
	rate

	sum, starved, distance float64
	triggers               map[region.Trigger]int // all of them
}

// planned is how many writes cycles wanted.
func (m means) planned() (n float64) {
	for _, of := range m.triggers {
		n += float64(of)
	}
	return n
}

// mean adds up what happened in some windows, by region and window: cycles that last longer than one are not
// counted as fewer.
func (p *play) mean(some []regionsim.Sample) (m means) {
	m.triggers = map[region.Trigger]int{}
	for i := range some {
		s := &some[i]
		m.writes += float64(s.Writes)
		m.beats += float64(s.Beats)
		m.puts += float64(s.Puts)
		m.gets += float64(s.Gets)
		for trigger, n := range s.Triggers {
			m.triggers[trigger] += n
		}
		m.sum = max(m.sum, s.Sum)
		m.starved += s.Starved / float64(len(some))
		m.distance += s.Distance / float64(len(some))
	}
	n := float64(max(len(some)*p.regions, 1))
	m.writes, m.beats, m.puts, m.gets = m.writes/n, m.beats/n, m.puts/n, m.gets/n
	return m
}

// settled are the samples of the second half: in the first, all begin at the floor.
func (p *play) settled() []regionsim.Sample { return p.samples[len(p.samples)/2:] }

// summary says what it comes to.
func (p *play) summary(out *strings.Builder, prices prices) error {
	all, half := p.mean(p.samples), p.mean(p.settled())
	fmt.Fprintf(out,
		"In the second half a region wrote %s of its %s quotas in a window, %s %% fewer than all; starved %s, "+
			"distance %s of 1000.\n",
		tenths(half.writes), texttable.Count(int64(p.quotas())), tenths(100-100*half.writes/float64(p.quotas())),
		tenths(half.starved*1000), tenths(half.distance*1000))
	if planned, wrote := half.planned(), half.writes*float64(len(p.settled())*p.regions); wrote < 0.95*planned {
		fmt.Fprintf(out,
			"It planned more: %s %% of its writes were not done in their cycle, for want of time or because the "+
				"table refused.\n", tenths(100-100*wrote/planned))
	}
	fmt.Fprintf(out, "%s quotas were written in all. Triggers of what cycles planned:",
		texttable.Count(int64(p.result.Writes)))
	for i, trigger := range slices.Sorted(maps.Keys(all.triggers)) {
		if i > 0 {
			out.WriteString(",")
		}
		fmt.Fprintf(out, " %s %s", trigger, texttable.Count(int64(all.triggers[trigger])))
	}
	out.WriteString(".\n")
	out.WriteString("\n")
	if err := compare(out, half.rate, p.worldSettings, prices); err != nil {
		return err
	}
	if len(p.result.Violations) == 0 {
		fmt.Fprintf(out,
			"\ncheck: ok: at none of %s moments the sum of quotas in force was above G, or a quota below the floor; "+
				"at most it was %s of 1000\n",
			texttable.Count(int64(p.result.Events)), tenths(all.sum*1000))
	}
	return nil
}

// clock writes how long after its beginning something is in a world.
func clock(d time.Duration) string {
	return fmt.Sprintf("%d:%02d", int(d.Minutes()), int(d.Seconds())%60)
}

// tenths writes x with one decimal.
func tenths(x float64) string { return strconv.FormatFloat(x, 'f', 1, 64) }
