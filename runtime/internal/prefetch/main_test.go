package prefetch_test

import (
	"testing"

	"go.uber.org/goleak"
)

// TestMain fails where goroutines are left.
func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }
