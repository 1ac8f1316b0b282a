package usage

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/sluice-go/sluice/runtime/bucket"
	"github.com/sluice-go/sluice/runtime/dynamo/codec"
)

// sequenceDigits is how long a sequence number can be: they are compared as text, padded with zeros.
const sequenceDigits = 40

// padded returns a sequence number as watermarks have it.
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
}

// takes reports that some limit was taken from: the write served a call, or several that came together.
func (e *entry) takes() bool {
	return slices.ContainsFunc(e.deltas, func(d codec.Delta) bool { return d.Millitokens > 0 })
}

// share is what a batch adds to one window, in the order of the records.
type share struct {
	Window

	entries []entry
}

// sum returns what s adds, by limit, sorted, and how many of its records took something.
func (s *share) sum() (limits []codec.Delta, calls int64) {
	for _, e := range s.entries {
		if e.takes() {
			calls++
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
	return limits, calls
}

// after drops what is at or below a watermark: it was added before.
func (s *share) after(watermark string) {
	s.entries = slices.DeleteFunc(slices.Clone(s.entries), func(e entry) bool { return e.sequence <= watermark })
}

// shares sorts deltas of records into windows: hours and days of each bucket, in the order in which they are
// first met.
func shares(entries []entry) []*share {
	var all []*share
	by := map[Window]*share{}
	for _, e := range entries {
		if len(e.deltas) == 0 {
			continue
		}
		d := e.deltas[0] // a record is of one bucket, at one instant
		for _, span := range spans() {
			w := WindowOf(d.Entity, d.Resource, span, d.At)
			s := by[w]
			if s == nil {
				s = &share{Window: w}
				by[w] = s
				all = append(all, s)
			}
			s.entries = append(s.entries, e)
		}
	}
	return all
}
