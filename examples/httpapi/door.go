package main

import (
	"net/http"
	"sync"
	"time"
)

// door counts who comes back earlier than told. It belongs to the example: a service has no need of it.
type door struct {
	next http.Handler

	mu    sync.Mutex
	until map[string]time.Time // by key: when it may come back
	early map[string]int
}

func newDoor(next http.Handler) *door {
	return &door{next: next, until: map[string]time.Time{}, early: map[string]int{}}
}

// ServeHTTP implements http.Handler.
func (d *door) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	key := r.Header.Get("Authorization")
	d.mu.Lock()
	if time.Now().Before(d.until[key]) {
		d.early[key]++
	}
	d.mu.Unlock()
	d.next.ServeHTTP(w, r)
	if wait, ok := retryAfter(w.Header()); ok {
		d.mu.Lock()
		d.until[key] = time.Now().Add(wait)
		d.mu.Unlock()
	}
}

// cameEarly returns how often who has this key did.
func (d *door) cameEarly(key string) int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.early["Bearer "+key]
}
