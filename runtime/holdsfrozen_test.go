package runtime_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluice-go/sluice/runtime"
)

// leaping is a clock that leaps: as for a process that was frozen, no pause ends by that.
type leaping struct{ by atomic.Int64 }

func (c *leaping) Now() time.Time { return time.Now().Add(time.Duration(c.by.Load())) }

func (c *leaping) After(d time.Duration) <-chan time.Time { return time.After(d) }

// TestFrozen: a call that runs before the Keeper does, after its process was frozen, learns by its context's
// Err that its lease is lost. Before that the context is as it was.
func TestFrozen(t *testing.T) {
	for name, test := range map[string]struct {
		frozen time.Duration
		want   error
	}{
		"for a while":     {56 * time.Second, nil},
		"for two minutes": {2 * time.Minute, runtime.ErrLeaseLost},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				clock := &leaping{}
				_, r := openSlots(t, &fake{}, runtime.WithClock(clock))
				lease, err := r.Acquire(t.Context(), user{"1"}, cost{})
				if err != nil {
					t.Fatal(err)
				}
				own := lease.Context(t.Context())
				child, cancel := context.WithCancel(own)
				defer cancel()
				equal(t, "at first", own.Err(), nil)
				clock.by.Store(int64(test.frozen))
				if err := own.Err(); (err != nil) != (test.want != nil) {
					t.Errorf("the context's error is %v", err)
				}
				for _, ctx := range []context.Context{own, child} {
					if cause := context.Cause(ctx); !errors.Is(cause, test.want) {
						t.Errorf("the cause is %v, want %v", cause, test.want)
					}
				}
				lease.Keep(t.Context())
			})
		})
	}
}
