package limittest_test

import (
	"testing"
	"time"

	limits "github.com/sluice-go/sluice/generated"
	"github.com/sluice-go/sluice/runtime/limittest"
)

// TestDenyNil: Deny without a limit fails at the call, not at a later acquire.
func TestDenyNil(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("Deny(nil) returned")
		}
	}()
	limittest.NewFake((*limits.GPT4Resource)(nil)).Deny(nil, time.Second)
}
