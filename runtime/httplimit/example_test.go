package httplimit_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
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

// A handler that states what it may use before it is called, and what it has used afterwards. Health checks
// are not limited.
func Example() {
	lim := newLimiter()
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v1/chat", func(_ http.ResponseWriter, r *http.Request) {
		_ = httplimit.Lease[limits.GPT4Cost](r.Context()).Settle(r.Context(), limits.GPT4Cost{TPM: 7_500})
	})
	mux.HandleFunc("GET /healthz", func(http.ResponseWriter, *http.Request) {})
	limit := httplimit.Middleware(lim.GPT4, func(r *http.Request) (limits.GPT4Entity, limits.GPT4Cost, error) {
		if r.URL.Path == "/healthz" {
			return nil, limits.GPT4Cost{}, httplimit.ErrUnlimited
		}
		user := limits.User{ID: r.Header.Get("X-User"), Project: limits.Project{ID: "1"}}
		return user, limits.GPT4Cost{TPM: 9_000}, nil
	}, httplimit.Headers())
	handler := limit(mux)

	for _, request := range []string{"POST /v1/chat", "POST /v1/chat", "GET /healthz"} {
		method, path, _ := strings.Cut(request, " ")
		w, r := httptest.NewRecorder(), httptest.NewRequest(method, path, nil)
		r.Header.Set("X-User", "123")
		handler.ServeHTTP(w, r)
		fmt.Println(w.Code, w.Header().Get("RateLimit-Policy"))
	}
	// Output:
	// 200 "rpm";q=100;w=60, "tpm";q=10000;w=60
	// 429 "rpm";q=100;w=60, "tpm";q=10000;w=60
	// 200
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
	fake.Fail(tooFew())
	w := httptest.NewRecorder()
	handler(w, httptest.NewRequest(http.MethodPost, "/v1/chat", nil))
	var body bytes.Buffer
	_ = json.Indent(&body, w.Body.Bytes(), "", "  ")
	fmt.Printf("%d %v\n%s", w.Code, w.Header(), body.String())
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

// tooFew is the error of an acquire that tpm denies.
func tooFew() error {
	return store.AddRefusal(nil, runtime.Refusal{
		Resource: limits.GPT4, Entity: "user-123", Limit: limits.GPT4TPM.String(), Requested: 500, Available: 20,
		RetryAfter: 2880 * time.Millisecond,
	})
}

func newLimiter() *limits.Limiter {
	client := memdynamo.New().Client() // in production: dynamodb.NewFromConfig
	_, _ = operator.CreateTable(context.Background(), client, "rate_limits")
	lim, _ := limits.New(dynamo.New(client, "rate_limits"))
	return lim
}
