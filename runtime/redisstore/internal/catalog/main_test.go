package catalog_test

import (
	"testing"

	"github.com/sluice-go/sluice/internal/test/redistest"
)

func TestMain(m *testing.M) { redistest.Main(m) }
