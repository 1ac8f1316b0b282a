package cli

import "testing"

func TestExact(t *testing.T) {
	for milli, want := range map[int64]string{
		0: "0", 1_000: "1", 1_234_567: "1234.567", 500: "0.5", 1: "0.001", -1: "-0.001", -1_500: "-1.5", -2_000: "-2", 10_000: "10",
	} {
		if got := exact(milli); got != want {
			t.Errorf("exact(%d) = %s, want %s", milli, got, want)
		}
	}
}
