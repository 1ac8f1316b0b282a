package prefetch_test

import (
	"testing"

	"github.com/sluice-go/sluice/internal/test/redistest"
)

// TestMain fails where goroutines are left.
func TestMain(m *testing.M) { redistest.Main(m) }
