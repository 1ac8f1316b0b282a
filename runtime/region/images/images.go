// Package images holds the last image of each bucket that regional sync is about, so that sync need not read
// them from the table.
//
//	buckets := images.New(lim.Specs())
//	table := operator.NewRegional(client, "rate_limits", now)
//	if err := buckets.Read(ctx, table, lim.Specs(), now(), images.Start); err != nil {
//		return nil, err
//	}
//	return buckets, nil
//
// Package feed keeps [Images] current from the table's stream, and a region.Sync calls Read when it must.
package images

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/sluice-go/sluice/runtime/bucket"
	"github.com/sluice-go/sluice/runtime/store"
)

// Images holds the last image of each bucket of the resources that regions divide, and of no other item. A
// reader of the table's stream keeps it current: package feed has one. A region.Sync takes rates and balances
// from it. Sync reads the table's buckets at the start, after the stream has lost records, and in audits.
//
// Images of a bucket are ordered by their rf, which never moves back, and those of one rf by their sequence.
// So a record that comes late, or again, changes nothing. The methods are safe for concurrent use.
type Images struct {
	mu        sync.Mutex
	of        map[Key]*image
	resources map[string]bool
	shards    map[string]*shardState
	known     bool          // Reading was called
	ready     chan struct{} // closed once every shard has replied
	round     int64         // of full reads that have begun
	lost      bool          // the stream has lost records since the last full read began

	readAt time.Time        // when the last full read began; zero before
	sound  bool             // the stream was followed when that began, and has lost nothing since
	doubts map[Key]struct{} // of the last audit: buckets that differed, and that the stream has not named since
}

// Key names a bucket.
type Key struct{ Resource, Entity string }

// image is a bucket's last image.
type image struct {
	img      *bucket.Image
	sequence string        // of the record that img is from; empty for one that was read
	observed *bucket.Image // as the last cycle saw it; nil if there was none
	round    int64         // of Images, when a record last changed img
}

// shardState is what is known of one shard of the stream.
type shardState struct {
	answered time.Time // when the last request with a reply was made; zero before
	behind   time.Time // when its last record was written; zero if that reply had none
}

// New returns empty Images for those of specs' resources that regions divide.
func New(specs []*store.Spec) *Images {
	m := &Images{of: map[Key]*image{}, resources: map[string]bool{}, shards: map[string]*shardState{},
		ready: make(chan struct{})}
	for _, spec := range specs {
		if spec.Regions != nil {
			m.resources[spec.Resource] = true
		}
	}
	return m
}

// Ready returns a channel that is closed once every shard of the stream has replied.
func (m *Images) Ready() <-chan struct{} { return m.ready }

// Holds reports whether m holds the buckets of a resource.
func (m *Images) Holds(resource string) bool { return m.resources[resource] }

// Put records a bucket's image after a write, as a stream's record has it. sequence is the record's place in
// its shard, a number. The image is not changed afterwards.
func (m *Images) Put(resource, entity, sequence string, img *bucket.Image) {
	if !m.resources[resource] {
		return
	}
	sequence = strings.TrimLeft(sequence, "0")
	m.mu.Lock()
	defer m.mu.Unlock()
	k := Key{resource, entity}
	old := m.of[k]
	if old == nil {
		old = &image{}
		m.of[k] = old
	} else if old.after(img.Refilled, sequence) {
		return
	}
	old.img, old.sequence, old.round = img, sequence, m.round
	delete(m.doubts, k)
}

// Delete records that a bucket was deleted. img is its last image.
func (m *Images) Delete(resource, entity, sequence string, img *bucket.Image) {
	m.mu.Lock()
	defer m.mu.Unlock()
	k := Key{resource, entity}
	if old := m.of[k]; old != nil && !old.after(img.Refilled, strings.TrimLeft(sequence, "0")) {
		old.img, old.sequence, old.round = nil, "", m.round
		if delete(m.doubts, k); old.observed == nil {
			delete(m.of, k)
		}
	}
}

// after reports whether i is of a later write than one that left rf, or of the same.
func (i *image) after(rf int64, sequence string) bool {
	if i.img == nil {
		return false
	}
	older := cmp.Or(cmp.Compare(rf, i.img.Refilled), cmp.Compare(len(sequence), len(i.sequence)),
		cmp.Compare(sequence, i.sequence))
	return older < 0 || older == 0 && i.sequence != ""
}

// Heard records a shard's reply to a request made at asked. last is when the reply's last record was written,
// zero without records.
func (m *Images) Heard(shard string, asked, last time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if s := m.shards[shard]; s != nil {
		s.answered, s.behind = asked, last
		select {
		case <-m.ready:
		default:
			if m.begun() {
				close(m.ready)
			}
		}
	}
}

// Reading says which shards are read from now on, as poll.Consumer has it.
func (m *Images) Reading(shards []string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.known = true
	now := make(map[string]*shardState, len(shards))
	for _, id := range shards {
		if now[id] = m.shards[id]; now[id] == nil {
			now[id] = &shardState{}
		}
	}
	m.shards = now
}

// Lost records that the stream may have lost records: everything is read again.
func (m *Images) Lost() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.lost = true
}

