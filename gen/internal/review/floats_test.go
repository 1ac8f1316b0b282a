package review_test

import (
	"testing"

	"github.com/sluice-go/sluice/internal/test/floats"
)

// TestNoFloats: what is printed of limits is whole numbers. Money never refills, and life is of what does.
func TestNoFloats(t *testing.T) { floats.None(t, 5, "life") }
