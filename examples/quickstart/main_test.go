package main

import (
	"net/http"
	"net/http/httptest"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluice-go/sluice/runtime/limittest"

	"github.com/sluice-go/sluice/examples/quickstart/limits"
)

func TestChatIsLimited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // in virtual time: a minute takes no time
		lim, _ := limits.New(limittest.Store(t)) // the real limiter, on a DynamoDB in the process
		for call, want := range []int{200, 429, 200} {
			w := httptest.NewRecorder()
			chat(lim.GPT4)(w, httptest.NewRequest(http.MethodPost, "/chat?user=123", nil))
			if w.Code != want {
				t.Errorf("call %d: %d, want %d", call, w.Code, want)
			}
			wait, _ := strconv.Atoi(w.Header().Get("Retry-After"))
			time.Sleep(time.Duration(wait) * time.Second)
		}
	})
}
