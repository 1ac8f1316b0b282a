package fewkeys_test

import (
	"sync"
	"sync/atomic"
	"testing"

	"github.com/sluice-go/sluice/runtime/internal/fewkeys"
)

// TestMap: each key is made once, however many ask for it, and stays.
func TestMap(t *testing.T) {
	var m fewkeys.Map[int, *int]
	if len(m.All()) != 0 {
		t.Errorf("%v", m.All())
	}
	var made atomic.Int64
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for n := range 1000 {
				v := m.Get(n%50, func(key int) *int {
					made.Add(1)
					return &key
				})
				if *v != n%50 {
					t.Errorf("at %d is %d", n%50, *v)
				}
			}
		})
	}
	all.Wait()
	if made.Load() != 50 || len(m.All()) != 50 {
		t.Errorf("%d keys, made %d times", len(m.All()), made.Load())
	}
	if n := testing.AllocsPerRun(100, func() { m.Get(7, nil) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
