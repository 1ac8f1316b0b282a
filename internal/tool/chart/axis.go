package chart

import (
	"fmt"
	"math"
	"strconv"
	"time"
)

// axis is the time that the panels show.
type axis struct {
	from, to time.Time
	span     time.Duration
	elapsed  bool
}

// at returns where t is.
func (x axis) at(t time.Time) float64 {
	return left + float64(t.Sub(x.from))/float64(x.to.Sub(x.from))*(right-left)
}

// tick returns where t's label is: below the middle of the bar of a day, and where the bar of an hour begins.
func (x axis) tick(t time.Time) float64 {
	if x.span >= 24*time.Hour {
		return x.at(t.Add(x.span / 2))
	}
	return x.at(t)
}

// most is how many labels fit below a panel.
const most = 9

// ticks returns the instants that get a label: those of the finest step of which not too many are there.
func (x axis) ticks() (ticks []time.Time) {
	const day = 24 * time.Hour
	step := 512 * day
	for _, s := range []time.Duration{
		time.Second, 2 * time.Second, 5 * time.Second, 10 * time.Second, 20 * time.Second, 30 * time.Second,
		time.Minute, 2 * time.Minute, 5 * time.Minute, 10 * time.Minute, 15 * time.Minute, 30 * time.Minute,
		time.Hour, 2 * time.Hour, 3 * time.Hour, 6 * time.Hour, 12 * time.Hour,
		day, 2 * day, 4 * day, 7 * day, 14 * day, 28 * day, 64 * day, 128 * day,
	} {
		if s >= x.span && x.to.Sub(x.from) <= most*s {
			step = s
			break
		}
	}
	first := x.from
	if step <= day { // so that hours are whole parts of their day
		if first = x.from.Truncate(step); first.Before(x.from) {
			first = first.Add(step)
		}
	}
	// hours have labels at both ends
	for t := first; t.Before(x.to) || t.Equal(x.to) && x.span < day; t = t.Add(step) {
		ticks = append(ticks, t)
	}
	return ticks
}

// short writes a number of tokens for an axis: 12k, 1.5M; below a thousand as it is.
func short(tokens float64) string {
	for _, unit := range []struct {
		size float64
		name string
	}{{1e12, "T"}, {1e9, "G"}, {1e6, "M"}, {1e3, "k"}} {
		if math.Abs(tokens) >= unit.size*0.999995 { // what is rounded up to it, too
			return brief(tokens/unit.size) + unit.name
		}
	}
	return brief(tokens)
}

// brief writes x with at most two decimals, or four where it is below one: a millitoken is 0.001.
func brief(x float64) string {
	parts := 100.0
	if math.Abs(x) < 1 {
		parts = 10_000
	}
	return strconv.FormatFloat(math.Round(x*parts)/parts, 'f', -1, 64)
}

// gap says how many windows lie between two that follow one another.
func (c Chart) gap(before, after time.Time) string {
	switch n := int(after.Sub(before)/c.Span) - 1; n {
	case 0:
		return ""
	case 1:
		return "1 " + c.Per + " without calls"
	default:
		return fmt.Sprintf("%d %ss without calls", n, c.Per)
	}
}

// title is what the axis says it is.
func (x axis) title() string {
	if x.elapsed {
		return "time"
	}
	return "time (UTC)"
}
