package decimal_test

import (
	"testing"

	"github.com/sluice-go/sluice/internal/test/floats"
)

// TestNoFloats: amounts and prices of limits.yaml go from text to whole numbers.
func TestNoFloats(t *testing.T) { floats.None(t, 1) }
