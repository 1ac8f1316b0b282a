package process

import (
	"errors"
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

// TestSpacing: small containers and machines get a part of their memory, and large ones a bounded part.
func TestSpacing(t *testing.T) {
	const none = 0
	as := func(n uint64, otherwise error) memlimit.Provider {
		if n == none {
			return func() (uint64, error) { return 0, otherwise }
		}
		return memlimit.Limit(n)
	}
	other := errors.New("cannot be read")
	for _, test := range []struct {
		container, machine uint64
		err                error // of the container, if it has no limit
		want               uint64
	}{
		{64 << 20, 64 << 30, nil, 16 << 20},
		{256 << 20, 64 << 30, nil, 64 << 20},
		{1 << 30, 64 << 30, nil, 256 << 20},
		{64 << 30, 64 << 30, nil, 256 << 20},
		{2 << 30, 512 << 20, nil, 128 << 20},
		{none, 64 << 30, memlimit.ErrNoLimit, 256 << 20},
		{none, 512 << 20, memlimit.ErrCgroupsNotSupported, 128 << 20},
		{none, 64 << 30, other, unknownSpacing},
		{none, none, memlimit.ErrNoLimit, unknownSpacing},
	} {
		if got := spacing(as(test.container, test.err), as(test.machine, other)); got != test.want {
			t.Errorf("%+v: %d MiB", test, got>>20)
		}
	}
}
