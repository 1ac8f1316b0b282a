package main

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/sluice-go/sluice/examples/gateway/limits"
)

// TestSlots: of 25 calls of a key at once, at three gateways, 20 run. The others learn to come back in a
// second. The check passes then; it fails if one call more ran, or if a slot is not back.
func TestSlots(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sim := bench(t)
		var mu sync.Mutex
		got := map[int]int{}
		var calls sync.WaitGroup
		for n := range slots + 5 {
			calls.Go(func() {
				at := sim.fronts[n%len(sim.fronts)]
				resp, err := at.client.Do(chatting(t.Context(), t, at))
				if err != nil {
					t.Error(err)
					return
				}
				_, err = io.Copy(io.Discard, resp.Body)
				if err := errors.Join(err, resp.Body.Close()); err != nil {
					t.Error(err)
				}
				if resp.StatusCode == http.StatusTooManyRequests && resp.Header.Get("Retry-After") != "1" {
					t.Errorf("Retry-After: %q", resp.Header.Get("Retry-After"))
				}
				mu.Lock()
				defer mu.Unlock()
				got[resp.StatusCode]++
			})
		}
		calls.Wait()
		if got[http.StatusTooManyRequests] != 5 || sim.provider.peak("alice") != slots {
			t.Errorf("answers %v, %d at once", got, sim.provider.peak("alice"))
		}
		check := func(text, failure string) {
			t.Helper()
			after, err := sim.stored(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			var out strings.Builder
			err = sim.checkSlots(&out, after)
			if out.String() != text || (err == nil) != (failure == "") || err != nil && err.Error() != failure {
				t.Errorf("%v\n%s", err, &out)
			}
		}
		check("ok: At most 20 calls of a key ran at the model at once, of 20 slots; all slots are back.\n", "")

		// The controls: a slot that a call still has, and a call more than slots.
		lease, err := sim.limiters[0].GPT4.Acquire(t.Context(), sim.tenants[0].user, limits.GPT4Cost{TPM: 1})
		if err != nil {
			t.Fatal(err)
		}
		check("", "user-alice has 1 of 20 slots taken, and no call")
		lease.Keep(t.Context())
		sim.provider.change(running{user: "alice"}, slots+1)
		check("check: user-alice had 21 calls at the model at once, of 20 slots\n",
			"1 limits had more calls in flight than slots")
		if err := sim.close(t.Context()); err != nil {
			t.Fatal(err)
		}
	})
}
