package schema

import (
	"time"

	"github.com/sluice-go/sluice/gen/internal/duration"
	"github.com/sluice-go/sluice/gen/internal/hint"
	"github.com/sluice-go/sluice/gen/internal/number"
	"github.com/sluice-go/sluice/gen/internal/rules"
)

// The bounds of docs/design.md, "Arithmetic": with them int64 holds every sum of millitokens and
// milliseconds.
const (
	maxTokens   = 1_000_000_000_000 // 10^15 millitokens
	maxRevision = 90_000
	maxPerMilli = 10_000 // tokens refilled: 10^7 per second
	maxFillDays = 3650

	minPeriod = time.Millisecond
	maxPeriod = duration.MaxDays * duration.Day

	day = duration.Day
)

// count is a whole number of limits.yaml.
type count struct {
	n   int64
	ok  bool // it was read, and is in bounds
	own bool // this mapping has it, or a number that it follows from, at pos
	pos Pos

	unlimited bool // it is written as Unlimited
}

// inherited returns c for a mapping that does not restate it.
func (c count) inherited() count {
	c.own = false
	return c
}

// period is the time in which a limit refills.
type period struct {
	d   time.Duration
	ok  bool
	own bool
	pos Pos
}

// inherited returns p for a mapping that does not restate it.
func (p period) inherited() period {
	p.own = false
	return p
}

// count reads the number of e, 1 to most.
func (r *reader) count(e entry, what string, most int64) count { return r.countFrom(e, what, 1, most) }

// countFrom reads the number of e, least to most. least is 0 or 1.
func (r *reader) countFrom(e entry, what string, least, most int64) count {
	c := count{own: true, pos: r.pos(e.value)}
	text, ok := r.scalar(e.value, what, "digits, such as "+example(e.name))
	if !ok {
		return c
	}
	n, why := number.Parse(text, least, most)
	switch {
	case why != "":
		r.add(c.pos, rules.BadNumber, "%s: %s %s", what, hint.Quote(text), why)
	case n == 0 && e.name == "per_call":
		r.add(c.pos, rules.ZeroNumber, "%s is 0: write at least 1, or leave it out: then a cost of 0 takes "+
			"nothing, or a slot of a limit with in_flight", what)
	case n < least:
		r.add(c.pos, rules.ZeroNumber, "%s is 0: it must be at least 1", what)
	case n > most:
		r.add(c.pos, rules.NumberRange, "%s is %s: it can be at most %s", what, hint.Short(text),
			number.Grouped(most))
	default:
		c.n, c.ok = n, true
	}
	return c
}

// example returns a number for the key of that name.
func example(name string) string {
	switch name {
	case "revision", "per_call":
		return "1"
	case "drift":
		return "15"
	case "horizon":
		return "2"
	}
	return "100"
}

// span is the values of a duration: from least to most, in whole steps.
type span struct {
	least, most, step time.Duration
	steps             string // the steps in messages
}

// periods are the values of every.
func periods() span {
	return span{minPeriod, maxPeriod, time.Millisecond, "milliseconds"}
}

// outside returns the reason why d is not in s, in words that follow d, or "" if it is.
func (s span) outside(d time.Duration) string {
	switch {
	case d < s.least:
		return "must be at least " + duration.Written(s.least)
	case d > s.most:
		return "can be at most " + duration.Written(s.most)
	case d%s.step != 0:
		return "must be whole " + s.steps
	}
	return ""
}

// duration reads the duration of e.
func (r *reader) duration(e entry, what string, in span) period {
	p := period{own: true, pos: r.pos(e.value)}
	text, ok := r.scalar(e.value, what, "a duration, such as 1m")
	if !ok {
		return p
	}
	d, why := duration.Parse(text)
	switch {
	case why != "":
		r.add(p.pos, rules.BadPeriod, "%s: %s %s", what, hint.Quote(text), duration.Cure(text, why,
			func(d time.Duration) bool { return in.outside(d) == "" }))
	case in.outside(d) != "":
		r.add(p.pos, rules.PeriodRange, "%s is %s: it %s", what, hint.Short(text), in.outside(d))
	default:
		p.d, p.ok = d, true
	}
	return p
}
