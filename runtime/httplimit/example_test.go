package httplimit_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"time"

	limits "github.com/sluice-go/sluice/generated"
	"github.com/sluice-go/sluice/runtime"
	"github.com/sluice-go/sluice/runtime/dynamo"
	"github.com/sluice-go/sluice/runtime/dynamo/operator"
	"github.com/sluice-go/sluice/runtime/httplimit"
	"github.com/sluice-go/sluice/runtime/limittest"
	"github.com/sluice-go/sluice/runtime/memdynamo"
	"github.com/sluice-go/sluice/runtime/store"
)

// A handler that states what it may use before it is called, and what it has used afterwards.
func Example() {
	lim := newLimiter()
	chat := httplimit.Middleware(lim.GPT4, func(r *http.Request) (limits.GPT4Entity, limits.GPT4Cost, error) {
		return limits.User{ID: r.Header.Get("X-User"), Project: limits.Project{ID: "1"}},
			limits.GPT4Cost{TPM: 9_000}, nil
	}, httplimit.Headers())
	mux := http.NewServeMux()
	mux.Handle("POST /v1/chat", chat(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_ = httplimit.Lease[limits.GPT4Cost](r.Context()).Settle(r.Context(), limits.GPT4Cost{TPM: 7_500})
	})))

	for range 2 {
		w, r := httptest.NewRecorder(), httptest.NewRequest(http.MethodPost, "/v1/chat", nil)
		r.Header.Set("X-User", "123")
		mux.ServeHTTP(w, r)
		fmt.Println(w.Code, w.Header().Get("RateLimit-Policy"))
	}
	// Output:
	// 200 "rpm";q=100;w=60, "tpm";q=10000;w=60
	// 429 "rpm";q=100;w=60, "tpm";q=10000;w=60
}

// A handler that acquires by itself, as it knows the cost late, leaves the error to WriteError.
func ExampleWriteError() {
	fake := limittest.NewFake((*limits.GPT4Resource)(nil))
	handler := func(w http.ResponseWriter, r *http.Request) {
		lease, err := fake.Acquire(r.Context(), limits.User{ID: "123"}, limits.GPT4Cost{TPM: 500})
		if err != nil {
			if !httplimit.WriteError(w, r, err) {
				http.Error(w, "failed", http.StatusInternalServerError)
			}
			return
		}
		defer lease.Release(r.Context())
	}
	fake.Fail(store.AddRefusal(nil, runtime.Refusal{
		Resource: limits.GPT4, Entity: "user-123", Limit: limits.GPT4TPM.String(), Requested: 500, Available: 20,
		RetryAfter: 2880 * time.Millisecond,
	}))
	w := httptest.NewRecorder()
	handler(w, httptest.NewRequest(http.MethodPost, "/v1/chat", nil))
	fmt.Println(w.Code, w.Header())
	var body bytes.Buffer
	_ = json.Indent(&body, w.Body.Bytes(), "", "  ")
	fmt.Print(body.String())
	// Output:
	// 429 map[Content-Type:[application/problem+json] Retry-After:[3]]
	// {
	//   "type": "https://iana.org/assignments/http-problem-types#quota-exceeded",
	//   "title": "Too Many Requests",
	//   "status": 429,
	//   "detail": "tpm has 20 of the 500 that the request needs: retry after 3 s.",
	//   "resource": "gpt-4",
	//   "limits": [
	//     {
	//       "limit": "tpm",
	//       "requested": 500,
	//       "available": 20,
	//       "retry_after": 3
	//     }
	//   ],
	//   "violated-policies": [
	//     "tpm"
	//   ],
	//   "retry_after": 3
	// }
}

func newLimiter() *limits.Limiter {
	client := memdynamo.New().Client() // in production: dynamodb.NewFromConfig
	_, _ = operator.CreateTable(context.Background(), client, "rate_limits")
	lim, _ := limits.New(dynamo.New(client, "rate_limits"))
	return lim
}
