package bucket

import (
	"fmt"
	"math"
	"strings"
	"time"
)

// Unit is the kind of a window: how long it is, and what its ends follow.
type Unit uint8

// The units. A window of FirstUse lasts a fixed time from the call that opens it, and that of Never does not
// end. Others follow a calendar.
const (
	FirstUse Unit = iota + 1
	Day
	Week
	Month
	Quarter
	Year
	Never
)

// units holds what differs between units: lengths in milliseconds, and how many months a window has.
var units = [...]struct {
	name          string
	nominal, half int64
	months        int64
}{
	FirstUse: {name: "first_use"},
	Day:      {name: "day", nominal: day, half: day / 2},
	Week:     {name: "week", nominal: 7 * day, half: 7 * day / 2},
	Month:    {name: "month", nominal: 30 * day, half: 14 * day, months: 1},
	Quarter:  {name: "quarter", nominal: 91 * day, half: 45 * day, months: 3},
	Year:     {name: "year", nominal: 365 * day, half: 182 * day, months: 12},
	Never:    {name: "never", nominal: neverPeriod},
}

// String returns u as the schema writes it: first_use, day, week, month, quarter, year or never.
func (u Unit) String() string {
	if u < FirstUse || u > Never {
		return fmt.Sprintf("unit %d", uint8(u))
	}
	return units[u].name
}

// Nominal returns the length that windows of u have in name, in milliseconds: 24 h, 7 d, 30 d, 91 d or 365 d,
// and 100 years for Never. It is 0 for FirstUse, where each limit has its own.
func (u Unit) Nominal() int64 {
	if u > Never {
		return 0
	}
	return units[u].nominal
}

// dated reports whether windows of u follow a calendar.
func (u Unit) dated() bool { return u >= Day && u <= Year }

// Calendar says when the windows of a limit end. It is read-only once made, and safe for concurrent use.
// Fields that its unit does not name take no part.
type Calendar struct {
	// Unit is the kind of the windows. Any other number than those of the constants counts as FirstUse.
	Unit Unit
	// Length is that of a window in milliseconds, the rp of the limit: exact for FirstUse, else Unit.Nominal.
	Length int64

	At      time.Duration  // wall-clock time at which a window starts: whole minutes, at least 0 and below 24 h
	Weekday time.Weekday   // of Week: the first day of a window; the zero value is Sunday
	Date    int            // of Month, Quarter and Year: the day of the month; each month clamps it to its last
	Month   time.Month     // of Quarter: any of the four first months; of Year: the first one. 0 is January
	Zone    *time.Location // whose wall clock is meant; nil is UTC

	OwnStarts bool // each entity has its own At, Weekday, Date and Month, which Of takes from its start
	OwnZone   bool // each entity has its own Zone, which Of takes from its start
}

// Half returns the least length of a window that follows another, in milliseconds: 12 h, 84 h, 14 d, 45 d or
// 182 d. It keeps processes with different tzdata from opening a short window at each boundary. It is 0 for
// FirstUse.
func (c *Calendar) Half() int64 {
	if !c.Unit.dated() {
		return 0
	}
	return units[c.Unit].half
}

// End returns when the window ends that opens at now, where old is the end of the one before, or 0 if there
// was none. All are in milliseconds since the Unix epoch.
//
// That is the first boundary after both now and old + Half, and after now alone without an old window. For
// FirstUse it is now + Length, where a Length below 1 counts as 1.
//
// End is exact for years far beyond 9999 too, by the last rules of the zone. It saturates at math.MaxInt64,
// the only end that may not be above now.
func (c *Calendar) End(now, old int64) int64 {
	switch {
	case c.Unit == Never:
		return NeverEnds
	case !c.Unit.dated():
		return Add(now, max(1, c.Length))
	}
	after := now
	if old != 0 {
		after = max(now, Add(old, c.Half()))
	}
	for k := c.window(after); ; k++ {
		if start := c.start(k); start > after || start == math.MaxInt64 {
			return start
		}
	}
}

// First returns when the first window of a limit ends, for a write at now that takes cost. It is 0 if that
// opens no window: the cost is 0. A window of Never opens with the first write, whatever its cost.
func (c *Calendar) First(cost, now int64) int64 {
	if cost <= 0 && c.Unit != Never {
		return 0
	}
	return c.End(now, 0)
}

