package storetest

import (
	"context"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/sluice-go/sluice/runtime/store"
)

// Events records what an observer saw. The zero value is empty.
type Events struct {
	Mu       sync.Mutex // guards the fields below while calls are under way
	Paths    []string   // path and outcome of each call to the store, except those in the background
	Failures []error
	Verbs    []string           // acquired, denied, settled, released
	All      []store.StoreEvent // every call to the store
}

// Observer returns the observer that e records.
func (e *Events) Observer() *store.Observer {
	note := func(what string) func(_ context.Context, _ store.Event) {
		return func(_ context.Context, _ store.Event) {
			e.Mu.Lock()
			defer e.Mu.Unlock()
			e.Verbs = append(e.Verbs, what)
		}
	}
	return &store.Observer{
		Acquired: note("acquired"), Denied: note("denied"), Settled: note("settled"), Released: note("released"),
		Failed: func(_ context.Context, v store.Event) {
			e.Mu.Lock()
			defer e.Mu.Unlock()
			e.Failures = append(e.Failures, v.Err)
		},
		Store: func(_ context.Context, v store.StoreEvent) {
			e.Mu.Lock()
			defer e.Mu.Unlock()
			e.All = append(e.All, v)
			if v.Path == "system" { // in the background
				return
			}
			what := v.Path + " " + v.Outcome
			if v.Generic {
				what = "generic " + what
			}
			e.Paths = append(e.Paths, what)
		},
	}
}

// Count returns the number of calls to the store whose path and outcome end in what ("reshape applied").
func (e *Events) Count(what string) (n int) {
	e.Mu.Lock()
	defer e.Mu.Unlock()
	for _, path := range e.Paths {
		if strings.HasSuffix(path, what) {
			n++
		}
	}
	return n
}

// Calls fails the test unless the calls to the store since the last time are want, and empties Paths.
func (e *Events) Calls(t testing.TB, want ...string) {
	t.Helper()
	e.Mu.Lock()
	defer e.Mu.Unlock()
	if !slices.Equal(e.Paths, want) {
		t.Errorf("calls to the store: %q\nwant %q", e.Paths, want)
	}
	e.Paths = nil
}
