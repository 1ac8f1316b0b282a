package main

import (
	"fmt"
	"io"
	"os"
	"runtime"
	"strings"
	"time"

	"golang.org/x/term"
)

// columns and rows are how large a terminal has to be.
const (
	columns = 100
	rows    = 25
)

// display is what a run is shown on.
type display struct {
	io.Writer

	inPlace bool // it is a terminal that lines can be drawn on in place
}

// screen draws lines in place: each drawing covers the one before.
type screen struct {
	out   io.Writer
	drawn int // lines of the last drawing
}

// draw writes a drawing at once. It also erases what was typed below the last one, such as the ^C of a
// Ctrl-C.
func (s *screen) draw(lines []string) {
	var b strings.Builder
	b.WriteString("\r")
	if s.drawn > 0 {
		fmt.Fprintf(&b, "\x1b[%dA", s.drawn)
	}
	for _, line := range lines {
		b.WriteString(line + "\x1b[K\n")
	}
	b.WriteString("\x1b[J")
	s.drawn = len(lines)
	_, _ = io.WriteString(s.out, b.String())
}

// glyphs are what a cell of a bar shows, by the way of most of its calls, and colours what a terminal shows
// them in.
var (
	glyphs   = [ways]string{admitted: "█", denied: "░", degraded: "▒", failed: "x"}
	colourOf = [ways]string{admitted: "32", denied: "31", degraded: "33", failed: "35"}
)

// paint writes text in a colour, if there are colours.
func paint(text, colour string, colours bool) string {
	if !colours || text == "" {
		return text
	}
	return "\x1b[" + colour + "m" + text + "\x1b[0m"
}

// show draws the bars until the function that it returns is called. On a terminal it draws them in place,
// elsewhere once, at the end, after a line for each turn of the outage.
func (b *board) show(out display) (done func()) {
	if !out.inPlace {
		b.onOutage(func(text string) { _, _ = fmt.Fprintln(out, text) })
		return func() { _, _ = fmt.Fprintln(out, strings.Join(b.frame(b.all, false), "\n")) }
	}
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		tick := time.NewTicker(every)
		defer tick.Stop()
		at := screen{out: out}
		for {
			at.draw(b.frame(b.elapsed(), true))
			select {
			case <-tick.C:
			case <-stop:
				at.draw(b.frame(b.all, true))
				return
			}
		}
	}()
	return func() {
		close(stop)
		<-stopped
	}
}

// every is the time between two drawings.
const every = 200 * time.Millisecond

// frame draws the bars as they are after this much of the run, under an axis that marks the outage.
func (b *board) frame(after time.Duration, colours bool) []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	reached := b.cell(after)
	text := []string{fmt.Sprintf("%-18s %s%9s%7s%9s%7s", "", b.axis(reached, colours), "admitted", "denied",
		"degraded", "slots")}
	for i := range b.bars {
		one := &b.bars[i]
		var strip strings.Builder
		for at, c := range one.cells {
			how, called := c.most()
			switch {
			case called:
				strip.WriteString(paint(glyphs[how], colourOf[how], colours))
			case at <= reached:
				strip.WriteString("·")
			default:
				strip.WriteString(" ")
			}
		}
		sum := one.sum()
		text = append(text, fmt.Sprintf("%-8s %-9s %s%9d%7d%9d%7s", one.tenant.name, one.tenant.manner, &strip,
			sum[admitted], sum[denied], sum[degraded], b.slots(one.tenant)))
	}
	cell := (b.all / cells).Round(time.Millisecond)
	legend := []string{fmt.Sprintf("A cell is %v, by most of its calls:", cell)}
	for how, name := range [ways]string{"admitted", "denied", "degraded", "failed"} {
		legend = append(legend, paint(glyphs[how], colourOf[how], colours)+" "+name)
	}
	return append(text, strings.Join(legend, "  "))
}

// slots writes the most slots that the tenant's calls had at once, of all.
func (b *board) slots(t *tenant) string {
	if t.embeds || b.peak == nil {
		return "-"
	}
	return fmt.Sprintf("%d/%d", b.peak(t.user.ID), slots)
}

// axis has the start and the end of the run, and marks the cells of the outage as far as it has come.
func (b *board) axis(reached int, colours bool) string {
	line := []rune(fmt.Sprintf("0 s%*s", cells-len("0 s"), fmt.Sprintf("%.0f s", b.all.Seconds())))
	if b.cut == 0 {
		return string(line)
	}
	from, until := b.cell(b.cut), reached
	if b.up > 0 {
		until = b.cell(b.up)
	}
	mark := []rune("outage")
	mark = append(mark, []rune(strings.Repeat("-", max(0, until-from-len(mark))))...)
	until = min(from+len(mark), cells)
	marked := paint(string(mark[:until-from]), colourOf[degraded], colours)
	return string(line[:from]) + marked + string(line[until:])
}

// most returns the way of most of the calls, and whether there was one.
func (t tally) most() (how way, called bool) {
	for w, n := range t {
		if n > t[how] {
			how = way(w)
		}
	}
	return how, t[how] > 0
}

// drawsOn reports that out is a terminal that lines can be drawn on in place, and that colours are wanted.
func drawsOn(out *os.File) bool {
	width, height, err := term.GetSize(int(out.Fd()))
	return err == nil && width >= columns && height >= rows &&
		os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb" && runtime.GOOS != "windows"
}
