package grpclimit_test

import (
	"strings"
	"testing"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/sluice-go/sluice/runtime"
	"github.com/sluice-go/sluice/runtime/grpclimit"
)

// errAtMidnight is a denial by a limit with a window.
var errAtMidnight = &runtime.DeniedError{
	Resource: "gpt-4", Limit: "day", Requested: 700, Available: 20, RetryAfter: time.Hour,
	Resets: time.Date(2026, 12, 1, 0, 0, 0, 0, time.UTC),
	Refusals: []runtime.Refusal{{
		Resource: "gpt-4", Limit: "day", Requested: 700, Available: 20, RetryAfter: time.Hour,
		Resets: time.Date(2026, 12, 1, 0, 0, 0, 0, time.UTC),
	}},
}

// later returns how many of a hundred calls are told to come back later than the window ends.
func later(t *testing.T, opts ...grpclimit.Option) (n int) {
	t.Helper()
	fake := newFake()
	fake.Fail(errAtMidnight)
	client := serve(t, &service{}, unary(fake, opts...))
	for range 100 {
		_, err := client.UnaryCall(t.Context(), request(700))
		st, _ := grpclimit.Status(t.Context(), errAtMidnight, opts...)
		for _, err := range []error{err, st.Err()} {
			after := retryInfo(t, err)
			if status.Code(err) != codes.ResourceExhausted || after < time.Hour || after > 2*time.Hour {
				t.Fatalf("%v: %v", after, err)
			}
			if after > time.Hour {
				n++
			}
			if text := violation(err); !strings.HasSuffix(text, " s, resets 2026-12-01T00:00:00Z") {
				t.Fatal(text)
			}
		}
	}
	return n / 2
}

// violation returns the description of the first limit that refused.
func violation(err error) string {
	for _, d := range status.Convert(err).Details() {
		if failure, ok := d.(*errdetails.QuotaFailure); ok {
			return failure.GetViolations()[0].GetDescription()
		}
	}
	return ""
}

// TestSpread: callers that wait for the end of a window come back over the time of Spread. Without it, all
// come back when it ends.
func TestSpread(t *testing.T) {
	if n := later(t, grpclimit.Spread(time.Hour)); n < 90 {
		t.Errorf("%d of 100 come back later", n)
	}
	if n := later(t); n != 0 {
		t.Errorf("control: without Spread, %d of 100 come back later", n)
	}
}

// TestSpreadBounds: a time that makes no sense is a panic at the start.
func TestSpreadBounds(t *testing.T) {
	defer func() {
		if got := recover(); got != "grpclimit: Spread(-1s): pass 0 to 24h0m0s, such as a minute" {
			t.Error(got)
		}
	}()
	grpclimit.Spread(-time.Second)
}
