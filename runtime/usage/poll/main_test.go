package poll_test

import (
	"testing"

	"github.com/sluice-go/sluice/internal/test/dynamotest"
)

func TestMain(m *testing.M) { dynamotest.Main(m) }
