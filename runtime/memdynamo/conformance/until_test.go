package conformance_test

import (
	"context"
	"errors"
	"hash/crc32"
	"net/http"
	"net/http/httptest"
	"strconv"
	"testing"
	"time"
)

// TestUntil waits for what comes, past replies that do not even have it, and not for ever for what does not.
func TestUntil(t *testing.T) {
	t.Parallel()
	asked := 0
	engine := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		asked++
		body := map[int]string{1: `{"Status":"CREATING"}`, 2: `{"__type":"InternalFailure"}`,
			3: `{"Status":"ACTIVE"}`}[min(asked, 3)]
		w.Header().Set("X-Amzn-Requestid", "1")
		w.Header().Set("X-Amz-Crc32", strconv.FormatUint(uint64(crc32.ChecksumIEEE([]byte(body))), 10))
		_, _ = w.Write([]byte(body))
	}))
	t.Cleanup(engine.Close)
	r := newRun(server{url: engine.URL})
	s := &step{operation: "DescribeTable", directives: []string{"until Status ACTIVE"}, request: `{}`,
		want: &reply{status: http.StatusOK, body: `{"Status":"ACTIVE"}`}}
	if difference, err := r.check(t.Context(), s); difference != "" || err != nil || asked != 3 {
		t.Errorf("difference %q, error %v after %d requests", difference, err, asked)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	s.directives = []string{"until Status GONE"}
	if _, err := r.check(ctx, s); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("waiting for what never comes: %v", err)
	}
}
