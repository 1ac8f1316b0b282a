package usage

import (
	"errors"
	"fmt"
	"time"

	"github.com/sluice-go/sluice/runtime/dynamo/codec"
	"github.com/sluice-go/sluice/runtime/internal/item"
	"github.com/sluice-go/sluice/runtime/store"
)

// place identifies an item that holds usage: an hour or a day of all limits, or a window of one limit.
type place struct {
	Window // without Start if it is a window of a limit

	limit string // "" for an hour or a day
	ends  int64  // of the limit's window, in ms; 0 is before the first
}

// ofWindow returns the place of what a windowed limit consumed. The image that the write left decides.
// Neither the record's time nor the old image tells to which window a write at the boundary belongs.
func ofWindow(d codec.Delta) place {
	return place{Window{Entity: d.Entity, Resource: d.Resource, Span: LimitWindow}, d.Limit, d.Ends}
}

// end returns when the window of p ends.
func (p place) end() time.Time {
	if p.Span == LimitWindow {
		return time.UnixMilli(p.ends).UTC()
	}
	return p.Start.Add(p.Span.Length())
}

// key returns the primary key of p's item, for a limit's window
// ENTITY#user-1 / #USAGE#gpt-4#window#usd#1796079600000.
func (p place) key() codec.Item {
	if p.Span == LimitWindow {
		return item.UsageWindowKey(p.Entity, p.Resource, p.limit, p.ends)
	}
	return p.Window.key()
}

// String returns p as errors name it.
func (p place) String() string {
	if p.Span == LimitWindow {
		return fmt.Sprintf("%s on %s, %s of %s to %s", store.Quote(p.Entity), store.Quote(p.Resource), p.Span,
			store.Quote(p.limit), p.end().Format(time.RFC3339))
	}
	return p.Window.String()
}

// windowed returns the deltas of limits with windows among those of rec. A limit before its first window has
// no end, as has a limit that refills: only one with windows has the attribute.
func windowed(rec codec.Record, deltas []codec.Delta) (windows []codec.Delta) {
	for _, d := range deltas {
		has := d.Ends != 0
		if !has && rec.New != nil {
			kind, _ := rec.New.Attr(item.LimitAttribute(d.Limit, item.WindowField))
			has = kind != ""
		}
		if has {
			windows = append(windows, d)
		}
	}
	return windows
}

// Maximum bytes of a hash key, of a sort key, of a resource, and of a resource and a limit together. The
// first two are DynamoDB's; the others are without the constant parts of a window's key.
const (
	longestHash     = 2048
	longestSort     = 1024
	longestResource = longestSort - len(item.UsagePrefix+"#hour#2006-01-02T15")
	longestLimit    = longestSort - len(item.UsagePrefix+"#"+item.WindowSpan+"##253402300799999")
)

// latestEnd is the latest end of a window, at the end of year 9999: later ones have no text.
const latestEnd = 253_402_300_799_999

// windowless returns an error for deltas of a record, windows of which are of windowed limits, that no window
// can hold, from any writer of such a bucket. DynamoDB would always reject their write, and all records after
// it would wait.
func windowless(deltas, windows []codec.Delta, n item.Namespace) error {
	d, longestEntity := deltas[0], longestHash-len(n.Hash(item.EntityPrefix)) // all are of one bucket
	switch {
	case d.At.IsZero():
		return errors.New("sluice: stream record without ApproximateCreationDateTime: no window is of its time")
	case len(d.Entity) > longestEntity:
		return fmt.Errorf("sluice: stream record of an entity of %d bytes: a window's key has room for %d",
			len(d.Entity), longestEntity)
	case len(d.Resource) > longestResource:
		return fmt.Errorf("sluice: stream record of a resource of %d bytes: a window's key has room for %d",
			len(d.Resource), longestResource)
	}
	for _, w := range windows {
		switch names := len(w.Resource) + len(w.Limit); {
		case names > longestLimit:
			return fmt.Errorf("sluice: stream record of a resource and a limit of %d bytes: the key of a limit's "+
				"window has room for %d", names, longestLimit)
		case w.Ends < 0 || w.Ends > latestEnd:
			return fmt.Errorf("sluice: stream record of limit %s: its window ends at %d: want ms since 1970, up to "+
				"the end of year 9999", store.Quote(w.Limit), w.Ends)
		}
	}
	return nil
}
