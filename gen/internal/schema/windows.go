package schema

import (
	"slices"
	"strings"
	"time"

	"github.com/sluice-go/sluice/gen/internal/goname"
	"github.com/sluice-go/sluice/gen/internal/hint"
	"github.com/sluice-go/sluice/gen/internal/rules"
	"github.com/sluice-go/sluice/gen/internal/window"
)

// lengths are the values of a limit's window that are durations.
func lengths() span { return span{time.Minute, maxPeriod, time.Millisecond, "milliseconds"} }

// inFlightPeriod is the Period of a limit that is in flight. Windows are longer.
const inFlightPeriod = time.Millisecond

// crashRelease is the on_crash that gives back what a dead process had reserved.
const crashRelease = "release"

// crashes are the values of on_crash. The first is the default.
func crashes() []string { return []string{"charge", crashRelease} }

// windowReader reads when tokens of a limit come back.
type windowReader struct {
	*reader
	f    fields // of the limit
	what string // for messages: limit "rpm" of resource "gpt-4"
}

// meant reports whether f has a misspelt key, or a merge key, that may be this one.
func (r windowReader) meant(key string) bool { return r.f.merged || slices.Contains(r.f.meant, key) }

// howLong reads when tokens of l come back: evenly by every, all at once by window, or as calls end by
// in_flight. A limit has one of them.
func (r windowReader) howLong(l limit) limit {
	every, refills := r.f.get("every")
	e, windowed := r.f.get("window")
	inFlight, known := r.inFlight()
	var keys []string
	for _, k := range []struct {
		name string
		is   bool
	}{{"every", refills}, {"window", windowed}, {"in_flight", inFlight}} {
		if k.is {
			keys = append(keys, k.name)
		}
	}
	switch {
	case len(keys) > 1:
		last := len(keys) - 1
		r.add(r.pos(r.key(keys[last]).key), rules.HowLong, "%s has %s and %s: tokens come back evenly by every, "+
			"all at once when a window ends, or as calls end by in_flight, so keep one of them", r.what,
			strings.Join(keys[:last], ", "), keys[last])
		if refills {
			l.every = r.duration(every, "every", periods())
		}
		return l
	case windowed:
		l.windowed = true
		if l.window = r.window(e); l.window != nil {
			l.every = period{d: l.window.Length, ok: true, own: true, pos: r.pos(e.value)}
		}
		r.notEvenly(l, "refill", "burst", "refills")
		l.release = r.onCrash()
		return l
	case inFlight:
		l.inFlight = true
		l.every = period{d: inFlightPeriod, ok: true, pos: l.pos}
		r.notEvenly(l, "refill", "burst", "refills")
		r.only("window", "a limit with in_flight has no windows", "starts", "zone")
		r.noCrash("calls in flight give their tokens back when their process dies, with or without it")
		return l
	case refills:
		l.every = r.duration(every, "every", periods())
	case !known || r.meant("every") || r.meant("window") || r.meant("in_flight"):
	case l.money:
		r.add(l.pos, rules.HowLong, "window is missing: write the window with whose end all of the budget of %s "+
			"comes back, such as window: month", r.what)
		return l
	default:
		r.add(l.pos, rules.HowLong, "every, window and in_flight are missing: write the time in which %s refills, "+
			"such as every: 1m, the window with whose end all of it comes back, such as window: day, or in_flight: "+
			"true if it is of calls at the same time", r.what)
		return l
	}
	if !r.meant("window") {
		r.only("window", "a limit with every has no windows", "starts", "zone")
		r.noCrash("what refills recovers by itself")
	}
	return l
}

// key returns the entry of a key that f has.
func (r windowReader) key(name string) entry {
	e, _ := r.f.get(name)
	return e
}

// inFlight reads whether a limit is of calls in flight. known is false if the value is a mistake.
func (r windowReader) inFlight() (on, known bool) {
	e, ok := r.f.get("in_flight")
	if !ok {
		return false, true
	}
	return r.boolean(e, "in_flight of "+r.what)
}

// onCrash reads the fate of what a dead process had reserved in a window: release reports that it comes back.
func (r windowReader) onCrash() (release bool) {
	e, ok := r.f.get("on_crash")
	if !ok {
		return false
	}
	text, ok := r.scalar(e.value, "on_crash of "+r.what, hint.OneOf(crashes()))
	if ok && !slices.Contains(crashes(), text) {
		r.add(r.pos(e.value), rules.UnknownValue, "there is no on_crash %s: "+
			"%s", hint.Quote(text), r.Cure(text, crashes()))
	}
	return text == crashRelease
}

// noCrash reports on_crash in a limit without a window.
func (r windowReader) noCrash(because string) {
	if e, ok := r.f.get("on_crash"); ok {
		r.add(r.pos(e.key), rules.CrashRefills, "on_crash of %s goes with window alone: %s, so remove on_crash",
			r.what, because)
	}
}