// Next returns the first n boundaries after an instant, ascending, in milliseconds since the Unix epoch.
// There are fewer only at the end of int64, and none for FirstUse and Never.
func (c *Calendar) Next(after int64, n int) []int64 {
	if !c.Unit.dated() || n <= 0 {
		return nil
	}
	var next []int64
	for k := c.window(after); len(next) < n; k++ {
		start := c.start(k)
		if start > after { // a day that the zone skips starts with the next
			next, after = append(next, start), start
		}
		if start == math.MaxInt64 {
			break
		}
	}
	return next
}

// Own reports whether each entity has a calendar of its own, which Of makes.
func (c *Calendar) Own() bool { return c.OwnStarts || c.OwnZone }

// nominal returns the nominal length of c's windows, in ms, as buckets store it.
func (c *Calendar) nominal() int64 {
	if c.Unit == FirstUse {
		return c.Length
	}
	return c.Unit.Nominal()
}

// Of returns c for an entity whose billing began at since. With OwnZone, the location of since is the zone.
// With OwnStarts, windows start when the wall clock of the zone shows what it showed at since, to the minute.
// The calendar that Of returns is not Own. It is c itself if c is not.
func (c *Calendar) Of(since time.Time) *Calendar {
	if !c.Own() {
		return c
	}
	own := *c
	own.OwnStarts, own.OwnZone = false, false
	if c.OwnZone {
		own.Zone = since.Location()
	}
	if c.OwnStarts {
		since = since.In(own.zone())
		own.At = time.Duration(since.Hour())*time.Hour + time.Duration(since.Minute())*time.Minute
		own.Weekday, own.Date, own.Month = since.Weekday(), since.Day(), since.Month()
	}
	return &own
}

// zone returns the zone whose wall clock is meant.
func (c *Calendar) zone() *time.Location {
	if c.Zone == nil {
		return time.UTC
	}
	return c.Zone
}

// String writes c for people: day from 04:00 America/New_York, or 5h0m0s from first use. A calendar by dates
// has a time only if it is not midnight.
func (c *Calendar) String() string {
	switch {
	case c.Unit == Never:
		return c.Unit.String()
	case !c.Unit.dated():
		return fmt.Sprintf("%v from first use", milliseconds(c.Length))
	case c.OwnStarts && c.OwnZone:
		return c.Unit.String() + " from the entity's own start, in its zone"
	case c.OwnStarts:
		return fmt.Sprintf("%v from the entity's own start, in %v", c.Unit, c.zone())
	case c.OwnZone:
		return fmt.Sprintf("%v from %s in the entity's own zone", c.Unit, c.starts())
	}
	return fmt.Sprintf("%v from %s %v", c.Unit, c.starts(), c.zone())
}

// starts writes when windows start.
func (c *Calendar) starts() string {
	at := fmt.Sprintf("%02d:%02d", int(c.At.Hours()), int(c.At.Minutes())%60)
	var first string
	switch c.Unit {
	case Day:
		return at
	case Week:
		first = c.Weekday.String()
	case Month:
		first = fmt.Sprintf("day %d", c.date())
	default:
		first = fmt.Sprintf("%v %d", time.Month(c.month()+1), c.date())
	}
	if c.At == 0 {
		return first
	}
	return first + " " + at
}

// Zone returns the time zone of a name in the IANA database, such as Europe/Berlin or UTC. Names that mean
// another zone on each machine are errors. It is the only function of this package that may read a file: the
// machine's tzdata, or else that of package time/tzdata if the program imports it.
func Zone(name string) (*time.Location, error) {
	const cure = "write a name of the IANA database, such as Europe/Berlin or UTC"
	base, _, _ := strings.Cut(name, "/")
	switch base {
	case "":
		return nil, fmt.Errorf("zone %q names no time zone: %s", name, cure)
	case "Local", "localtime", "posixrules":
		return nil, fmt.Errorf("zone %q is another one on each machine: %s", name, cure)
	case "posix", "right": // folders of some machines: "right" counts leap seconds
		return nil, fmt.Errorf("zone %q is not on each machine: %s", name, cure)
	}
	zone, err := time.LoadLocation(name)
	if err != nil {
		return nil, fmt.Errorf("zone %q: %w: %s; if it is one, import time/tzdata", name, err, cure)
	}
	return zone, nil
}

// MustZone is Zone for a name that is known to be right. It panics if it is not, as regexp.MustCompile does.
// Generated code calls it: generate has checked the name, and the package imports time/tzdata.
func MustZone(name string) *time.Location {
	zone, err := Zone(name)
	if err != nil {
		panic("sluice: " + err.Error())
	}
	return zone
}
