package main

import (
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluice-go/sluice/runtime/limittest"

	"github.com/sluice-go/sluice/examples/llmgateway/limits"
)

func TestGateway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // in which a minute takes no time
		lim, err := limits.New(limittest.Store(t)) // the real limiter, on a DynamoDB in the process
		if err != nil {
			t.Fatal(err)
		}
		for n, want := range []int{200, 200, 200, 429, 200} { // 3 requests a minute, and one after Retry-After
			r := httptest.NewRequest("POST", "/", strings.NewReader(`{"prompt": "Hello", "max_tokens": 50}`))
			r.Header.Set("Authorization", "Bearer key-1")
			w := httptest.NewRecorder()
			gateway{lim.Chat}.ServeHTTP(w, r)
			if w.Code != want {
				t.Errorf("request %d: %d, want %d", n+1, w.Code, want)
			}
			wait, _ := strconv.Atoi(w.Header().Get("Retry-After"))
			time.Sleep(time.Duration(wait) * time.Second)
		}
		snap, err := lim.Chat.Peek(t.Context(), users["key-2"])
		if err != nil || snap.Available.RPM != 3 {
			t.Errorf("bob has %+v, %v", snap, err) // alice took nothing of his
		}
	})
}
