package chart

import (
	"cmp"
	"fmt"
	"io"
	"math"
	"strings"
	"unicode/utf8"
)

// cells is how wide the longest bar is in a terminal.
const cells = 40

// Text writes c as bars for a terminal, a line per window.
func (c Chart) Text(w io.Writer) error {
	var s strings.Builder
	s.WriteString(c.Title + "\n")
	for _, p := range c.Panels {
		c.bars(&s, p)
	}
	_, err := io.WriteString(w, s.String())
	return err
}

// bars adds a panel. Between windows that do not follow one another it says what lies there.
func (c Chart) bars(s *strings.Builder, p Panel) {
	fmt.Fprintf(s, "\n%s, %s", p.Name, c.unit(p))
	switch {
	case p.shown():
		fmt.Fprintf(s, "; | is %s: %s", cmp.Or(p.Line, "what "+c.line(p)), short(p.Allowance))
	case p.Allowance > 0 && p.Line != "":
		fmt.Fprintf(s, "; far more is %s: %s", p.Line, short(p.Allowance))
	case p.Allowance > 0:
		fmt.Fprintf(s, "; far more %s: %s", c.line(p), short(p.Allowance))
	}
	for i, part := range p.Parts {
		fmt.Fprintf(s, "%s %c is %s", separator(i), glyph(part), part)
	}
	s.WriteByte('\n')
	widest, longest := 0, 0
	for _, b := range p.Bars {
		widest, longest = max(widest, utf8.RuneCountInString(b.Text)), max(longest, utf8.RuneCountInString(b.Name))
	}
	for i, b := range p.Bars {
		name := fmt.Sprintf("%*s", longest, b.Name)
		if b.Name == "" {
			name = c.start(b.Start)
		}
		if i > 0 && b.Name == "" {
			if gap := c.gap(p.Bars[i-1].Start, b.Start); gap != "" {
				fmt.Fprintf(s, "  ... %s\n", gap)
			}
		}
		line := fmt.Sprintf("  %s  %*s  %s", name, widest, b.Text, p.bar(b))
		if b.Running {
			line = strings.TrimRight(line, " ") + "  still running"
		}
		s.WriteString(strings.TrimRight(line, " ") + "\n")
	}
}

// separator is what stands before the i-th part in the legend.
func separator(i int) string {
	if i == 0 {
		return ";"
	}
	return ","
}

// glyph is what a part is drawn with.
func glyph(part string) rune {
	first, _ := utf8.DecodeRuneInString(part)
	return first
}

// bar draws a bar, with the allowance's mark where that is in sight.
func (p Panel) bar(b Bar) string {
	line := p.piece(b.Tokens)
	if len(p.Parts) > 0 {
		line = p.stack(b.Parts)
	}
	if p.shown() {
		mark := int(math.Round(p.Allowance / p.top() * cells))
		for len(line) <= mark {
			line = append(line, ' ')
		}
		line[mark] = '|'
	}
	return string(line)
}

// piece draws a bar of one piece, to an eighth of a cell.
func (p Panel) piece(tokens float64) []rune {
	eighths := int(math.Round(max(tokens, 0) / p.top() * cells * 8))
	if eighths == 0 && tokens > 0 {
		eighths = 1 // little is not nothing
	}
	line := []rune(strings.Repeat("█", eighths/8))
	if rest := eighths % 8; rest > 0 {
		line = append(line, '█'+rune(8-rest)) // the blocks get narrower from the full one on
	}
	return line
}

// stack draws the parts of a bar one after the other, each with its letter.
func (p Panel) stack(parts []float64) (line []rune) {
	sum := 0.0
	for i, tokens := range parts {
		sum += tokens
		for len(line) < int(math.Round(sum/p.top()*cells)) {
			line = append(line, glyph(p.Parts[i]))
		}
	}
	return line
}
