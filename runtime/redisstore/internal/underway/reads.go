// Package underway has one read of a value serve all callers that need it at a time.
package underway

import (
	"context"
	"errors"
	"slices"
	"sync"

	"github.com/sluice-go/sluice/runtime/internal/background"
	"github.com/sluice-go/sluice/runtime/internal/lookups"
)

// Reads is the reads under way, one for each key. It is safe for concurrent use. The fields are set before
// the first call.
type Reads[K comparable, V any] struct {
	Tasks *background.Tasks // counts the goroutines that read
	Now   func() int64      // in ms; quick, as it is called with a lock held

	// Joinable is how long after its beginning a read may be joined. After that the next caller begins another
	// one: the first may hang, and what it returns may be as old as its beginning.
	Joinable lookups.TTL

	mu     sync.Mutex
	number int64
	byKey  map[K]*Read[K, V]
}

// Read is one read of a key, for all callers that have joined it.
type Read[K comparable, V any] struct {
	Key    K
	Began  int64 // when, ms: the value is at least as new as that
	Number int64 // higher than that of each read that began before

	done  chan struct{} // closed once value or err is set
	value V
	err   error
}

// errUnread is the error of a read for which Set was not called.
var errUnread = errors.New("the read ended without a result")

// Join returns a read for each of keys, in their order: one under way that may be joined, else a new one.
//
// If any are new, it calls read with these, and then keep with all that it returns, on a goroutine that
// outlives the caller. read calls Set for each; those for which it does not have failed. A read that has
// succeeded may be joined until keep has returned, so later callers find what keep has stored. A failed one
// is not joined any more.
func (r *Reads[K, V]) Join(keys []K, read, keep func([]*Read[K, V])) []*Read[K, V] {
	all, begun := r.join(keys)
	if len(begun) > 0 {
		r.Tasks.Start(func() {
			defer r.drop(begun)
			r.run(begun, read)
			keep(all)
		})
	}
	return all
}

// join returns a read for each of keys, and which of them are new.
func (r *Reads[K, V]) join(keys []K) (all, begun []*Read[K, V]) {
	done := make(chan struct{})
	r.mu.Lock()
	defer r.mu.Unlock()
	now := r.Now()
	for _, key := range keys {
		read := r.byKey[key]
		if read == nil || !r.Joinable.Fresh(read.Began, now) {
			r.number++
			read = &Read[K, V]{Key: key, Began: now, Number: r.number, done: done, err: errUnread}
			if r.byKey == nil {
				r.byKey = map[K]*Read[K, V]{}
			}
			r.byKey[key] = read
			begun = append(begun, read)
		}
		all = append(all, read)
	}
	return all, begun
}

// run calls read, and ends the wait of all callers, also if read panics.
func (r *Reads[K, V]) run(begun []*Read[K, V], read func([]*Read[K, V])) {
	defer func() {
		r.drop(slices.DeleteFunc(slices.Clone(begun), func(b *Read[K, V]) bool { return b.err == nil }))
		close(begun[0].done)
	}()
	read(begun)
}

// drop lets no further caller join reads.
func (r *Reads[K, V]) drop(reads []*Read[K, V]) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, read := range reads {
		if r.byKey[read.Key] == read { // else another one has taken its place
			delete(r.byKey, read.Key)
		}
	}
}

// Set ends r with what was read. The function that Join calls to read calls it.
func (r *Read[K, V]) Set(value V, err error) { r.value, r.err = value, err }

// Wait returns what was read, or ctx's error if that ends first.
func (r *Read[K, V]) Wait(ctx context.Context) (V, error) {
	select {
	case <-r.done:
		return r.value, r.err
	case <-ctx.Done():
		var none V
		return none, ctx.Err()
	}
}

// Value returns what was read, and whether r has ended without an error.
func (r *Read[K, V]) Value() (value V, ok bool) {
	select {
	case <-r.done:
		return r.value, r.err == nil
	default:
		return value, false
	}
}
