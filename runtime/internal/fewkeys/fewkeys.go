// Package fewkeys has a map of few keys that many look up all the time, as what is counted by labels is.
package fewkeys

import (
	"maps"
	"sync"
	"sync/atomic"
)

// Map is a map that only grows. Who looks up what is there takes no lock and allocates nothing; a new key
// copies the map. The zero Map is empty, and safe for concurrent use; it must not be copied.
type Map[K comparable, V any] struct {
	mu    sync.Mutex // held by who adds a key
	known atomic.Pointer[map[K]V]
}

// All returns what there is, not to be written to.
func (m *Map[K, V]) All() map[K]V {
	if known := m.known.Load(); known != nil {
		return *known
	}
	return nil
}

// Get returns what is at key, which add makes where there is nothing yet.
func (m *Map[K, V]) Get(key K, add func(K) V) V {
	if v, ok := m.All()[key]; ok {
		return v
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if v, ok := m.All()[key]; ok {
		return v
	}
	more := make(map[K]V, len(m.All())+1)
	maps.Copy(more, m.All())
	v := add(key)
	more[key] = v
	m.known.Store(&more)
	return v
}
