package store_test

import (
	"testing"

	"github.com/sluice-go/sluice/internal/test/floats"
)

// TestNoFloats: costs, balances and refusals are whole numbers. A StoreEvent has capacity units of DynamoDB.
func TestNoFloats(t *testing.T) { floats.None(t, 10, "StoreEvent") }
