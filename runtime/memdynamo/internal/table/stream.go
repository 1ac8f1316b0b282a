package table

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/sluice-go/sluice/runtime/memdynamo/internal/value"
)

// Record is one change as the stream tells it. Sequence numbers rise within the table, over all its streams.
type Record struct {
	Sequence uint64
	At       time.Time
	Event    string // INSERT, MODIFY or REMOVE
	Keys     value.Map
	Old, New value.Map // nil: was not there, is not there, or the stream's view leaves it out
	Service  bool
}

// Shard is a part of a stream: the changes of some of the partition keys, in order.
type Shard struct {
	ID, Parent  string
	First, Last uint64 // the sequence numbers it may hold; Last is 0 while the shard is open
	Trimmed     uint64 // the last one that is gone, or 0

	low, high uint64    // its keys' spread
	closed    time.Time // when
	records   []Record
}

// Stream is a table's change log.
type Stream struct {
	Label   string // creation time
	Created time.Time
	View    string // NEW_AND_OLD_IMAGES, ...
	Enabled bool
	Latest  uint64   // the last sequence number given
	Shards  []*Shard // the oldest first
}

// EnableStream begins a new stream with so many open shards, at least one. View is what its records tell:
// KEYS_ONLY, NEW_IMAGE, OLD_IMAGE or NEW_AND_OLD_IMAGES. An earlier stream is forgotten.
func (t *Table) EnableStream(view string, shards int, at time.Time) {
	s := &Stream{Label: at.UTC().Format("2006-01-02T15:04:05.000"), Created: at, View: view, Enabled: true}
	if t.stream != nil {
		s.Latest = t.stream.Latest
	}
	for i := range shards {
		high := uint64(math.MaxUint64)
		if i+1 < shards {
			high = segment(i+1, shards) - 1
		}
		s.open("", segment(i, shards), high)
	}
	t.stream = s
}

// Stream returns the table's last stream, enabled or not, or nil if it never had one.
func (t *Table) Stream() *Stream { return t.stream }

// Disable ends the stream: its shards close, and stay readable until they are trimmed.
func (s *Stream) Disable(at time.Time) {
	s.Enabled = false
	for _, shard := range s.Shards {
		shard.close(s.Latest, at)
	}
}

// Split closes every open shard and opens two in its place, each with half of its keys.
func (s *Stream) Split(at time.Time) {
	for _, shard := range s.Shards { // as they are now: not those that it opens
		if !shard.close(s.Latest, at) {
			continue
		}
		middle := shard.low + (shard.high-shard.low)/2
		s.open(shard.ID, shard.low, middle)
		s.open(shard.ID, middle+1, shard.high)
	}
}

// Trim forgets the records from before that instant, and the shards that were closed before it and are empty.
func (s *Stream) Trim(before time.Time) {
	for _, shard := range s.Shards {
		shard.trim(before)
	}
	s.Shards = slices.DeleteFunc(s.Shards, func(shard *Shard) bool {
		return shard.Last != 0 && shard.closed.Before(before) && len(shard.records) == 0
	})
}

// Shard returns the shard of that id, or nil.
func (s *Stream) Shard(id string) *Shard {
	i := slices.IndexFunc(s.Shards, func(shard *Shard) bool { return shard.ID == id })
	if i < 0 {
		return nil
	}
	return s.Shards[i]
}

// Read returns at most limit records, from that sequence number on. They are valid until the next change of
// the stream.
func (s *Shard) Read(from uint64, limit int) []Record {
	i, _ := slices.BinarySearchFunc(s.records, from, func(r Record, n uint64) int {
		return cmp.Compare(r.Sequence, n)
	})
	return s.records[i:min(i+limit, len(s.records))]
}

func (s *Stream) open(parent string, low, high uint64) {
	s.Latest++ // a number of its own: it names the shard and is before all its records
	s.Shards = append(s.Shards, &Shard{
		ID: fmt.Sprintf("shardId-%020d", s.Latest), Parent: parent, First: s.Latest, low: low, high: high,
	})
}

// close reports whether the shard was open.
func (s *Shard) close(latest uint64, at time.Time) bool {
	if s.Last != 0 {
		return false
	}
	s.Last, s.closed = latest, at
	return true
}

func (s *Shard) trim(before time.Time) {
	keep := slices.IndexFunc(s.records, func(r Record) bool { return !r.At.Before(before) })
	if keep < 0 {
		keep = len(s.records)
	}
	if keep > 0 {
		s.Trimmed = s.records[keep-1].Sequence
		clear(s.records[:keep]) // for the collector: the next append that grows moves only the rest
		s.records = s.records[keep:]
	}
}

// add records a change of old to c.Item.
func (s *Stream) add(c Change, schema *KeySchema, old value.Map) {
	s.Latest++
	r := Record{Sequence: s.Latest, At: c.At, Service: c.Service}
	switch {
	case old == nil:
		r.Event, r.Keys = "INSERT", schema.attributes(c.Item)
	case c.Item == nil:
		r.Event, r.Keys = "REMOVE", schema.attributes(old)
	default:
		r.Event, r.Keys = "MODIFY", schema.attributes(old)
	}
	if s.View == "NEW_IMAGE" || s.View == "NEW_AND_OLD_IMAGES" {
		r.New = c.Item
	}
	if s.View == "OLD_IMAGE" || s.View == "NEW_AND_OLD_IMAGES" {
		r.Old = old
	}
	for _, shard := range s.Shards {
		if shard.Last == 0 && shard.low <= c.Key.spread && c.Key.spread <= shard.high {
			shard.records = append(shard.records, r)
			return
		}
	}
}
