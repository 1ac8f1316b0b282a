package edge_test

import (
	"testing"

	"github.com/sluice-go/sluice/internal/test/floats"
)

// TestNoFloats: what answers say of balances is whole numbers. A StoreEvent has capacity units of DynamoDB.
func TestNoFloats(t *testing.T) { floats.None(t, 3, "StoreEvent") }
