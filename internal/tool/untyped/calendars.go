package untyped

import (
	"time"

	"github.com/sluice-go/sluice/gen"
	"github.com/sluice-go/sluice/runtime/bucket"
)

// calendars returns the calendars of windows, by limit, as generated code has them: nil if there are none.
func calendars(windows []*gen.Window) []*bucket.Calendar {
	if windows == nil {
		return nil
	}
	all := make([]*bucket.Calendar, len(windows))
	for i, w := range windows {
		if w != nil {
			all[i] = calendar(*w)
		}
	}
	return all
}

// calendar returns the calendar of w, whose zone has been checked.
func calendar(w gen.Window) *bucket.Calendar {
	c := &bucket.Calendar{
		Length: w.Length.Milliseconds(), At: w.At, Weekday: w.Weekday, Date: w.Date,
		OwnStarts: w.OwnStarts, OwnZone: w.OwnZone,
	}
	switch w.Unit {
	case gen.WindowDay:
		c.Unit = bucket.Day
	case gen.WindowWeek:
		c.Unit = bucket.Week
	case gen.WindowMonth:
		c.Unit = bucket.Month
	case gen.WindowQuarter:
		c.Unit, c.Date, c.Month = bucket.Quarter, 1, time.January
	case gen.WindowYear:
		c.Unit, c.Date, c.Month = bucket.Year, 1, time.January
	case gen.WindowNever:
		c.Unit = bucket.Never
	default:
		c.Unit = bucket.FirstUse
	}
	if w.Zone != "UTC" && w.Zone != "" {
		c.Zone = bucket.MustZone(w.Zone)
	}
	return c
}
