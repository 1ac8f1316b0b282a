package region_test

import (
	"testing"

	"github.com/sluice-go/sluice/internal/regionsim"
)

// TestSimWithoutEscrow: targets alone, which all regions compute alike, exceed the limit, without any fault.
func TestSimWithoutEscrow(t *testing.T) {
	const seeds = 60
	caught := 0
	for seed := range uint64(seeds) {
		w := small(seed, func(w *regionsim.World) { w.New, w.Books = newNaive, false })
		if r := w.Run(); len(r.Violations) > 0 {
			caught++
			if caught == 1 {
				t.Log(r.Violations[0])
			}
		}
	}
	t.Logf("caught %d of %d", caught, seeds)
	if caught < seeds/2 {
		t.Errorf("%d of %d histories without escrow were caught", caught, seeds)
	}
}
