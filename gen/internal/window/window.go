// Package window reads the calendar of a windowed limit: the keys window, starts and zone of limits.yaml.
//
//	window: month, starts: 15, zone: Europe/Berlin  ->  Window{Unit: Month, Date: 15, Zone: "Europe/Berlin"}
//
// Its functions take the text of a value and return what is wrong with it, in words that follow the text.
package window

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/sluice-go/sluice/gen/internal/duration"
)

// Window says when the whole allowance of a limit comes back. It is comparable.
type Window struct {
	Unit    Unit
	Length  time.Duration // of each window for FirstUse, else the nominal length
	At      time.Duration // for Day: after midnight, whole minutes
	Weekday time.Weekday  // for Week
	Date    int           // for Month: 1 to 31
	Zone    string        // an IANA name; "" for FirstUse and Never

	// OwnStarts and OwnZone say that an entity has its own, where one is stored: the keys are entity.
	OwnStarts, OwnZone bool
}

// Unit is the value of the key window, or FirstUse where that is a duration. A window of Never does not end.
type Unit string

// The units.
const (
	Day      Unit = "day"
	Week     Unit = "week"
	Month    Unit = "month"
	Quarter  Unit = "quarter"
	Year     Unit = "year"
	FirstUse Unit = "first_use"
	Never    Unit = "never"
)

// Units returns the values of window that are no durations, shortest first, but for Never.
func Units() []string {
	return []string{string(Day), string(Week), string(Month), string(Quarter), string(Year)}
}

// Entity is the value of starts and zone for an entity's own.
const Entity = "entity"

// The defaults of keys.
const (
	UTC         = "UTC"
	defaultDate = 1
)

// nominal is the length that buckets store for a unit. Real windows differ by summer time and by month.
func (u Unit) nominal() time.Duration {
	switch u {
	case Day:
		return duration.Day
	case Week:
		return 7 * duration.Day
	case Month:
		return 30 * duration.Day
	case Quarter:
		return 91 * duration.Day
	case Never: // as package bucket of the runtime has it
		return 100 * 365 * duration.Day
	}
	return 365 * duration.Day
}

// Of returns the window of a unit of Units, with the defaults of starts and zone, or of Never.
func Of(unit string) Window {
	w := Window{Unit: Unit(unit), Length: Unit(unit).nominal(), Zone: UTC}
	switch w.Unit {
	case Never:
		w.Zone = ""
	case Week:
		w.Weekday = time.Monday
	case Month:
		w.Date = defaultDate
	}
	return w
}

// Start sets the value of starts, which is not FirstUse. why is what w can have instead, "" if it takes
// text.
func (w *Window) Start(text string) (why string) {
	w.OwnStarts = text == Entity
	if w.OwnStarts {
		return ""
	}
	switch w.Unit {
	case Day:
		return w.startAt(text)
	case Week:
		return w.startOn(text)
	case Month:
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 || n > 31 || strconv.Itoa(n) != text {
			return "is no day of a month: write 1 to 31, or entity; in a shorter month, its last day stands for a " +
				"day that it does not have"
		}
		w.Date = n
		return ""
	}
	return fmt.Sprintf("does not fit window: %s, which starts with the calendar's: leave it out, or write "+
		"entity", w.Unit)
}

// startAt sets a time of the day.
func (w *Window) startAt(text string) (why string) {
	at, err := time.Parse("15:04", text)
	if err != nil || len(text) != len("15:04") {
		return `is no time of a day: write hours and minutes in quotes, "00:00" to "23:59", or entity`
	}
	w.At = time.Duration(at.Hour())*time.Hour + time.Duration(at.Minute())*time.Minute
	return ""
}

// startOn sets a day of the week.
func (w *Window) startOn(text string) (why string) {
	for d := time.Sunday; d <= time.Saturday; d++ {
		if strings.ToLower(d.String()) == text {
			w.Weekday = d
			return ""
		}
	}
	return "is no day of a week: write one in small letters, such as monday, or entity"
}

// String returns w as limits.yaml has it, with every default.
func (w Window) String() string {
	switch w.Unit {
	case FirstUse:
		return "window: " + duration.Written(w.Length) + ", starts: first_use"
	case Never:
		return "window: " + string(w.Unit)
	}
	return "window: " + string(w.Unit) + w.starts() + ", zone: " + w.ZoneKey()
}

// ZoneKey returns the value of the key zone, "" for FirstUse and Never.
func (w Window) ZoneKey() string {
	if w.OwnZone {
		return Entity
	}
	return w.Zone
}

// starts returns the key starts of w, "" for a unit that has no other value than its default.
func (w Window) starts() string {
	switch {
	case w.OwnStarts:
		return ", starts: " + Entity
	case w.Unit == Day:
		return fmt.Sprintf(", starts: %q", w.Clock())
	case w.Unit == Week:
		return ", starts: " + strings.ToLower(w.Weekday.String())
	case w.Unit == Month:
		return fmt.Sprintf(", starts: %d", w.Date)
	}
	return ""
}

// Clock returns At as a clock shows it.
func (w Window) Clock() string {
	return fmt.Sprintf("%02d:%02d", int(w.At/time.Hour), int(w.At%time.Hour/time.Minute))
}

// SameTimes reports whether windows of w and o start at the same times, each in its zone.
func (w Window) SameTimes(o Window) bool {
	w.Zone, w.OwnZone = o.Zone, o.OwnZone
	return w == o
}

// SameZone reports whether windows of w and o have the same zone.
func (w Window) SameZone(o Window) bool { return w.Zone == o.Zone && w.OwnZone == o.OwnZone }

// NeedsZones reports whether a process needs the rules of zones for w.
func (w Window) NeedsZones() bool { return w.OwnZone || w.Zone != UTC && w.Zone != "" }

// IsUnit reports whether text is a unit, not a duration.
func IsUnit(text string) bool { return slices.Contains(Units(), text) }
