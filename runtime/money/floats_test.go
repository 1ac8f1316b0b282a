package money_test

import (
	"testing"

	"github.com/sluice-go/sluice/internal/test/floats"
)

// TestNoFloats: sums and texts of amounts are whole numbers.
func TestNoFloats(t *testing.T) { floats.None(t, 3) }
