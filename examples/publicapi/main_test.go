package main

import (
	"net/http"
	"net/http/httptest"
	"net/netip"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluice-go/sluice/runtime/limittest"

	"github.com/sluice-go/sluice/examples/publicapi/limits"
)

func TestCallersAreApart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // in which a second takes no time
		lim, err := limits.New(limittest.Store(t)) // the real limiter, on a DynamoDB in the process
		if err != nil {
			t.Fatal(err)
		}
		keys := map[string]limits.Key{"secret-1": {ID: "acme"}}
		api := newAPI(lim.API, keys, netip.MustParsePrefix("10.0.0.0/8"))
		get := func(from, forwarded, authorization string) int {
			w, r := httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "/items", nil)
			r.RemoteAddr = from + ":1234"
			r.Header.Set("X-Forwarded-For", forwarded)
			r.Header.Set("Authorization", authorization)
			api.ServeHTTP(w, r)
			return w.Code
		}
		for _, c := range []struct {
			from, forwarded, authorization string
			want                           int
		}{
			{from: "203.0.113.7", want: 200},
			{from: "203.0.113.7", want: 200},
			{from: "203.0.113.7", want: 200},
			{from: "203.0.113.7", want: 429},                                   // the burst is 3
			{from: "203.0.113.7", forwarded: "198.51.100.1", want: 429},        // anyone can write this header
			{from: "203.0.113.7", authorization: "Bearer secret-1", want: 200}, // a customer has its own limits
			{from: "203.0.113.7", authorization: "Bearer guessed", want: 401},  // a wrong key makes no bucket
			{from: "10.0.0.1", forwarded: "203.0.113.7", want: 429},            // the same caller, by the proxy
			{from: "10.0.0.1", forwarded: "1.2.3.4, 198.51.100.1", want: 200},  // another, by the proxy
			{from: "2001:db8::1", want: 200}, {from: "2001:db8::2", want: 200}, // one /64 network,
			{from: "2001:db8::3", want: 200}, {from: "2001:db8::4", want: 429}, // so one caller
		} {
			if got := get(c.from, c.forwarded, c.authorization); got != c.want {
				t.Errorf("%+v: %d", c, got)
			}
		}
		time.Sleep(time.Second)
		if got := get("203.0.113.7", "", ""); got != 200 {
			t.Errorf("a second later: %d", got)
		}
	})
}
