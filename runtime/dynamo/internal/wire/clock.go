package wire

import (
	"fmt"
	"math"
	"sync/atomic"
	"time"

	"github.com/sluice-go/sluice/runtime/store"
)

// tolerated is how far a host's clock may be off (docs/design.md, "Arithmetic").
const tolerated = time.Second

// dateUnit is the resolution of a reply's date, which is rounded down.
const dateUnit = time.Second

// hostClock bounds this host's clock by the dates of replies, without a lock. Between replies DynamoDB's time
// passes as this host's does, by the monotonic part of the clock's readings if they have one. So a clock that
// is set ahead between two replies is bounded too. It is safe for concurrent use.
type hostClock struct {
	origin time.Time    // a reading of the clock
	latest atomic.Int64 // the latest that DynamoDB's time at origin can be, ms; noDate before the first reply
	// the earliest that it can be, ms; -noDate before the first reply
	earliest atomic.Int64
	next     atomic.Int64 // from when on the clock may be reported again, ms by the clock
}

const noDate = math.MaxInt64 / 2

// start sets the origin. It precedes all other calls.
func (h *hostClock) start(reading time.Time) {
	h.origin = reading
	h.latest.Store(noDate)
	h.earliest.Store(-noDate)
}

// at returns the time of a reading in ms. If that is more than tolerated past the latest that DynamoDB's time
// can be then, or before the earliest, at returns this bound.
func (h *hostClock) at(reading time.Time) int64 {
	ms, since := reading.UnixMilli(), reading.Sub(h.origin).Milliseconds()
	if latest := h.latest.Load() + since; ms-latest > tolerated.Milliseconds() {
		return latest
	}
	if earliest := h.earliest.Load() + since; earliest-ms > tolerated.Milliseconds() {
		return earliest
	}
	return ms
}

// bound takes in the date of a reply to a request that began and ended at these readings. The date was made
// between them. Of all bounds the closest stay. One that a later date refutes is replaced: the clock was set,
// or did not run while the host slept.
func (h *hostClock) bound(began, ended, date time.Time) {
	ms := date.UnixMilli()
	latest := ms + dateUnit.Milliseconds() - began.Sub(h.origin).Milliseconds()
	earliest := ms - ended.Sub(h.origin).Milliseconds() - 1 // the readings are cut to whole ms
	if known := h.latest.Load(); latest < known || known < earliest {
		h.latest.Store(latest)
	}
	if known := h.earliest.Load(); earliest > known || known > latest {
		h.earliest.Store(earliest)
	}
}

// due reports whether the clock may be reported at a reading, and notes that it is: once a minute.
func (h *hostClock) due(reading time.Time) bool {
	now, next := reading.UnixMilli(), h.next.Load()
	again := reading.Add(time.Minute).UnixMilli()
	isDue := now >= next || next > again // the clock was set back
	return isDue && h.next.CompareAndSwap(next, again)
}

// skew returns by how much, at least, this host's clock is ahead of the service's; it is negative for a clock
// behind. It is 0 if the difference is tolerated. The reply's date was made between began and ended.
func skew(began, ended, date time.Time) time.Duration {
	if ahead := began.Sub(date.Add(dateUnit)); ahead > tolerated {
		return ahead
	}
	if behind := date.Sub(ended); behind > tolerated {
		return -behind
	}
	return 0
}

// skewError returns the *store.SetupError of a clock that is so much ahead of DynamoDB's, nil for 0.
func skewError(ahead time.Duration) error {
	direction := "ahead of"
	switch {
	case ahead == 0:
		return nil
	case ahead < 0:
		direction = "behind"
	}
	return &store.SetupError{
		What: fmt.Sprintf("this host's clock is at least %v %s DynamoDB's",
			ahead.Abs().Round(time.Millisecond), direction),
		Do: "set it by NTP: refill goes by it",
	}
}
