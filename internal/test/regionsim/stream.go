package regionsim

import (
	"slices"
	"strconv"
	"time"

	"github.com/sluice-go/sluice/runtime/bucket"
	"github.com/sluice-go/sluice/runtime/region/images"
)

// stream is the stream of a region's table. A record has what a bucket became within a quarter of a window.
type stream struct {
	world   *world
	home    *home
	images  *images.Images  // of the region's sync; nil while there is none
	last    []*bucket.Image // by series, of the last record; nil if it was deleted
	records []record        // of the last windows, for StreamAgain
	wrote   int             // records so far
	waiting [][]record      // replies that StreamLate holds back
}

// record is one of a stream.
type record struct {
	place
	sequence string
	img      *bucket.Image
	deleted  bool // img is the last image
}

// shard is the name of the only shard of a stream.
const shard = "shard"

// keepRecords is for how many windows records are kept that StreamAgain delivers again.
const keepRecords = 10

// open starts a stream.
func (w *world) open(h *home) {
	h.stream = &stream{world: w, home: h, last: make([]*bucket.Image, len(w.series))}
	var tick func()
	tick = func() {
		h.stream.tick()
		w.after(w.Window/4, tick)
	}
	w.after(upTo(w.rng, w.Window/4), tick)
}

// follow returns the images that a new sync has: the stream says nothing of what was before.
func (s *stream) follow() *images.Images {
	s.images, s.waiting = images.New(s.world.specs), nil
	s.images.Reading([]string{shard})
	return s.images
}

// tick writes a record of each bucket that has changed, and delivers them a little later.
func (s *stream) tick() {
	w := s.world
	var reply []record
	for i, f := range s.home.flows {
		w.flow(s.home, f)
		img, last := w.image(f), s.last[i]
		if img == nil && last == nil || img != nil && last != nil && unchanged(img, last) {
			continue
		}
		s.wrote++
		r := record{place: f.series.place, sequence: strconv.Itoa(s.wrote), img: img}
		if img == nil {
			r.img, r.deleted = last, true
		}
		s.last[i] = img
		if !s.fault(StreamMiss, w.now) && !s.fault(StreamTrim, w.now) {
			reply = append(reply, r)
		}
	}
	asked := w.now
	w.after(upTo(w.rng, w.Window/6), func() { s.deliver(reply, asked) })
}

// unchanged reports whether nobody has called a bucket between two images.
func unchanged(a, b *bucket.Image) bool {
	return a.Version == b.Version && slices.EqualFunc(a.Extra, b.Extra, func(x, y bucket.Named) bool {
		return x.Limit == y.Limit && x.Consumed == y.Consumed
	})
}

// deliver hands a reply to the region's sync, and all that were held back before.
func (s *stream) deliver(reply []record, asked time.Duration) {
	s.waiting = append(s.waiting, reply)
	if s.fault(StreamLate, s.world.now) || s.images == nil {
		return
	}
	for _, reply := range s.waiting {
		s.put(reply)
		s.records = append(s.records, reply...)
	}
	s.waiting = nil
	keep := 4 * keepRecords * len(s.last)
	s.records = slices.Delete(s.records, 0, max(0, len(s.records)-keep))
	at := begin.Add(asked)
	s.images.Heard(shard, at, at)
}

func (s *stream) put(records []record) {
	for _, r := range records {
		if r.deleted {
			s.images.Delete(r.resource, r.entity, r.sequence, r.img)
		} else {
			s.images.Put(r.resource, r.entity, r.sequence, r.img)
		}
	}
}

// again delivers what is kept once more.
func (s *stream) again() {
	if s != nil && s.images != nil {
		s.put(s.records)
	}
}

// trimmed says that records were lost.
func (s *stream) trimmed() {
	if s != nil && s.images != nil {
		s.images.Lost()
	}
}

// fault reports whether a fault of a kind hits s at an instant.
func (s *stream) fault(kind Kind, at time.Duration) bool {
	return slices.ContainsFunc(s.world.Faults, func(f Fault) bool {
		return f.Kind == kind && f.Region%len(s.world.regions) == s.home.index && f.covers(at) &&
			(kind == StreamLate || s.world.rng.IntN(100) < f.Percent)
	})
}
