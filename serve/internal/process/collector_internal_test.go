package process

import (
	"runtime"
	"runtime/metrics"
	"testing"
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
	if spaced := goal(); spaced < before+spacing {
		t.Errorf("the next collection is at %d bytes, before at %d: %d more wanted", spaced, before, spacing)
	}
	end()
	for _, variable := range []string{"GOGC", "GOMEMLIMIT"} {
		t.Run(variable, func(t *testing.T) {
			t.Setenv(variable, "100")
			before := goal()
			end := SpaceCollections()
			if spaced := goal(); spaced > before+spacing/2 {
				t.Errorf("the next collection is at %d bytes, before at %d, though %s is set", spaced, before, variable)
			}
			end()
		})
	}
}
