package httplimit_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"

	slots "github.com/sluice-go/sluice/examples/gateway/limits"
	"github.com/sluice-go/sluice/runtime"
	"github.com/sluice-go/sluice/runtime/dynamo"
	"github.com/sluice-go/sluice/runtime/dynamo/operator"
	"github.com/sluice-go/sluice/runtime/httplimit"
	"github.com/sluice-go/sluice/runtime/memdynamo"
)

// TestLost: the context of a handler whose lease has a slot ends if the lease is lost, as by Close. It
// outlasts a settle, and a client that stays. Whatever the handler does, its slot is back once it has
// returned. ReleaseOn takes a lost lease for no client that has gone.
func TestLost(t *testing.T) {
	for name, test := range map[string]struct {
		next  func(context.Context, *slots.GPT4Lease, *slots.Limiter)
		cause error // of the context's end, in the handler
		rpm   int64 // available then
	}{
		"returns": {func(context.Context, *slots.GPT4Lease, *slots.Limiter) {}, nil, 100},
		"settles": {func(ctx context.Context, l *slots.GPT4Lease, _ *slots.Limiter) {
			_ = l.Settle(ctx, slots.GPT4Cost{TPM: 1})
		}, nil, 99},
		"is lost": {func(ctx context.Context, _ *slots.GPT4Lease, lim *slots.Limiter) {
			_ = lim.Close(context.WithoutCancel(ctx))
			<-ctx.Done()
		}, runtime.ErrLeaseLost, 99},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				client := memdynamo.New().Client()
				if _, err := operator.CreateTable(t.Context(), client, "limits"); err != nil {
					t.Fatal(err)
				}
				lim, err := slots.New(dynamo.New(client, "limits"))
				if err != nil {
					t.Fatal(err)
				}
				user := slots.User{ID: "1", Project: slots.Project{ID: "1"}}
				var of context.Context
				h := httplimit.Middleware(lim.GPT4, func(*http.Request) (slots.GPT4Entity, slots.GPT4Cost, error) {
					return user, slots.GPT4Cost{TPM: 1}, nil
				}, httplimit.ReleaseOn(func(status int) bool { return status == 500 }))(
					http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
						of = r.Context()
						test.next(of, httplimit.Lease[slots.GPT4Cost](of), lim)
						if cause := context.Cause(of); !errors.Is(cause, test.cause) || test.cause == nil && cause != nil {
							t.Errorf("the context's cause is %v, want %v", cause, test.cause)
						}
						w.WriteHeader(http.StatusInternalServerError)
					}))
				h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/", nil))
				if of.Err() == nil {
					t.Error("the context goes on after the handler")
				}
				snap, err := lim.GPT4.Peek(t.Context(), user)
				if err != nil || snap.Available.Parallel != 20 || snap.Available.RPM != test.rpm {
					t.Errorf("left: %+v, %v; want %d requests and 20 slots", snap, err, test.rpm)
				}
			})
		})
	}
}
