package limittest_test

import (
	"errors"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	limits "github.com/sluice-go/sluice/generated"
	"github.com/sluice-go/sluice/runtime"
	"github.com/sluice-go/sluice/runtime/limittest"
	"github.com/sluice-go/sluice/runtime/memdynamo"
	"github.com/sluice-go/sluice/runtime/store"
)

// TestOutageIsDecidedHere: through an outage, and while DynamoDB throttles, a process goes on from where its
// buckets stood, and asks the table again when it answers.
func TestOutageIsDecidedHere(t *testing.T) {
	for _, test := range []struct {
		name   string
		breaks func(*memdynamo.Faults)
		policy store.Policy
		opens  bool
	}{
		{"down", func(f *memdynamo.Faults) { f.Down(true) }, store.Local, true},
		{"throttled, where outages are let through", func(f *memdynamo.Faults) { f.Throttle(1) }, store.Allow,
			false},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				engine := memdynamo.New()
				open, turns := false, 0
				lim, err := limits.New(limittest.StoreOn(t, engine), runtime.WithLogger(slog.New(slog.DiscardHandler)),
					runtime.WithObserver(&store.Observer{Breaker: func(now bool, _ error) { open, turns = now, turns+1 }}))
				if err != nil {
					t.Fatal(err)
				}
				here := lim.GPT4.With(runtime.OnUnavailable(test.policy))
				acquire(t, here, user, limits.GPT4Cost{TPM: 15_000})
				test.breaks(engine.Faults())
				for range 8 { // more than opens the breaker
					_, err := here.Acquire(t.Context(), user, limits.GPT4Cost{TPM: 15_000})
					if denied, ok := errors.AsType[*limits.DeniedError](err); !ok || denied.Limit != limits.GPT4TPM {
						t.Errorf("%v, want it denied", err)
					}
				}
				lease, err := here.Wait(t.Context(), user, limits.GPT4Cost{TPM: 15_000})
				if err != nil || !lease.Degraded() || open != test.opens {
					t.Fatalf("%v; degraded %v, breaker open %v", err, lease.Degraded(), open)
				}
				engine.Faults().Clear()
				time.Sleep(2 * time.Second)
				lease, err = here.Acquire(t.Context(), user, limits.GPT4Cost{TPM: 10})
				if err != nil || lease.Degraded() || open {
					t.Errorf("after it: %v; degraded %v, breaker open %v", err, lease.Degraded(), open)
				}
				if want := map[bool]int{true: 2, false: 0}[test.opens]; turns != want {
					t.Errorf("the breaker turned %d times, want %d", turns, want)
				}
			})
		})
	}
}
