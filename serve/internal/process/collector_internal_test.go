package process

import (
	"runtime"
	"runtime/metrics"
	"testing"

	"github.com/KimMachineGun/automemlimit/memlimit"
)

// TestSpaceCollections looks at the size of the heap at which Go collects next.
func TestSpaceCollections(t *testing.T) {
	goal := func() uint64 {
		runtime.GC()
		sample := []metrics.Sample{{Name: "/gc/heap/goal:bytes"}}
		metrics.Read(sample)
		return sample[0].Value.Uint64()
	}
	for _, variable := range []string{"GOGC", "GOMEMLIMIT"} {
		t.Setenv(variable, "")
	}
	before := goal()
	end := SpaceCollections()
	if spaced := goal(); spaced < before+unknownSpacing { // a machine that runs tests has 256 MiB
		t.Errorf("the next collection is at %d bytes, before at %d", spaced, before)
	}
	end()
	for _, variable := range []string{"GOGC", "GOMEMLIMIT"} {
		t.Run(variable, func(t *testing.T) {
			t.Setenv(variable, "100")
			before := goal()
			end := SpaceCollections()
			if spaced := goal(); spaced > before+unknownSpacing/2 {
				t.Errorf("the next collection is at %d bytes, before at %d, though %s is set", spaced, before, variable)
			}
			end()
		})
	}
}

// TestSpacing: small containers get a part of their memory, and machines a bounded part.
func TestSpacing(t *testing.T) {
	for memory, want := range map[uint64]uint64{
		64 << 20: 16 << 20, 256 << 20: 64 << 20, 1 << 30: 256 << 20, 64 << 30: 256 << 20,
	} {
		if got := spacing(memlimit.Limit(memory)); got != want {
			t.Errorf("of %d MiB: %d MiB, want %d", memory>>20, got>>20, want>>20)
		}
	}
	unknown := func() (uint64, error) { return 0, memlimit.ErrNoLimit }
	if got := spacing(unknown); got != unknownSpacing {
		t.Errorf("of unknown memory: %d MiB", got>>20)
	}
}
