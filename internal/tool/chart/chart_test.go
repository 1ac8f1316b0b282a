package chart

import (
	"encoding/xml"
	"errors"
	"io"
	"strings"
	"testing"
	"time"
)

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// TestSVGIsWellFormed: whatever names and numbers are, the picture is XML, and what was said in names stays
// text.
func TestSVGIsWellFormed(t *testing.T) {
	const name = "user-<script>&\"\x00"
	for _, bars := range [][]float64{{0}, {-5}, {0.001}, {1e12, 3}, {-1, 1}} {
		panel := Panel{Name: name, Allowance: 5}
		for i, tokens := range bars {
			panel.Bars = append(panel.Bars, Bar{Start: noon.Add(time.Duration(i) * time.Hour), Tokens: tokens,
				Text: name})
		}
		var s strings.Builder
		if err := (Chart{Title: name, Span: time.Hour, Per: "hour", Panels: []Panel{panel}}).SVG(&s); err != nil {
			t.Fatal(err)
		}
		if wrong := malformed(s.String()); wrong != "" {
			t.Errorf("%v: %s\n%s", bars, wrong, &s)
		}
	}
	for _, bad := range []string{"<svg><script/></svg>", "<svg>", `<svg x="NaN"/>`, `<svg x="+Inf"/>`,
		`<svg>%!f(BADINDEX)</svg>`} {
		if malformed(bad) == "" {
			t.Errorf("nobody noticed what is wrong with %s", bad)
		}
	}
}

// malformed says what is wrong with a picture.
func malformed(svg string) string {
	for _, bad := range []string{"NaN", "Inf", "%!"} {
		if strings.Contains(svg, bad) {
			return "has " + bad
		}
	}
	d := xml.NewDecoder(strings.NewReader(svg))
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			return ""
		}
		if err != nil {
			return err.Error()
		}
		if e, ok := token.(xml.StartElement); ok && e.Name.Local == "script" {
			return "has a script"
		}
	}
}

// TestTicks: labels are there, within the axis, and not too many to read.
func TestTicks(t *testing.T) {
	for _, test := range []struct {
		span    time.Duration
		windows int
		want    int
	}{
		{time.Hour, 1, 2},
		{time.Hour, 9, 10},
		{time.Hour, 12, 7},
		{time.Hour, 24, 9},
		{time.Hour, 7 * 24, 7},
		{time.Hour, 35 * 24, 9},
		{24 * time.Hour, 1, 1},
		{24 * time.Hour, 7, 7},
		{24 * time.Hour, 30, 8},
		{24 * time.Hour, 400, 7},
	} {
		from := noon.Truncate(test.span)
		x := axis{from: from, to: from.Add(time.Duration(test.windows) * test.span), span: test.span}
		ticks := x.ticks()
		if len(ticks) != test.want {
			t.Errorf("%d windows of %v: %d labels %v, want %d", test.windows, test.span, len(ticks), ticks, test.want)
		}
		for _, tick := range ticks {
			if at := x.tick(tick); at < left || at > right {
				t.Errorf("%d windows of %v: %v is at %.1f", test.windows, test.span, tick, at)
			}
		}
	}
}

// TestLongNames: a name of any length keeps its ends and its place, and is whole where there is room for it.
func TestLongNames(t *testing.T) {
	for _, test := range []struct {
		text string
		most int
		want string
	}{
		{"user-1", 6, "user-1"},
		{"user-12", 6, "us…-12"},
		{"user-0123456789", 8, "use…6789"},
		{"user-用户", 9, "user-用户"},
		{"user-用户", 8, "us…-用户"},
		{"用用用", 2, "…"},
	} {
		if got := fit(test.text, test.most); got != test.want {
			t.Errorf("fit(%q, %d) = %q, want %q", test.text, test.most, got, test.want)
		}
	}
	long := "user-" + strings.Repeat("x", 251)
	var s strings.Builder
	if err := (Chart{Title: long, Span: time.Hour, Per: "hour",
		Panels: []Panel{{Name: long, Bars: []Bar{{Start: noon}}}}}).SVG(&s); err != nil {
		t.Fatal(err)
	}
	// the other is aria-label
	if !strings.Contains(s.String(), "<title>"+long+"</title>") || strings.Count(s.String(), long) != 2 {
		t.Errorf("the name is not where it should be\n%s", &s)
	}
}

// TestRunning: a window that may still grow is told apart, in the legend too, and only where there is one.
func TestRunning(t *testing.T) {
	for _, running := range []bool{false, true} {
		c := Chart{Title: "t", Span: time.Hour, Per: "hour",
			Panels: []Panel{{Name: "rpm", Bars: []Bar{{Start: noon, Tokens: 1, Text: "1", Running: running}}}}}
		var drawn, plain strings.Builder
		if err := errors.Join(c.SVG(&drawn), c.Text(&plain)); err != nil {
			t.Fatal(err)
		}
		for _, said := range []string{`fill="url(#pale)"><title>2026-03-01 12:00: 1, still running</title>`,
			"hour that is still running"} {
			if strings.Contains(drawn.String(), said) != running {
				t.Errorf("running %v: %q\n%s", running, said, &drawn)
			}
		}
		if strings.Contains(plain.String(), "█  still running\n") != running {
			t.Errorf("running %v:\n%s", running, &plain)
		}
	}
}

