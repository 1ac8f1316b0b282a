package evolution_test

import (
	"path/filepath"
	"testing"

	"github.com/sluice-go/sluice/gen"
)

// TestGenerated: each version's code is what its limits.yaml gives.
func TestGenerated(t *testing.T) {
	for _, version := range []string{"v1", "v2", "v3", "v4"} {
		result, err := gen.Run(gen.Config{Schema: filepath.Join(version, "limits.yaml")})
		if err != nil {
			t.Fatal(err)
		}
		if diff := result.Diff(); diff != "" {
			t.Errorf("%s: run `make generate` and commit:\n%s", version, diff)
		}
	}
}
