package prefetch_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluice-go/sluice/internal/test/simulated"
	"github.com/sluice-go/sluice/runtime/memdynamo"
)

// TestWholeBurst has a call for all that a bucket holds, in a process whose small calls leave it full at most
// times. It is admitted: the tokens that the process leaves to others do not keep it out.
func TestWholeBurst(t *testing.T) {
	for _, waits := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			engine := newEngine(t)
			engine.Faults().Latency(memdynamo.Constant(2 * time.Millisecond))
			def := prefetching(t, 100*time.Millisecond, alike(1_000, 1_000), alike(1, 1))
			p := open(t, simulated.Client(engine), def)
			defer p.close(t)
			warm(t, p, hot())
			ctx, cancel := context.WithCancel(t.Context())
			done := make(chan struct{})
			go func() {
				defer close(done)
				for ctx.Err() == nil {
					_, _ = p.Acquire(ctx, hot(), one)
					sleep(8 * time.Millisecond)
				}
			}()
			began := time.Now()
			whole := [2]int64{1_000, 1_000}
			var err error
			if waits {
				bounded, end := context.WithTimeout(ctx, 5*time.Second)
				_, err = p.Wait(bounded, hot(), whole)
				end()
			} else {
				for range 500 {
					sleep(10 * time.Millisecond)
					if _, err = p.Acquire(ctx, hot(), whole); err == nil {
						break
					}
				}
			}
			if err != nil {
				t.Errorf("waits %t: %v", waits, err)
			}
			if took := time.Since(began); took > 100*time.Millisecond {
				t.Errorf("waits %t: admitted after %v, want at most 100 ms", waits, took)
			}
			cancel()
			<-done
		})
	}
}
