// Package chart draws what was consumed over time, or otherwise counted, as SVG for reports and as bars for
// terminals.
//
//	a Chart: one Panel per limit -> one Bar per window -> its parts, where it has any
package chart

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"
)

// Chart is what is drawn: panels below one another, on one axis of time.
type Chart struct {
	Title   string
	Span    time.Duration // how long each bar's window is
	Per     string        // that span's name: hour, day
	Elapsed bool          // times are told since Zero: it was no day of anybody's
	Panels  []Panel
}

// Zero is where time begins in a Chart whose times are Elapsed.
func Zero() time.Time { return time.Unix(0, 0).UTC() }

// Panel is one limit, or something else that is counted. It has at least one bar.
type Panel struct {
	Name      string
	Unit      string   // of the bars; "" is tokens consumed in a window
	Parts     []string // what bars are stacked of, beginning with different letters; nil is bars of one piece
	Allowance float64  // tokens in each window; 0 is none
	Line      string   // what Allowance is; "" is what refills in a window
	Bars      []Bar    // by start
}

// Bar is one window.
type Bar struct {
	Start   time.Time // UTC
	Name    string    // of a bar that is no window of time, in terminals, in place of Start
	Tokens  float64
	Parts   []float64 // by Panel.Parts, none below 0: Tokens is their sum
	Text    string    // Tokens, as people read it
	Running bool      // it is not over yet: that it is small says nothing
}

// shown reports whether the allowance is drawn: bars that are tiny beside it would show nothing.
func (p Panel) shown() bool { return p.Allowance > 0 && p.Allowance <= 10*p.peak() }

// peak returns the largest bar, at least 0.
func (p Panel) peak() (peak float64) {
	for _, b := range p.Bars {
		peak = max(peak, b.Tokens)
	}
	return peak
}

// total returns what all bars come to.
func (p Panel) total() (total float64) {
	for _, b := range p.Bars {
		total += b.Tokens
	}
	return total
}

// lowest returns the smallest bar, at most 0.
func (p Panel) lowest() (lowest float64) {
	for _, b := range p.Bars {
		lowest = min(lowest, b.Tokens)
	}
	return lowest
}

// top returns the largest of what is drawn, above 0.
func (p Panel) top() float64 {
	top := p.peak()
	if p.shown() {
		top = max(top, p.Allowance)
	}
	if top == 0 {
		return 1
	}
	return top
}

// running reports whether a window of p is not over yet.
func (p Panel) running() bool {
	return slices.ContainsFunc(p.Bars, func(b Bar) bool { return b.Running })
}

// extent returns when the first window of all panels begins and when the last ends.
func (c Chart) extent() (from, to time.Time) {
	for _, p := range c.Panels {
		for _, b := range p.Bars {
			if from.IsZero() || b.Start.Before(from) {
				from = b.Start
			}
			if end := b.Start.Add(c.Span); end.After(to) {
				to = end
			}
		}
	}
	return from, to
}

// start writes a window's start.
func (c Chart) start(t time.Time) string {
	switch {
	case c.Elapsed:
		return elapsed(t)
	case c.Span%(24*time.Hour) == 0:
		return t.Format("2006-01-02")
	default:
		return t.Format("2006-01-02 15:04")
	}
}

// elapsed writes how long after Zero t is: 90m0s is 1:30:00, 90s is 1:30.
func elapsed(t time.Time) string {
	all := int64(t.Sub(Zero()) / time.Second)
	if all < 3600 {
		return fmt.Sprintf("%d:%02d", all/60, all%60)
	}
	return fmt.Sprintf("%d:%02d:%02d", all/3600, all/60%60, all%60)
}

// unit is what p's bars are of.
func (c Chart) unit(p Panel) string { return cmp.Or(p.Unit, "tokens per "+c.Per) }

// line is what p's allowance is.
func (c Chart) line(p Panel) string { return cmp.Or(p.Line, "refills in "+article(c.Per)) }

// round returns the smallest of 1, 2, 2.5 and 5 times a power of ten that is at least x.
func round(x float64) float64 {
	unit := math.Pow(10, math.Floor(math.Log10(x)))
	for _, factor := range []float64{1, 2, 2.5, 5} {
		if step := factor * unit; step >= x {
			return step
		}
	}
	return 10 * unit
}
