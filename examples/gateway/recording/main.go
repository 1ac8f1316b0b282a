// Command recording draws what `make demo` wrote to a terminal as an SVG, as `make recording` does:
//
//	recording <demo.raw >demo.svg
//
// The picture has the last screen. Its bars appear from left to right, as they did in the run, at twice the
// speed. The lines below follow.
package main

import (
	"encoding/xml"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/sluice-go/sluice/internal/tool/vt"
)

func main() {
	if err := record(os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "recording:", err)
		os.Exit(1)
	}
}

// record reads a terminal's input and writes the picture.
func record(in io.Reader, out io.Writer) error {
	var s vt.Screen
	if _, err := io.Copy(&s, in); err != nil {
		return err
	}
	text, err := draw(s.Cells())
	if err != nil {
		return err
	}
	_, err = io.WriteString(out, text)
	return err
}

// Sizes in pixels, and the time in which the bars appear.
const (
	wide, high, margin = 8.0, 18.0, 16.0
	columns            = 100
	seconds            = 9
)

// colours are those of a dark terminal, by SGR number. The picture has a background of its own, so that it
// looks alike on light pages and on dark ones.
var colours = map[string]string{
	"": "#d0d7de", "32": "#3fb950", "31": "#f85149", "33": "#d29922", "35": "#bc8cff",
}

// blocks are the characters that the picture draws as rectangles, of this opacity: fonts differ in them.
var blocks = map[rune]float64{'█': 1, '▒': 0.75, '░': 0.4}

// draw draws the lines.
func draw(lines [][]vt.Cell) (string, error) {
	first, last := barsOf(lines)
	if first < 0 {
		return "", fmt.Errorf("no bar in %d lines: record a demo on a terminal of %d columns", len(lines), columns)
	}
	var b strings.Builder
	width, height := columns*wide+2*margin, float64(len(lines))*high+2*margin
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %g %g" width="%g" height="%g" `+
		`role="img" aria-label="make demo on a terminal">`+"\n", width, height, width, height)
	fmt.Fprintf(&b, "<style>"+
		"text{font:13.2px ui-monospace,SFMono-Regular,Menlo,Consolas,'DejaVu Sans Mono',monospace;"+
		"white-space:pre}.cover{transform:scaleX(0);transform-box:fill-box;transform-origin:right}"+
		"@media(prefers-reduced-motion:no-preference){.cover{animation:show %ds linear}.end{animation:end %ds}}"+
		"@keyframes show{from{transform:scaleX(1)}}@keyframes end{from,99%%{opacity:0}}</style>\n",
		seconds, seconds)
	fmt.Fprintf(&b, `<rect width="%g" height="%g" rx="8" fill="#0d1117" stroke="#30363d"/>`+"\n", width, height)
	for row, line := range lines {
		if row == last+1 {
			b.WriteString("<g class=\"end\">\n")
		}
		drawLine(&b, row, line)
	}
	b.WriteString("</g>\n")
	from := barColumn(lines[first])
	fmt.Fprintf(&b, `<rect class="cover" x="%g" y="%g" width="%g" height="%g" fill="#0d1117"/>`+"\n",
		margin+from*wide, margin+float64(first)*high, (columns-from)*wide, float64(last-first+1)*high)
	b.WriteString("</svg>\n")
	return b.String(), nil
}

// barsOf returns the first and the last line with a bar, or -1. A legend has blocks too, but none in a row.
func barsOf(lines [][]vt.Cell) (first, last int) {
	first, last = -1, -1
	for row, line := range lines {
		if barColumn(line) < 0 {
			continue
		}
		if first < 0 {
			first = row
		}
		last = row
	}
	return first, last
}

// barColumn returns the column that the bar of a line starts in, or -1. The characters of bars are blocks and
// middle dots.
func barColumn(line []vt.Cell) float64 {
	run := 0
	for col, c := range line {
		if blocks[c.Rune] == 0 && c.Rune != '·' {
			run = 0
			continue
		}
		if run++; run == 8 {
			return float64(col - run + 1)
		}
	}
	return -1
}

// drawLine draws a line: its text, each run of one colour apart, and its blocks.
func drawLine(b *strings.Builder, row int, line []vt.Cell) {
	top := margin + float64(row)*high
	var text strings.Builder
	for at := 0; at < len(line); {
		until := at + 1
		for until < len(line) && line[until].Colour == line[at].Colour &&
			blocks[line[until].Rune] == blocks[line[at].Rune] {
			until++
		}
		x, length := margin+float64(at)*wide, float64(until-at)*wide
		if opacity := blocks[line[at].Rune]; opacity > 0 {
			fmt.Fprintf(b, `<rect x="%g" y="%g" width="%g" height="%g" fill="%s" opacity="%g"/>`+"\n",
				x, top+1, length, high-2, colours[line[at].Colour], opacity)
			at = until
			continue
		}
		var run strings.Builder
		for _, c := range line[at:until] {
			run.WriteRune(c.Rune)
		}
		if shown := strings.TrimLeft(run.String(), " "); shown != "" {
			left := float64(run.Len()-len(shown)) * wide
			text.WriteString(tspan(shown, x+left, length-left, colours[line[at].Colour]))
		}
		at = until
	}
	if text.Len() > 0 {
		fmt.Fprintf(b, `<text y="%g">%s</text>`+"\n", top+13, &text)
	}
}

// tspan places a text exactly, whatever font shows it.
func tspan(text string, x, length float64, colour string) string {
	var escaped strings.Builder
	_ = xml.EscapeText(&escaped, []byte(text)) // a Builder takes everything
	return fmt.Sprintf(`<tspan x="%g" textLength="%g" fill="%s" xml:space="preserve">%s</tspan>`,
		x, length, colour, &escaped)
}