// begun reports whether every shard has replied since it was listed: what is written from now on arrives.
func (m *Images) begun() bool {
	for _, s := range m.shards {
		if s.answered.IsZero() {
			return false
		}
	}
	return m.known
}

// lag returns why m cannot be current at now, "" if it is. slack is how old it may be.
func (m *Images) lag(now time.Time, slack time.Duration) string {
	if !m.begun() {
		return "it has not replied yet"
	}
	for id, s := range m.shards {
		if age := now.Sub(s.answered); age > slack {
			return fmt.Sprintf("its shard %s has not replied for %v", id, age.Round(time.Second))
		}
		if !s.behind.IsZero() && s.answered.Sub(s.behind) > slack {
			return fmt.Sprintf("what was read of its shard %s is %v old", id,
				s.answered.Sub(s.behind).Round(time.Second))
		}
	}
	return ""
}

// Lister is the part of region.Table that Read calls.
type Lister interface {
	// Each calls f for every bucket of resource.
	Each(ctx context.Context, resource string, f func(entity string, img *bucket.Image)) error
}

// Read reads all buckets of specs. Images that records have brought meanwhile stay unless they are older. An
// audit notes the buckets that differ.
func (m *Images) Read(
	ctx context.Context, table Lister, specs []*store.Spec, now time.Time, why Reason,
) error {
	audit := why == Audit
	m.mu.Lock()
	m.round++
	round, sound := m.round, m.begun()
	m.lost = false
	m.mu.Unlock()
	found := make(map[Key]*bucket.Image, len(m.of))
	for _, spec := range specs {
		if err := table.Each(ctx, spec.Resource, func(entity string, img *bucket.Image) {
			found[Key{spec.Resource, entity}] = img
		}); err != nil {
			m.Lost()
			return fmt.Errorf("buckets of %s: %w", spec.Resource, err)
		}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.doubts = map[Key]struct{}{}
	m.merge(found, round, audit)
	m.readAt, m.sound = now, sound
	return nil
}

// merge takes over what a full read has found that began with a round.
func (m *Images) merge(found map[Key]*bucket.Image, round int64, audit bool) {
	for k, i := range m.of {
		img := found[k]
		delete(found, k)
		if i.newer(img, i.round >= round) {
			continue
		}
		if !same(i.img, img) {
			if i.img, i.sequence = img, ""; audit {
				m.doubts[k] = struct{}{}
			}
		}
	}
	for k, img := range found {
		m.of[k] = &image{img: img}
		if audit {
			m.doubts[k] = struct{}{}
		}
	}
}

// newer reports whether i is from a record of a write that a read does not show yet. since says that the
// record came after the read had begun.
func (i *image) newer(read *bucket.Image, since bool) bool {
	if i.img == nil || read == nil || i.sequence == "" {
		return since
	}
	return i.img.Refilled > read.Refilled || since && i.img.Refilled == read.Refilled
}

// same reports whether two images are of one write.
func same(a, b *bucket.Image) bool {
	return a == b ||
		a != nil && b != nil && a.Refilled == b.Refilled && a.Op == b.Op && consumed(a) == consumed(b)
}

// consumed adds up what was consumed of all limits of an image.
func consumed(img *bucket.Image) (sum int64) {
	for i := range img.Extra {
		sum = bucket.Add(sum, img.Extra[i].Consumed)
	}
	return sum
}

// Reason says why all buckets are read.
type Reason string

// Reasons.
const (
	Start Reason = "start" // the stream says nothing of earlier writes
	Gap   Reason = "lost"  // the stream has lost records
	Audit Reason = "audit" // to find what the stream did not have
)

// Due returns why all buckets have to be read at now, "" if they need not. The error says why the images
// cannot be used.
func (m *Images) Due(now time.Time, every, slack time.Duration) (Reason, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	lag := m.lag(now, slack)
	switch {
	case m.readAt.IsZero(), !m.sound && m.begun():
		return Start, nil
	case lag != "":
		return "", fmt.Errorf("the table's stream: %s; rates stay as they were", lag)
	case m.lost:
		return Gap, nil
	case now.Sub(m.readAt) >= every:
		return Audit, nil
	}
	return "", nil
}

// Missed returns how many buckets the last audit found changed of which the stream has said nothing since,
// and forgets them. It returns 0 until records of that time must have come.
func (m *Images) Missed(now time.Time, slack time.Duration) int {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.doubts) == 0 || now.Sub(m.readAt) < slack {
		return 0
	}
	n := len(m.doubts)
	m.doubts = nil
	return n
}

// Current returns a bucket's image, nil if there is none.
func (m *Images) Current(k Key) *bucket.Image {
	m.mu.Lock()
	defer m.mu.Unlock()
	if i := m.of[k]; i != nil {
		return i.img
	}
	return nil
}

// ReadAt returns when the last full read began; zero before there was one.
func (m *Images) ReadAt() time.Time {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.readAt
}

// Observe calls f for each bucket, with its image now and at the last Observe: nil where there is none. f
// must not call m.
func (m *Images) Observe(f func(k Key, now, before *bucket.Image)) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for k, i := range m.of {
		f(k, i.img, i.observed)
		if i.observed = i.img; i.img == nil {
			delete(m.of, k)
		}
	}
}
