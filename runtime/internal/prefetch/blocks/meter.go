package blocks

import (
	"slices"
	"time"

	"github.com/sluice-go/sluice/runtime/bucket"
)

// Span is the time over which demand is measured.
const Span = 500 * time.Millisecond

// bins divide Span.
const (
	bins = 10
	bin  = Span / bins
)

// Meter measures what the calls of a process ask of a bucket: their number and their cost. The zero Meter is
// for a bucket without limits.
type Meter struct {
	newest int64           // number of the newest bin: bin 0 began at instant 0
	calls  [bins + 1]int64 // one bin is under way
	cost   [bins + 1][]int64
	sum    Demand // of all bins
}

// Demand is what calls asked within Span.
type Demand struct {
	Calls int64
	Cost  []int64 // of all of them
}

// NewMeter returns a Meter for a bucket with this number of limits.
func NewMeter(limits int) Meter {
	m := Meter{sum: Demand{Cost: make([]int64, limits)}}
	flat := make([]int64, len(m.cost)*limits)
	for i := range m.cost {
		m.cost[i] = flat[i*limits : (i+1)*limits]
	}
	return m
}

// Add counts a call at now.
func (m *Meter) Add(cost []int64, now time.Duration) {
	m.advance(now)
	at := m.newest % int64(len(m.calls))
	m.calls[at]++
	m.sum.Calls++
	for i, n := range cost {
		m.cost[at][i] = bucket.Add(m.cost[at][i], n)
		m.sum.Cost[i] = bucket.Add(m.sum.Cost[i], n)
	}
}

// Demand returns the demand at now. Its Cost is the Meter's, and changes with the next call.
func (m *Meter) Demand(now time.Duration) Demand {
	m.advance(now)
	return m.sum
}

// advance drops the bins that are over at now. An instant before the newest bin counts in that.
func (m *Meter) advance(now time.Duration) {
	number := int64(now / bin)
	if number <= m.newest {
		return
	}
	dropped := min(number-m.newest, int64(len(m.calls)))
	m.newest = number
	for i := range dropped {
		at := (number - i) % int64(len(m.calls))
		m.sum.Calls -= m.calls[at]
		m.calls[at] = 0
		for j, n := range m.cost[at] {
			m.sum.Cost[j] = max(0, m.sum.Cost[j]-n) // below its sum only where that is saturated
		}
		clear(m.cost[at])
	}
}

// Ahead returns what d asks of the i-th limit within a time.
func (d Demand) Ahead(i int, within time.Duration) int64 {
	return bucket.MulDiv(d.Cost[i], int64(within), int64(Span))
}

// A process leaves the refill of the time leaving to others, and at most the burst divided by leavingPortion.
const (
	leaving        = 50 * time.Millisecond
	leavingPortion = 20
)

// Leave returns how many tokens of its bucket's i-th limit, which is l, a process with demand d leaves to
// others. A process that asks for little leaves less, so it may take tokens that others leave. Leave returns
// 0 if the tokens were too few for two calls.
func (d Demand) Leave(i int, l bucket.Limit) int64 {
	if d.Calls == 0 {
		return 0
	}
	most := min(bucket.Refill(l, 0, leaving.Milliseconds()), l.Burst/leavingPortion)
	if much := bucket.Refill(l, 0, Span.Milliseconds()) / portion; d.Cost[i] < much {
		most = bucket.MulDiv(most, d.Cost[i], much)
	}
	if most/fewest < d.Cost[i]/d.Calls {
		return 0
	}
	return most
}

// NearEnd reports whether a bucket is so nearly used up that nothing is prefetched from it. That is so if
// level, which it has of l, is less than it refills within prefetch, and less than an eighth of its burst. A
// limit with windows does not refill, so it is near its end in debt alone.
func NearEnd(l bucket.Limit, level int64, prefetch time.Duration) bool {
	return level < min(bucket.Refill(l, 0, prefetch.Milliseconds()), l.Burst/portion)
}

// Margin returns how long before a pool is used up the next block is taken, for blocks that took so long. It
// is for twice that, between an eighth of prefetch and a half.
func Margin(took, prefetch time.Duration) time.Duration {
	return min(max(2*took, prefetch/8), prefetch/2)
}

// fewest is the least number of calls for which a block is taken. One of a single call saves nothing.
const fewest = 2

// portion divides a level: a block takes at most an eighth of it.
const portion = 8

// Size returns what a block takes of a bucket that has level, nil for no block. That is what demand asks for
// within prefetch, less what is left. It is for the same number of calls in all limits, so that no limit has
// tokens that the scarcest one does not let calls use.
func Size(d Demand, prefetch time.Duration, left, level []int64) []int64 {
	calls := bucket.MulDiv(d.Calls, int64(prefetch), int64(Span))
	if calls < fewest {
		return nil
	}
	covered, most := calls, calls
	for i, n := range d.Cost {
		if n > 0 {
			each := (n-1)/d.Calls + 1
			covered, most = min(covered, left[i]/each), min(most, level[i]/portion/each)
		}
	}
	calls = min(calls-covered, most)
	if calls < fewest {
		return nil
	}
	size := slices.Clone(d.Cost)
	for i, n := range size {
		size[i] = bucket.MulDiv(n, calls, d.Calls)
	}
	return size
}
