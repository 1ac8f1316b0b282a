package chart

import (
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
	fmt.Fprintf(s, "\n%s, tokens per %s", p.Name, c.Per)
	switch {
	case p.shown():
		fmt.Fprintf(s, "; | is what refills in %s: %s", article(c.Per), short(p.Allowance))
	case p.Allowance > 0:
		fmt.Fprintf(s, "; far more refills in %s: %s", article(c.Per), short(p.Allowance))
	}
	s.WriteByte('\n')
	widest := 0
	for _, b := range p.Bars {
		widest = max(widest, utf8.RuneCountInString(b.Text))
	}
	for i, b := range p.Bars {
		if i > 0 {
			if gap := c.gap(p.Bars[i-1].Start, b.Start); gap != "" {
				fmt.Fprintf(s, "  ... %s\n", gap)
			}
		}
		line := fmt.Sprintf("  %s  %*s  %s", b.Start.Format(c.layout()), widest, b.Text, p.bar(b.Tokens))
		if b.Running {
			line = strings.TrimRight(line, " ") + "  still running"
		}
		s.WriteString(strings.TrimRight(line, " ") + "\n")
	}
}

// bar draws a bar, to an eighth of a cell, with the allowance's mark where that is in sight.
func (p Panel) bar(tokens float64) string {
	eighths := int(math.Round(max(tokens, 0) / p.top() * cells * 8))
	if eighths == 0 && tokens > 0 {
		eighths = 1 // little is not nothing
	}
	line := []rune(strings.Repeat("█", eighths/8))
	if rest := eighths % 8; rest > 0 {
		line = append(line, '█'+rune(8-rest)) // the blocks get narrower from the full one on
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
