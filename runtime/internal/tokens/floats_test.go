package tokens_test

import (
	"testing"

	"github.com/sluice-go/sluice/internal/test/floats"
)

// TestNoFloats: costs are checked and stored as whole numbers.
func TestNoFloats(t *testing.T) { floats.None(t, 1) }
