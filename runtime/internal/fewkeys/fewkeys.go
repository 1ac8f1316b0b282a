// Package fewkeys has a map for few keys with many look-ups, such as counts by label.
package fewkeys

import (
	"maps"
	"sync"
	"sync/atomic"
)

// Map is a map that only grows. Reading an existing key takes no lock and allocates nothing; a new key copies
// the map. The zero Map is empty, and safe for concurrent use; it must not be copied.
type Map[K comparable, V any] struct {
	mu    sync.Mutex // held while a key is added
	known atomic.Pointer[map[K]V]
}

// All returns all there is. Do not write to it.
func (m *Map[K, V]) All() map[K]V {
	if known := m.known.Load(); known != nil {
		return *known
	}
	return nil
}

// Get returns what is at key. If nothing is, add makes it.
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
