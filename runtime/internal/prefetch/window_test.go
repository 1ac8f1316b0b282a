package prefetch_test

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluice-go/sluice/internal/test/conformance/windowed"
	"github.com/sluice-go/sluice/internal/test/definitions"
	"github.com/sluice-go/sluice/internal/test/simulated"
	"github.com/sluice-go/sluice/internal/test/storetest"
	"github.com/sluice-go/sluice/runtime"
	"github.com/sluice-go/sluice/runtime/bucket"
	"github.com/sluice-go/sluice/runtime/dynamo/codec"
	"github.com/sluice-go/sluice/runtime/memdynamo"
	"github.com/sluice-go/sluice/runtime/store"
)

// window is the length of the windows of tests.
const window = 2 * time.Second

// forBoth returns gpt-4 as generated for both stores, with windows of tpm.
func forBoth(t *testing.T) store.Definition {
	t.Helper()
	all, err := definitions.Of(windowed.New)
	if err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(all, func(d store.Definition) bool { return d.Spec().Resource == windowed.GPT4 })
	return all[i]
}

// windowedBy returns gpt-4 with so much of tpm in each window from the first use, and no bound of rpm.
func windowedBy(t *testing.T, tokens int64) *storetest.Variant {
	t.Helper()
	limits := []bucket.Limit{bucket.Per(1_000_000, time.Second), bucket.InWindows(tokens, window)}
	def := storetest.Family(forBoth(t).(codec.Resource), store.CascadeAtomic, limits, limits)
	def.Numbers.Prefetch = life
	for i := range def.Numbers.Kinds {
		def.Numbers.Kinds[i].Windows = []*bucket.Calendar{
			nil, {Unit: bucket.FirstUse, Length: window.Milliseconds()},
		}
	}
	return def
}

// TestWindows has windows that end while blocks are out: those end too, and the next window has no token less
// than what was admitted in it.
func TestWindows(t *testing.T) {
	for name, settled := range map[string]bool{"kept": false, "settled at half": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				engine := newEngine(t)
				def := windowedBy(t, 100_000)
				var all []*process
				for range 3 {
					all = append(all, open(t, simulated.Client(engine), def))
				}
				engine.Faults().Latency(memdynamo.Constant(time.Millisecond))
				type admission struct {
					called, ended time.Time
					tokens        int64
				}
				var got []admission
				used := int64(0)
				for i := range 1700 {
					at := time.Now()
					lease, err := all[i%3].Acquire(t.Context(), hot(), [2]int64{1, 10})
					if err != nil {
						t.Fatal(err)
					}
					ended, tokens := time.Now(), int64(10)
					if settled {
						if err := lease.Settle(t.Context(), [2]int64{1, 5}); err != nil {
							t.Fatal(err)
						}
						tokens = 5
					}
					got, used = append(got, admission{at, ended, tokens}), used+tokens
					sleep(3*time.Millisecond - time.Since(at)%(3*time.Millisecond))
				}
				for _, p := range all {
					p.close(t)
				}
				opened := time.UnixMilli(stored(t, engine, "project-hot", "tpm_we")).Add(-window)
				within, opening := int64(0), int64(0) // by calls in the last window, and by one under way when it opened
				for _, a := range got {
					switch {
					case !a.called.Before(opened):
						within += a.tokens
					case !a.ended.Before(opened):
						opening += a.tokens
					}
				}
				if within == 0 || within == used {
					t.Fatalf("%d of %d used in the last window", within, used)
				}
				taken := 100_000 - stored(t, engine, "project-hot", "tpm_tk")/1000
				if taken != within && taken != within+opening {
					t.Errorf("%d are taken from the last window, want %d, or %d more", taken, within, opening)
				}
				if charged := stored(t, engine, "project-hot", "tpm_tc"); charged != used*1000 {
					t.Errorf("%d charged, want %d", charged, used*1000)
				}
			})
		})
	}
}

// TestWaiterWakes has a call that waits for tokens that another one gives back: it has them at once.
func TestWaiterWakes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := newEngine(t)
		limits := []bucket.Limit{bucket.Per(200, time.Hour), bucket.Per(200, time.Hour)}
		p := open(t, simulated.Client(engine), prefetching(t, life, limits, limits))
		defer p.close(t)
		large, err := p.Acquire(t.Context(), hot(), [2]int64{100, 100})
		if err != nil {
			t.Fatal(err)
		}
		warm(t, p, hot())
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		served := make(chan time.Time, 1)
		go func() {
			if lease, err := p.Wait(ctx, hot(), [2]int64{50, 50}, runtime.MaxWait(50*time.Minute)); err != nil {
				t.Error(err)
			} else {
				lease.Keep(ctx)
			}
			served <- time.Now()
		}()
		sleep(300 * time.Millisecond)
		released := time.Now()
		large.Release(t.Context())
		if took := (<-served).Sub(released); took > 10*time.Millisecond {
			t.Errorf("the waiter was served %v after the release", took)
		}
	})
}
