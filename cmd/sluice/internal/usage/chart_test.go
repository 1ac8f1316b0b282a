package usage

import (
	"testing"
	"time"

	"github.com/sluice-go/sluice/cmd/sluice/internal/schemafile"
)

// TestNoRefillInFlight: the capacity of a limit in flight is no allowance for an hour, as that of one that
// refills is.
func TestNoRefillInFlight(t *testing.T) {
	s, err := schemafile.Flag{File: "../../../../gen/testdata/golden/inflight/limits.yaml"}.Read()
	if err != nil {
		t.Fatal(err)
	}
	for limit, want := range map[string]float64{"parallel": 0, "month": 0, "rpm": 60_000} {
		if got := refills(s, "user-1", "calls", limit, time.Hour); got != want {
			t.Errorf("%s: %v in an hour, want %v", limit, got, want)
		}
	}
}
