package prefetch_test

import (
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluice-go/sluice/internal/test/simulated"
	"github.com/sluice-go/sluice/runtime"
	"github.com/sluice-go/sluice/runtime/bucket"
	"github.com/sluice-go/sluice/runtime/memdynamo"
)

// TestCloseBesideCall closes a process while a call is under way that its project denies. The token that its
// user's bucket gives goes back, although no pool is left for it.
func TestCloseBesideCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := newEngine(t)
		few := []bucket.Limit{bucket.Per(10, time.Hour), bucket.Per(10, time.Hour)}
		def := prefetching(t, life, few, alike(1_000, 1_000))
		p, other := open(t, simulated.Client(engine), def), open(t, simulated.Client(engine), def)
		defer other.close(t)
		if _, err := other.Acquire(t.Context(), hot(), [2]int64{10, 10}); err != nil {
			t.Fatal(err)
		}
		engine.Faults().Latency(memdynamo.Constant(100 * time.Millisecond))
		var call sync.WaitGroup
		call.Go(func() {
			_, err := p.Acquire(t.Context(), userOf("1"), one)
			if denied, ok := errors.AsType[*runtime.DeniedError](err); !ok || denied.Entity != "project-hot" {
				t.Errorf("%v, want a denial by project-hot", err)
			}
		})
		sleep(150 * time.Millisecond)
		p.close(t)
		call.Wait()
		sleep(time.Second)
		if charged := stored(t, engine, "user-1", "rpm_tc"); charged != 0 {
			t.Errorf("%d charged, want 0", charged)
		}
	})
}
