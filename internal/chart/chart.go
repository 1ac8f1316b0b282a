// Package chart draws what was consumed over time, as SVG for reports and as bars for terminals.
//
//	a Chart: one Panel per limit -> one Bar per window
package chart

import (
	"math"
	"slices"
	"time"
)

// Chart is what is drawn: panels below one another, on one axis of time.
type Chart struct {
	Title  string
	Span   time.Duration // how long each bar's window is
	Per    string        // that span's name: hour, day
	Panels []Panel
}

// Panel is one limit. It has at least one bar.
type Panel struct {
	Name      string
	Allowance float64 // tokens in each window; 0 is none
	Bars      []Bar   // by start
}

// Bar is one window.
type Bar struct {
	Start   time.Time // UTC
	Tokens  float64
	Text    string // Tokens, as people read it
	Running bool   // it is not over yet: that it is small says nothing
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

// layout is how a window's start is written.
func (c Chart) layout() string {
	if c.Span%(24*time.Hour) == 0 {
		return "2006-01-02"
	}
	return "2006-01-02 15:04"
}

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
