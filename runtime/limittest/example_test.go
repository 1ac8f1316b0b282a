package limittest_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strconv"
	"time"

	limits "github.com/sluice-go/sluice/generated"
	"github.com/sluice-go/sluice/runtime"
	"github.com/sluice-go/sluice/runtime/limittest"
	"github.com/sluice-go/sluice/runtime/store"
)

// gateway is a handler as users have it: it takes what a call may use, and settles for what it used.
type gateway struct{ gpt4 limits.GPT4Acquirer }

func (g *gateway) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	lease, err := g.gpt4.Acquire(r.Context(), limits.User{ID: r.FormValue("user")}, limits.GPT4Cost{TPM: 500})
	if denied, ok := errors.AsType[*limits.DeniedError](err); ok {
		w.Header().Set("Retry-After", strconv.Itoa(int((denied.RetryAfter+time.Second-1)/time.Second)))
		w.WriteHeader(http.StatusTooManyRequests)
		return
	}
	if err != nil {
		w.WriteHeader(http.StatusServiceUnavailable)
		return
	}
	defer lease.Release(r.Context())
	if err := lease.Settle(r.Context(), limits.GPT4Cost{TPM: 321}); err != nil {
		w.WriteHeader(http.StatusInternalServerError)
	}
}

// A handler's answers, on a Fake that admits, then denies, then fails.
func ExampleFake() {
	fake := limittest.NewFake((*limits.GPT4Resource)(nil))
	handler := &gateway{gpt4: fake}
	ask := func() {
		answer := httptest.NewRecorder()
		handler.ServeHTTP(answer, httptest.NewRequest(http.MethodPost, "/v1/chat?user=1", nil))
		fmt.Printf("%d %v\n", answer.Code, answer.Header())
	}
	ask()
	fake.Deny(limits.GPT4TPM, 1500*time.Millisecond)
	ask()
	fake.Fail(&limits.UnavailableError{Err: errors.New("connection refused")})
	ask()

	for _, call := range fake.Calls() {
		fmt.Printf("%s of %d, settled for %d: %T\n", call.Method, call.Cost.TPM, call.Settled.TPM, call.Err)
	}
	// Output:
	// 200 map[]
	// 429 map[Retry-After:[2]]
	// 503 map[]
	// Acquire of 500, settled for 321: <nil>
	// Acquire of 500, settled for 0: *store.DeniedError
	// Acquire of 500, settled for 0: *store.UnavailableError
}

// A call may prefer to be served while the store is down.
func ExampleFake_Fail() {
	fake := limittest.NewFake((*limits.GPT4Resource)(nil))
	fake.Fail(&limits.UnavailableError{Err: errors.New("connection refused")})

	user, cost := limits.User{ID: "1"}, limits.GPT4Cost{TPM: 500}
	_, err := fake.Acquire(context.Background(), user, cost)
	unavailable, _ := errors.AsType[*limits.UnavailableError](err)
	fmt.Println(unavailable.Err)
	lease, err := fake.Acquire(context.Background(), user, cost, runtime.OnUnavailable(store.Allow))
	fmt.Println(lease.Degraded(), err)
	// Output:
	// connection refused
	// true <nil>
}
