package window

import "testing"

// TestClock: a reply shows by how much at least Redis's clock is off.
func TestClock(t *testing.T) {
	for name, test := range map[string]struct{ began, ended, server, want int64 }{
		"as good as right":            {1000, 1200, 1900, 0},
		"behind, by a slow reply":     {1000, 9000, 12_000, 3000},
		"ahead, by a slow reply":      {9000, 12_000, 1000, -8000},
		"right, by a reply that hung": {1000, 60_000, 2000, 0},
	} {
		var c Clock
		if c.Bound(test.began, test.ended, test.server); c.At(0) != test.want {
			t.Errorf("%s: %d ms ahead, want %d", name, c.At(0), test.want)
		}
	}
}