func TestBar(t *testing.T) {
	for _, test := range []struct {
		peak, allowance, tokens float64
		want                    string
	}{
		{40, 0, 40, strings.Repeat("█", 40)},
		{40, 0, 20.5, strings.Repeat("█", 20) + "▌"},
		{40, 0, 0.001, "▏"},
		{40, 0, 0, ""},
		{40, 0, -3, ""},
		{40, 20, 40, strings.Repeat("█", 20) + "|" + strings.Repeat("█", 19)},
		{40, 20, 10, strings.Repeat("█", 10) + strings.Repeat(" ", 10) + "|"},
		{4, 40, 4, strings.Repeat("█", 4) + strings.Repeat(" ", 36) + "|"},
		{4, 41, 4, strings.Repeat("█", 40)}, // out of sight
	} {
		p := Panel{Allowance: test.allowance, Bars: []Bar{{Tokens: test.peak}}}
		if got := p.bar(Bar{Tokens: test.tokens}); got != test.want {
			t.Errorf("%v of %v, allowance %v: %q, want %q", test.tokens, test.peak, test.allowance, got, test.want)
		}
	}
}

func TestShort(t *testing.T) {
	for tokens, want := range map[float64]string{
		0: "0", 999: "999", 0.25: "0.25", 1_000: "1k", 12_345: "12.35k", 1_500_000: "1.5M", -2_000: "-2k",
		0.0075: "0.0075", 3e9: "3G", 2e12: "2T", 999_999: "1M",
	} {
		if got := short(tokens); got != want {
			t.Errorf("short(%v) = %s, want %s", tokens, got, want)
		}
	}
}

func TestRound(t *testing.T) {
	for x, want := range map[float64]float64{1: 1, 1.1: 2, 2.1: 2.5, 2.6: 5, 6: 10, 75: 100, 0.3: 0.5} {
		if got := round(x); got != want {
			t.Errorf("round(%v) = %v, want %v", x, got, want)
		}
	}
}

// TestStack: parts lie on one another and are told apart, in a terminal by their letters.
func TestStack(t *testing.T) {
	p := Panel{Name: "shares", Unit: "tokens", Parts: []string{"ap", "eu", "us"}, Allowance: 40, Line: "G"}
	for _, parts := range [][]float64{{10, 0, 5}, {0.4, 0.4, 0.4}, {20, 10, 10}} {
		p.Bars = append(p.Bars, Bar{Start: Zero().Add(time.Duration(len(p.Bars)) * 10 * time.Second), Parts: parts,
			Tokens: parts[0] + parts[1] + parts[2], Text: "all"})
	}
	c := Chart{Title: "t", Span: 10 * time.Second, Per: "window", Elapsed: true, Panels: []Panel{p}}
	var drawn, plain strings.Builder
	if err := errors.Join(c.SVG(&drawn), c.Text(&plain)); err != nil {
		t.Fatal(err)
	}
	space := func(n int) string { return strings.Repeat(" ", n) }
	want := "t\n\nshares, tokens; | is G: 40; a is ap, e is eu, u is us\n" +
		"  0:00  all  " + strings.Repeat("a", 10) + strings.Repeat("u", 5) + space(25) + "|\n" +
		"  0:10  all  e" + space(39) + "|\n" + // none of them has half a cell, two together have most of one
		"  0:20  all  " + strings.Repeat("a", 20) + strings.Repeat("e", 10) + strings.Repeat("u", 10) + "|\n"
	if plain.String() != want {
		t.Errorf("got\n%s\nwant\n%s", &plain, want)
	}
	if wrong := malformed(drawn.String()); wrong != "" {
		t.Errorf("%s\n%s", wrong, &drawn)
	}
	for _, said := range []string{
		"0:30 of simulated time, by window", ">G: 40<", ">us<", `<title>0:20: 20 of all, ap</title>`,
		`y="171.5" width`, `height="75.0" fill="` + barColour,
	} {
		if !strings.Contains(drawn.String(), said) {
			t.Errorf("the picture has no %q\n%s", said, &drawn)
		}
	}
}

func TestElapsed(t *testing.T) {
	for d, want := range map[time.Duration]string{
		0: "0:00", 90 * time.Second: "1:30", 59*time.Minute +
			59*time.Second: "59:59", 90 * time.Minute: "1:30:00", 30 * time.Hour: "30:00:00",
	} {
		if got := elapsed(Zero().Add(d)); got != want {
			t.Errorf("%v is %s, want %s", d, got, want)
		}
	}
	x := axis{from: Zero(), to: Zero().Add(10 * time.Minute), span: 10 * time.Second, elapsed: true}
	if ticks := x.ticks(); len(ticks) != 6 || elapsed(ticks[1]) != "2:00" {
		t.Errorf("10 minutes have labels at %v", ticks)
	}
}
