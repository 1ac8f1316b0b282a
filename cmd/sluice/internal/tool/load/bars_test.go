package load

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// TestBars: every call is in the bar that its time is in, and there are no more bars than a terminal shows.
func TestBars(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		took := rapid.SliceOfN(rapid.Map(rapid.IntRange(0, 38), func(bit int) time.Duration { return 1 << bit }), 1,
			50).Draw(t, "took")
		h := histogram()
		for _, d := range took {
			record(h, d)
		}
		all := bars(h)
		if len(all) > rows {
			t.Fatalf("%d bars", len(all))
		}
		below := 0.0
		for i, b := range all {
			if b.UpTo <= below {
				t.Fatalf("bar %d ends at %v, the one before at %v", i, b.UpTo, below)
			}
			n := int64(0)
			for _, d := range took {
				if ms := max(milliseconds(d), 1e-7); ms <= b.UpTo && ms > below {
					n++
				}
			}
			if n != b.Calls {
				t.Fatalf("%d calls up to %v ms, the bar has %d", n, b.UpTo, b.Calls)
			}
			below = b.UpTo
		}
		if below < milliseconds(maxOf(took)) {
			t.Fatalf("the last bar ends at %v ms", below)
		}
	})
}

func maxOf(all []time.Duration) (m time.Duration) {
	for _, d := range all {
		m = max(m, d)
	}
	return m
}

// TestBarsOfRoundTimes: a time that is a bound is not above it.
func TestBarsOfRoundTimes(t *testing.T) {
	h := histogram()
	for _, ms := range []time.Duration{1, 2, 2, 3, 5} {
		record(h, ms*time.Millisecond)
	}
	want := []Bar{{1, 1}, {1.5, 0}, {2, 2}, {3, 1}, {5, 1}}
	if diff := cmp.Diff(want, bars(h)); diff != "" {
		t.Error(diff)
	}
}
