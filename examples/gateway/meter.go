package main

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/sluice-go/sluice/runtime"
)

// meter is told by all limiters of what happens, and of every call to DynamoDB.
type meter struct {
	mu      sync.Mutex
	count   counts
	decided map[string]int             // acquires by resource, as far as the table decided
	waits   map[string]bool            // by entity: its calls take as long as they wait
	took    map[string][]time.Duration // of acquires: admitted, denied, degraded, waiting
	paths   map[pathKey]usage          // of calls to DynamoDB
}

type pathKey struct{ resource, path string }

type counts struct{ admitted, denied, degraded, settled, released, failed int }

// usage is what calls to DynamoDB took.
type usage struct {
	calls      int
	refused    int // their condition failed
	unanswered int
	lost       int // of these, those that may have been applied, and billed, all the same
	read,
	write float64
}

func (u usage) plus(v usage) usage {
	return usage{
		u.calls + v.calls, u.refused + v.refused, u.unanswered + v.unanswered, u.lost + v.lost, u.read + v.read,
		u.write + v.write,
	}
}

func newMeter(tenants []tenant) *meter {
	m := &meter{decided: map[string]int{}, waits: map[string]bool{}, took: map[string][]time.Duration{},
		paths: map[pathKey]usage{}}
	for i := range tenants {
		if t := &tenants[i]; t.waits {
			m.waits[t.charged()[0].entity] = true
		}
	}
	return m
}

// waiting is the way of acquires that end when tokens are there, however they end.
const waiting = "waiting"

// observer returns what the runtime tells.
func (m *meter) observer() *runtime.Observer {
	locked := func(note func(runtime.Event)) func(context.Context, runtime.Event) {
		return func(_ context.Context, e runtime.Event) {
			m.mu.Lock()
			defer m.mu.Unlock()
			note(e)
		}
	}
	acquired := func(count *int, way string) func(context.Context, runtime.Event) {
		return locked(func(e runtime.Event) {
			*count++
			if !e.Local {
				m.decided[e.Resource]++
			}
			ended := way
			if m.waits[e.Entity] {
				ended = waiting
			}
			m.took[ended] = append(m.took[ended], e.Took)
		})
	}
	closed := func(count *int) func(context.Context, runtime.Event) {
		return locked(func(e runtime.Event) {
			if !e.Local { // else there was nothing to write to the table
				*count++
			}
		})
	}
	return &runtime.Observer{
		Acquired: acquired(&m.count.admitted, "admitted"),
		Denied:   acquired(&m.count.denied, "denied"),
		Degraded: acquired(&m.count.degraded, "degraded"),
		Settled:  closed(&m.count.settled),
		Released: closed(&m.count.released),
		Failed:   locked(func(runtime.Event) { m.count.failed++ }),
		Store: func(_ context.Context, e runtime.StoreEvent) {
			m.mu.Lock()
			defer m.mu.Unlock()
			one := usage{calls: 1, read: e.Read, write: e.Write}
			switch e.Outcome {
			case "refused":
				one.refused = 1
			case "unknown":
				one.unanswered, one.lost = 1, 1
			case "unapplied", "failed":
				one.unanswered = 1
			}
			key := pathKey{e.Resource, e.Path}
			m.paths[key] = m.paths[key].plus(one)
		},
	}
}

// counts returns how many calls ended in which way so far.
func (m *meter) counts() counts {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.count
}

// acquires returns how many acquires of a resource the table has decided so far.
func (m *meter) acquires(resource string) int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.decided[resource]
}

// takenPaths returns the paths that calls took so far, sorted.
func (m *meter) takenPaths() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	var paths []string
	for key := range maps.Keys(m.paths) {
		paths = append(paths, key.path)
	}
	slices.Sort(paths)
	return slices.Compact(paths)
}

// usage returns what those calls took so far that are of some kind.
func (m *meter) usage(of func(resource, path string) bool) usage {
	m.mu.Lock()
	defer m.mu.Unlock()
	var sum usage
	for key, u := range m.paths {
		if of(key.resource, key.path) {
			sum = sum.plus(u)
		}
	}
	return sum
}

// percentiles returns how many acquires ended in this way, and the median and 99th percentile of how long
// they took.
func (m *meter) percentiles(way string) (n int, p50, p99 time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	sorted := slices.Sorted(slices.Values(m.took[way]))
	if len(sorted) == 0 {
		return 0, 0, 0
	}
	at := func(percent int) time.Duration { return sorted[(len(sorted)-1)*percent/100] }
	return len(sorted), at(50), at(99)
}
