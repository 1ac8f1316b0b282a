package plan

import (
	"math"
	"slices"

	"github.com/sluice-go/sluice/runtime/bucket"
)

// Headroom is what acquires may take of one bucket, in millitokens by limit.
type Headroom struct {
	whole, left []int64 // before and after the requests counted so far
	most        []int64 // bursts
}

// NewHeadroom returns what a bucket with this image has at now, as far as is known: a nil image counts as a
// full bucket. A limit that is missing in the bucket is not charged, so it has no bound.
func NewHeadroom(img *bucket.Image, s *Shape, windows []*bucket.Calendar, now int64) Headroom {
	whole, most := make([]int64, len(s.Limits)), make([]int64, len(s.Limits))
	for i, limit := range s.Limits {
		if whole[i], most[i] = limit.Burst, limit.Burst; limit.Windowed() {
			most[i] = math.MaxInt64 // a grant may have lifted it above the burst
		}
	}
	switch {
	case img == nil:
	case Outdated(img, s):
		next := s.Next(img, windows, now)
		for i, b := range next.Balances {
			whole[i] = bucket.Available(b, next.Refilled, now)
		}
	default:
		for i, b := range img.Balances {
			whole[i], most[i] = math.MaxInt64, math.MaxInt64
			if img.Missing[i] {
				continue
			}
			if whole[i] = bucket.Available(b, img.Refilled, now); !b.Windowed() {
				most[i] = b.Burst
			}
		}
	}
	if s.Ceiling != nil {
		for i := range whole {
			if _, closed := s.ExceedsQuota(img, i, 1); closed {
				whole[i], most[i] = 0, 0
			}
		}
	}
	return Headroom{whole, slices.Clone(whole), most}
}

// Return adds what is given back: acquires may take it.
func (h *Headroom) Return(back []int64) {
	for j, b := range back {
		h.left[j] = min(bucket.Add(h.left[j], max(b, 0)), h.most[j])
	}
}

// Has reports whether cost fits into what is left, and whether it would fit into the whole.
func (h *Headroom) Has(cost []int64) (left, whole bool) {
	left, whole = true, true
	for j, c := range cost {
		left, whole = left && (c <= 0 || c <= h.left[j]), whole && (c <= 0 || c <= h.whole[j])
	}
	return left, whole
}

// Take takes cost from what is left.
func (h *Headroom) Take(cost []int64) {
	for j, c := range cost {
		h.left[j] = bucket.Sub(h.left[j], c)
	}
}

// Stored is what the stored tokens of a bucket, without refill, still serve by one Retry.
type Stored struct {
	img    *bucket.Image
	left   []int64
	taken  []bool // by limit
	called int64  // the latest instant of the requests, ms
}

// NewStored returns the stored tokens of a bucket with this image.
func NewStored(img *bucket.Image) Stored {
	left := make([]int64, len(img.Balances))
	for i, b := range img.Balances {
		left[i] = b.Tokens
	}
	return Stored{img: img, left: left, taken: make([]bool, len(left))}
}

// Fits reports whether the Retry can serve cost, nil for none, of a call at an instant, in ms, as well. The
// upper guard of each limit that is taken from has to hold at the latest instant: nothing that the bucket was
// due by then is clamped. That is so for calls from before the last refill. A cost that gives something back
// does not fit, nor does one of a window that is over.
func (s *Stored) Fits(cost []int64, called int64) bool {
	for i, b := range s.img.Balances {
		takes := cost != nil && cost[i] > 0
		switch {
		case cost != nil && cost[i] < 0:
			return false
		case s.img.Missing[i] || !takes && !s.taken[i]:
		case takes && cost[i] > s.left[i], b.Windowed() && b.Over(max(called, s.called)):
			return false
		case b.Holds() && b.Epoch < bucket.Epoch(max(called, s.called)): // it needs a sweep
			return false
		case b.Tokens > bucket.Sub(b.Burst, bucket.Refill(b.Limit, s.img.Refilled, max(called, s.called))):
			return false
		}
	}
	return true
}

// Take takes cost, nil for none, for a call at an instant.
func (s *Stored) Take(cost []int64, called int64) {
	s.called = max(s.called, called)
	for i, c := range cost {
		if c > 0 {
			s.left[i], s.taken[i] = bucket.Sub(s.left[i], c), true
		}
	}
}