// notEvenly reports keys of a limit that has windows, or is in flight, and does not refill.
func (r windowReader) notEvenly(l limit, keys ...string) {
	because := "a window brings all of capacity back when it ends"
	switch {
	case l.inFlight:
		because = "tokens of a limit with in_flight come back when calls end"
	case l.prepaid():
		because = "with window: never, only a Grant adds to the balance"
	}
	r.only("every", because, keys...)
}

// only reports keys that stand without what they belong to.
func (r windowReader) only(with, because string, keys ...string) {
	for _, key := range keys {
		if e, ok := r.f.get(key); ok {
			r.add(r.pos(e.key), rules.WindowKeys, "%s of %s goes with %s alone: %s, so remove %s", key, r.what, with,
				because, key)
		}
	}
}

// window reads the windows of a limit, nil if they have a mistake.
func (r windowReader) window(e entry) *window.Window {
	text, ok := r.scalar(e.value, "window", "day, week, month, quarter, year, never or a duration, such as 5h")
	switch {
	case !ok:
		return nil
	case text == string(window.Never):
		r.only("a window that ends", "credits stay until they are used", "starts", "zone")
		w := window.Of(text)
		return &w
	case !window.IsUnit(text):
		return r.firstUse(e, text)
	}
	w := window.Of(text)
	if s, given := r.f.get("starts"); given {
		ok = r.starts(s, &w)
	}
	if z, given := r.f.get("zone"); given {
		ok = r.zone(z, &w) && ok
	}
	if !ok {
		return nil
	}
	return &w
}

// firstUse reads a window that is a duration, whose text it is given: it starts with the first use.
func (r windowReader) firstUse(e entry, text string) *window.Window {
	if text == "" || strings.Trim(text[:1], goname.Digits+".+-") != "" {
		units := append(window.Units(), string(window.Never))
		how := "it can be " + strings.Join(units, ", ") + ", or a duration with starts: first_use, such as 5h"
		if k, ok := r.Nearest(text, units); ok {
			how = "did you mean " + hint.Quote(k) + "?"
		}
		r.add(r.pos(e.value), rules.UnknownValue, "there is no window %s: %s", hint.Quote(text), how)
		return nil
	}
	p := r.duration(e, "window", lengths())
	starts, given := r.f.get("starts")
	const cure = "write starts: first_use, or one of the calendar's windows: "
	switch {
	case !given && !r.meant("starts"):
		r.add(p.pos, rules.Starts, "window %s of %s has no place in the calendar: "+
			"%s%s", hint.Short(text), r.what, cure,
			strings.Join(window.Units(), ", "))
		return nil
	case given:
		first, ok := r.scalar(starts.value, "starts", "first_use")
		if ok && first != string(window.FirstUse) {
			r.add(r.pos(starts.value), rules.Starts, "starts %s does not fit window %s: a duration starts with the "+
				"first use, %s%s", hint.Quote(first), hint.Short(text), cure, strings.Join(window.Units(), ", "))
		}
		p.ok = p.ok && ok && first == string(window.FirstUse)
	}
	r.only("a window of the calendar", "one from the first use is as long in every zone", "zone")
	if !p.ok {
		return nil
	}
	return &window.Window{Unit: window.FirstUse, Length: p.d}
}

// starts reads the start of a window of the calendar. It reads the text: to some readers of YAML, 04:00 is
// 240.
func (r windowReader) starts(e entry, w *window.Window) bool {
	text, ok := r.scalar(e.value, "starts", "a start, such as entity")
	if !ok {
		return false
	}
	if text == string(window.FirstUse) {
		r.add(r.pos(e.value), rules.Starts, "starts: first_use does not fit window: %s, which starts by the "+
			"calendar: write a duration, such as window: 5h, or another start", w.Unit)
		return false
	}
	why := w.Start(text)
	if why != "" {
		r.add(r.pos(e.value), rules.Starts, "starts: %s %s", hint.Quote(text), why)
	}
	return why == ""
}

// zone reads the zone of a window of the calendar.
func (r windowReader) zone(e entry, w *window.Window) bool {
	text, ok := r.text(e.value, "zone", "the name of a zone, such as Europe/Berlin")
	if !ok {
		return false
	}
	w.OwnZone = text == window.Entity
	switch {
	case w.OwnZone:
	case window.KnownZone(text):
		w.Zone = text
	default:
		how := "write a name of the IANA's, such as Europe/Berlin or UTC, or entity"
		if k, ok := r.Nearest(text, slices.Concat(window.Zones(), []string{window.Entity})); ok {
			how = "did you mean " + k + "?"
		}
		r.add(r.pos(e.value), rules.UnknownZone, "there is no zone %s: %s", hint.Quote(text), how)
		return false
	}
	return true
}
