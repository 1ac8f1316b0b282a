package main

import (
	"slices"
	"sync"
	"time"

	"github.com/sluice-go/sluice/runtime"
)

// meter is told by all limiters of what happens, and of every call to DynamoDB.
type meter struct {
	mu    sync.Mutex
	count counts
	took  map[string][]time.Duration // of acquires: admitted, denied
	paths map[string]usage           // of calls to DynamoDB
}

type counts struct{ admitted, denied, settled, released, failed int }

// usage is what calls to DynamoDB took.
type usage struct {
	calls, refused int // refused: the condition failed
	read, write    float64
}

func (u usage) plus(v usage) usage {
	return usage{u.calls + v.calls, u.refused + v.refused, u.read + v.read, u.write + v.write}
}

func newMeter() *meter {
	return &meter{took: map[string][]time.Duration{}, paths: map[string]usage{}}
}

// observer returns what the runtime tells.
func (m *meter) observer() *runtime.Observer {
	locked := func(note func(runtime.Event)) func(runtime.Event) {
		return func(e runtime.Event) {
			m.mu.Lock()
			defer m.mu.Unlock()
			note(e)
		}
	}
	return &runtime.Observer{
		Acquired: locked(func(e runtime.Event) {
			m.count.admitted++
			m.took["admitted"] = append(m.took["admitted"], e.Took)
		}),
		Denied: locked(func(e runtime.Event) {
			m.count.denied++
			m.took["denied"] = append(m.took["denied"], e.Took)
		}),
		Settled:  locked(func(runtime.Event) { m.count.settled++ }),
		Released: locked(func(runtime.Event) { m.count.released++ }),
		Failed:   locked(func(runtime.Event) { m.count.failed++ }),
		Store: func(e runtime.StoreEvent) {
			m.mu.Lock()
			defer m.mu.Unlock()
			one := usage{calls: 1, read: e.Read, write: e.Write}
			if e.Outcome == "refused" {
				one.refused = 1
			}
			m.paths[e.Path] = m.paths[e.Path].plus(one)
		},
	}
}

// counts returns how many calls ended in which way so far.
func (m *meter) counts() counts {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.count
}

// usage returns what the calls of some paths took so far.
func (m *meter) usage(paths ...string) usage {
	m.mu.Lock()
	defer m.mu.Unlock()
	var sum usage
	for _, p := range paths {
		sum = sum.plus(m.paths[p])
	}
	return sum
}

// percentiles returns how many acquires ended in this way, and the median and 99th percentile of how long they took.
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
