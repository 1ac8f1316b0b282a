package invariant_test

import (
	"testing"

	"github.com/sluice-go/sluice/internal/dynamotest"
)

func TestMain(m *testing.M) { dynamotest.Main(m) }
