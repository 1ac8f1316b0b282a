package region_test

import (
	"testing"
	"os"
	"strings"

	"pgregory.net/rapid"

	"github.com/sluice-go/sluice/internal/regionsim"
)

func TestDbgKinds(t *testing.T) {
	var kinds []regionsim.Kind
	for _, k := range strings.Split(os.Getenv("KINDS"), ",") {
		kinds = append(kinds, regionsim.Kind(k))
	}
			rapid.Check(t, func(t *rapid.T) {
				w := drawn(t, kinds)
				r := play(t, w)
				if len(r.Violations) > 0 {
					t.Fatal(r.Violations[0])
				}
				if r.Last.Unheld > 1e-9 || r.Last.Unheld < -1e-9 {
					t.Fatalf("long after the last fault %.6f of all is in nobody's hands", r.Last.Unheld)
				}
			})
}
