package dynamotest

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
)

// TestLateReplies: a reply that comes after a request's deadline arrives, but not at another client. A
// request that is cancelled ends, although no reply comes.
func TestLateReplies(t *testing.T) {
	asked, answer := make(chan struct{}), make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked <- struct{}{}
		select {
		case <-answer:
		case <-r.Context().Done():
		}
		_, _ = io.WriteString(w, "late")
	}))
	defer server.Close()
	ask := func(ctx context.Context, client aws.HTTPClient) (string, error) {
		r, err := http.NewRequestWithContext(ctx, http.MethodPost, server.URL, http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		reply, err := client.Do(r)
		if err != nil {
			return "", err
		}
		body, err := io.ReadAll(reply.Body)
		return string(body), errors.Join(err, reply.Body.Close())
	}

	late, end := context.WithDeadline(t.Context(), time.Now())
	defer end()
	if _, err := ask(late, server.Client()); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("the deadline has passed, at another client: %v, want %v", err, context.DeadlineExceeded)
	}
	go func() {
		<-asked
		answer <- struct{}{}
	}()
	if body, err := ask(late, awaiting{server.Client()}); err != nil || body != "late" {
		t.Errorf("the deadline has passed: %q, %v, want the reply", body, err)
	}

	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		<-asked
		cancel()
	}()
	if _, err := ask(ctx, awaiting{server.Client()}); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v, want %v", err, context.Canceled)
	}
}
