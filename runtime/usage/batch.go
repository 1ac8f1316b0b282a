package usage

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/sluice-go/sluice/runtime/bucket"
	"github.com/sluice-go/sluice/runtime/dynamo/codec"
)

// sequenceDigits is the maximum length of a sequence number: they are compared as text, padded with zeros.
const sequenceDigits = 40

// padded returns a sequence number in the form of watermarks.
func padded(sequence string) (string, error) {
	if sequence == "" || len(sequence) > sequenceDigits || strings.Trim(sequence, "0123456789") != "" {
		return "", fmt.Errorf("sluice: sequence number %q of a stream record: want 1 to %d digits", sequence,
			sequenceDigits)
	}
	return strings.Repeat("0", sequenceDigits-len(sequence)) + sequence, nil
}

// entry is what one record adds to a window.
type entry struct {
	sequence string // padded
	raw      string // as the stream has it
	deltas   []codec.Delta
	windows  []codec.Delta // of these, those of windowed limits
}

// takes reports whether the write took tokens of some limit: for a call, for several that came together, or
// for a settle above its reserve.
func (e *entry) takes() bool {
	return slices.ContainsFunc(e.deltas, func(d codec.Delta) bool { return d.Millitokens > 0 })
}

// addition is what a batch adds to one window, in the order of the records.
type addition struct {
	place

	entries []entry
}

// sum returns what s adds, by limit, sorted, and how many of its records charged something.
func (s *addition) sum() (limits []codec.Delta, writes int64) {
	for _, e := range s.entries {
		if e.takes() {
			writes++
		}
		for _, d := range e.deltas {
			i, found := slices.BinarySearchFunc(limits, d.Limit,
				func(l codec.Delta, name string) int { return cmp.Compare(l.Limit, name) })
			if !found {
				limits = slices.Insert(limits, i, codec.Delta{Limit: d.Limit})
			}
			limits[i].Millitokens = bucket.Add(limits[i].Millitokens, d.Millitokens)
		}
	}
	return limits, writes
}

// after drops records at or below a watermark: they were added before.
func (s *addition) after(watermark string) {
	s.entries = slices.DeleteFunc(slices.Clone(s.entries), func(e entry) bool { return e.sequence <= watermark })
}

// latest returns the time of the latest record.
func (s *addition) latest() (at time.Time) {
	for _, e := range s.entries {
		if t := e.deltas[0].At; t.After(at) {
			at = t
		}
	}
	return at
}

// additions groups the deltas of records by window: hours and days of each bucket and windows of its limits,
// in the order of their first record.
func additions(entries []entry) []*addition {
	var all []*addition
	by := map[place]*addition{}
	add := func(p place, e entry) {
		s := by[p]
		if s == nil {
			s = &addition{place: p}
			by[p] = s
			all = append(all, s)
		}
		s.entries = append(s.entries, e)
	}
	for _, e := range entries {
		if len(e.deltas) == 0 {
			continue
		}
		d := e.deltas[0] // a record is of one bucket, at one instant
		for _, span := range spans() {
			add(place{Window: WindowOf(d.Entity, d.Resource, span, d.At)}, e)
		}
		for i, d := range e.windows {
			add(ofWindow(d), entry{sequence: e.sequence, raw: e.raw, deltas: e.windows[i : i+1]})
		}
	}
	return all
}
