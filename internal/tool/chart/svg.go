package chart

import (
	"encoding/xml"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"time"
)

// Positions and sizes, in pixels.
const (
	width      = 960
	left       = 84         // of the plot: the numbers of its axis are before it
	right      = width - 44 // so that the last label of the axis of time fits
	headHeight = 76
	panelTop   = 58  // of the plot in its panel: name and legend are above it
	plotHeight = 150 // of the plot
	panelSpace = 52  // below the plot: its axis of time
	widestBar  = 56
)

// How many letters fit, of a wide font: what is longer is shortened, and is whole in the picture's own title.
const (
	longestTitle = 66
	longestName  = 78
)

// Colours, for a light background and told apart without colour vision: dark ink, mid blue, orange.
const (
	ink, faint = "#1f2933", "#5f6c7b"
	grid, edge = "#e4e8ee", "#9aa5b1"
	barColour  = "#3b73b9"
	pale       = "url(#pale)" // stripes, of a bar that may still grow
	lineColour = "#d1560b"
)

// SVG writes c as a picture of its own, without scripts and without fonts that a reader may not have.
func (c Chart) SVG(w io.Writer) error {
	height := headHeight + len(c.Panels)*(panelTop+plotHeight+panelSpace)
	var s svg
	s.add(`<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" viewBox="0 0 %[1]d %[2]d" `+
		`font-family="Helvetica, Arial, 'DejaVu Sans', sans-serif" font-size="12" fill="%[3]s" role="img" `+
		`aria-label="%[4]s">`,
		width, height, ink, escape(c.Title))
	s.add(`<title>%s</title>`, escape(c.Title))
	s.add(`<defs><pattern id="pale" width="6" height="6" patternUnits="userSpaceOnUse" `+
		`patternTransform="rotate(45)">`+
		`<rect width="6" height="6" fill="#dbe6f4"/><rect width="2.5" height="6" fill="%s"/></pattern></defs>`,
		barColour)
	s.add(`<rect width="%d" height="%d" fill="#ffffff"/>`, width, height)
	s.add(`<text x="24" y="36" font-size="19" font-weight="bold">%s</text>`, escape(fit(c.Title, longestTitle)))
	from, to := c.extent()
	const instant = "2 Jan 2006, 15:04"
	when := from.Format(instant) + " to " + to.Format(instant) + " UTC"
	if c.Elapsed {
		when = elapsed(to) + " of simulated time"
	}
	s.add(`<text x="24" y="58" font-size="13" fill="%s">%s, by %s</text>`, faint, when, escape(c.Per))
	for i, p := range c.Panels {
		s.panel(c, p, axis{from, to, c.Span, c.Elapsed}, headHeight+i*(panelTop+plotHeight+panelSpace))
	}
	s.add(`</svg>`)
	_, err := io.WriteString(w, s.String())
	return err
}

// svg is a picture that is being written.
type svg struct{ strings.Builder }

// add adds a line.
func (s *svg) add(format string, args ...any) { _, _ = fmt.Fprintf(s, format+"\n", args...) }

func escape(text string) string {
	var b strings.Builder
	_ = xml.EscapeText(&b, []byte(text)) // a Builder does not fail
	return b.String()
}

// fit returns text with its middle left out, where it is longer than most letters; those of Asian scripts
// count twice.
func fit(text string, most int) string {
	letters := []rune(text)
	for cut := range letters { // letters that are left out
		from := (len(letters) - cut) / 2
		short := letters
		if cut > 0 {
			short = slices.Concat(letters[:from], []rune("…"), letters[from+cut:])
		}
		wide := len(short)
		for _, r := range short {
			if r >= 0x1100 && r != '…' {
				wide++
			}
		}
		if wide <= most {
			return string(short)
		}
	}
	return "…"
}

