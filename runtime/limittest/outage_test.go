package limittest_test

import (
	"errors"
	"fmt"
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
					if denied, ok := errors.AsType[*limits.DeniedError](err); !ok || !denied.By(limits.GPT4TPM) {
						t.Errorf("%v, want it denied", err)
					}
				}
				lease, err := here.Wait(t.Context(), user, limits.GPT4Cost{TPM: 15_000}, runtime.MaxWait(2*time.Minute))
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

// TestRepliesAreSignsOfLife: charges of a crowd of new users get no reply, but their reads do. So the breaker
// stays closed, and Allow decides as Local. The control is an engine that is down: Allow admits them all.
func TestRepliesAreSignsOfLife(t *testing.T) {
	for _, test := range []struct {
		name     string
		breaks   func(*memdynamo.Faults)
		opens    bool
		admitted int
	}{
		{"reads are answered", func(f *memdynamo.Faults) {
			f.Script(func(r memdynamo.Request) memdynamo.Fault {
				if r.Operation == "TransactWriteItems" {
					return memdynamo.LoseRequest
				}
				return memdynamo.None
			})
		}, false, 10},
		{"down", func(f *memdynamo.Faults) { f.Down(true) }, true, 20},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				engine := memdynamo.New()
				opened := false
				lim, err := limits.New(limittest.StoreOn(t, engine), runtime.WithLogger(slog.New(slog.DiscardHandler)),
					runtime.WithObserver(&store.Observer{Breaker: func(open bool, _ error) { opened = open }}))
				if err != nil {
					t.Fatal(err)
				}
				test.breaks(engine.Faults())
				ended := make(chan error)
				for i := range 20 {
					go func() {
						invented := limits.User{ID: fmt.Sprint(i), Project: limits.Project{ID: "1"}}
						_, err := lim.GPT4.Acquire(t.Context(), invented, limits.GPT4Cost{TPM: 15_000},
							runtime.OnUnavailable(runtime.Allow))
						ended <- err
					}()
				}
				admitted := 0
				for range 20 {
					if <-ended == nil {
						admitted++
					}
				}
				if admitted != test.admitted || opened != test.opens {
					t.Errorf("%d admitted, breaker open %t; want %d, %t", admitted, opened, test.admitted, test.opens)
				}
			})
		})
	}
}
