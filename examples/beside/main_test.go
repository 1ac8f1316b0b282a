package main

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluice-go/sluice/runtime"
	"github.com/sluice-go/sluice/runtime/limittest"
	"github.com/sluice-go/sluice/runtime/memdynamo"

	"github.com/sluice-go/sluice/examples/beside/limits"
)

// fleet returns two processes of the service, with options, on one table.
func fleet(t *testing.T, opts ...runtime.Option) (all []*server) {
	t.Helper()
	engine, seen := memdynamo.New(), &comparison{} // a DynamoDB in this process; one count for all
	for range 2 {
		lim, err := limits.New(limittest.StoreOn(t, engine), opts...)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, &server{api: lim.API, seen: seen})
	}
	return all
}

// play sends 24 requests a second for 10 seconds, to one process after the other. It returns the number of
// requests that were not denied.
func play(t *testing.T, processes []*server) (admitted int) {
	t.Helper()
	for n := range 240 {
		w, r := httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "/items", nil)
		r.Header.Set("X-Customer", "acme")
		processes[n%len(processes)].ServeHTTP(w, r)
		if w.Code == http.StatusOK {
			admitted++
		}
		time.Sleep(time.Second / 24) // in a bubble: it takes no time
	}
	return admitted
}

// TestShadow: two processes of the old limiter admit twice the limit, and sluice says so.
func TestShadow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		processes := fleet(t)
		t.Log("admitted to customer acme in 10 s:", play(t, processes))
		t.Log(processes[0].seen)
	})
}

// TestEnforced: out of shadow, sluice holds all processes together to 10 requests a second.
func TestEnforced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		processes := fleet(t, runtime.WithCallDefaults(runtime.Shadow(false)))
		admitted := play(t, processes)
		t.Log("admitted to customer acme in 10 s:", admitted)
		if admitted > 10+10*10 { // the burst, and what comes back in 10 s
			t.Error("the limit does not hold")
		}
	})
}