// panel adds p, whose upper edge is at y.
func (s *svg) panel(c Chart, p Panel, x axis, y int) {
	top, bottom := float64(y+panelTop), float64(y+panelTop+plotHeight)
	step := round((p.top() - p.lowest()) / 4)
	low, high := math.Floor(p.lowest()/step)*step, math.Ceil(p.top()/step)*step
	at := func(tokens float64) float64 { return bottom - (tokens-low)/(high-low)*(bottom-top) }

	s.add(`<text x="24" y="%d" font-size="14" font-weight="bold">%s<tspan dx="10" font-size="12" `+
		`font-weight="normal" fill="%s">%s</tspan></text>`,
		y+18, escape(fit(p.Name, longestName)), faint, escape(c.unit(p)))
	s.legend(c, p, y+40)
	for i := 0; i <= int(math.Round((high-low)/step)); i++ {
		tokens := low + float64(i)*step
		s.add(`<line x1="%d" x2="%d" y1="%.1f" y2="%.1[3]f" stroke="%s"/>`, left, right, at(tokens), grid)
		s.add(`<text x="%d" y="%.1f" text-anchor="end" fill="%s">%s</text>`, left-8, at(tokens)+4, faint,
			short(tokens))
	}
	for _, b := range p.Bars {
		from, to := x.at(b.Start), x.at(b.Start.Add(c.Span))
		wide := min((to-from)*0.8, widestBar)
		from = (from + to - wide) / 2
		if len(p.Parts) > 0 {
			s.stack(c, p, b, from, wide, at)
			continue
		}
		upper, lower := at(max(b.Tokens, 0)), at(min(b.Tokens, 0))
		fill, running := barColour, ""
		if b.Running {
			fill, running = pale, ", still running"
		}
		s.add(`<rect x="%.1f" y="%.1f" width="%.1f" height="%.1f" fill="%s"><title>%s: %s%s</title></rect>`,
			from, upper, wide, lower-upper, fill, c.start(b.Start), escape(b.Text), running)
	}
	s.add(`<line x1="%d" x2="%d" y1="%.1f" y2="%.1[3]f" stroke="%s"/>`, left, right, at(0), edge)
	if p.shown() {
		s.add(`<line x1="%d" x2="%d" y1="%.1f" y2="%.1[3]f" stroke="%s" stroke-width="2" stroke-dasharray="7 4"/>`,
			left, right, at(p.Allowance), lineColour)
	}
	s.times(x, bottom)
}

// stack adds the parts of a bar, one on the other.
func (s *svg) stack(c Chart, p Panel, b Bar, x, wide float64, at func(tokens float64) float64) {
	sum := 0.0
	for i, tokens := range b.Parts {
		s.add(`<rect x="%.1f" y="%.1f" width="%.1f" height="%.1f" fill="%s"><title>%s: %s of %s, %s</title></rect>`,
			x, at(sum+tokens), wide, at(sum)-at(sum+
				tokens), partColour(i), c.start(b.Start), short(tokens), escape(b.Text), escape(p.Parts[i]))
		sum += tokens
	}
}

// partColour is that of the i-th part: told apart in grey too, as far as that goes, and none of them is the
// line's.
func partColour(i int) string {
	colours := []string{barColour, "#e3b94f", "#2f8f83", "#a3589b", "#8fbce8", "#6b4c2f", "#9aa5b1", "#4b3a8c"}
	return colours[i%len(colours)]
}

// legend says, below the panel's name, what bars and line are. A line that is out of sight is said to be.
func (s *svg) legend(c Chart, p Panel, y int) {
	const third = left + 530
	second := left + 220
	square := func(x int, colour, text string) {
		s.add(`<rect x="%d" y="%d" width="11" height="11" fill="%s"/>`, x, y-10, colour)
		s.add(`<text x="%d" y="%d">%s</text>`, x+18, y, escape(text))
	}
	switch {
	case len(p.Parts) > 0:
		for i, part := range p.Parts {
			square(left+70*i, partColour(i), fit(part, 6))
		}
		second = left + max(220, 70*len(p.Parts)+20)
	case p.Unit != "": // what bars are is said above, and their sum may be of nothing
		second = left
	default:
		square(left, barColour, "consumed: "+short(p.total())+" in all")
	}
	switch refills := c.line(p) + ": " + short(p.Allowance); {
	case p.shown():
		s.add(`<line x1="%d" x2="%d" y1="%d" y2="%[3]d" stroke="%[4]s" stroke-width="2" stroke-dasharray="7 4"/>`,
			second, second+29, y-4, lineColour)
		s.add(`<text x="%d" y="%d">%s</text>`, second+37, y, escape(refills))
	case p.Allowance > 0:
		s.add(`<text x="%d" y="%d" fill="%s">%s, far above this panel</text>`, second, y, faint, escape(refills))
	}
	if p.running() {
		square(third, pale, c.Per+" that is still running")
	}
}

// article puts a or an before a span's name.
func article(span string) string {
	if strings.HasPrefix(span, "h") {
		return "an " + span
	}
	return "a " + span
}

// times adds the axis of time below a plot: dates where a day begins, hours between.
func (s *svg) times(x axis, bottom float64) {
	for i, t := range x.ticks() {
		s.add(`<line x1="%.1f" x2="%.1[1]f" y1="%.1f" y2="%.1f" stroke="%s"/>`, x.tick(t), bottom, bottom+5, edge)
		text, colour := t.Format("15:04"), faint
		if x.elapsed {
			text = elapsed(t)
		} else if midnight := t.Equal(t.Truncate(24 * time.Hour)); midnight || i == 0 {
			colour = ink
			if text = t.Format("2 Jan 2006"); !midnight {
				text = t.Format("2 Jan, 15:04")
			}
		}
		s.add(`<text x="%.1f" y="%.1f" text-anchor="middle" fill="%s">%s</text>`, x.tick(t), bottom+19, colour,
			text)
	}
	s.add(`<text x="%d" y="%.1f" text-anchor="end" font-size="11" fill="%s">%s</text>`, right, bottom+35, faint,
		x.title())
}
