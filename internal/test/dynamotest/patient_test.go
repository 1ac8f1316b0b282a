package dynamotest

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
)

// TestPatient: a reply that comes after a request's deadline arrives, which it does not without patience. A
// request that is cancelled ends, although no reply comes.
func TestPatient(t *testing.T) {
	asked, answer := make(chan struct{}), make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // only then does the server see that the client has gone
		asked <- struct{}{}
		select {
		case <-answer:
		case <-r.Context().Done():
		}
		w.Header().Set("Content-Type", "application/x-amz-json-1.0")
		_, _ = w.Write([]byte(`{}`))
	}))
	defer server.Close()
	plain := dynamodb.New(dynamodb.Options{
		BaseEndpoint: &server.URL, Region: "eu-central-1", RetryMaxAttempts: 1, HTTPClient: server.Client(),
		Credentials: credentials.NewStaticCredentialsProvider("sluice", "sluice", ""),
	})
	list := func(ctx context.Context, client *dynamodb.Client) error {
		_, err := client.ListTables(ctx, &dynamodb.ListTablesInput{})
		return err
	}

	late, end := context.WithDeadline(t.Context(), time.Now())
	defer end()
	if err := list(late, plain); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("the deadline has passed, without patience: %v, want %v", err, context.DeadlineExceeded)
	}
	go func() {
		<-asked
		answer <- struct{}{}
	}()
	if err := list(late, patient(plain)); err != nil {
		t.Errorf("the deadline has passed: %v, want the reply", err)
	}

	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		<-asked
		cancel()
	}()
	if err := list(ctx, patient(plain)); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v, want %v", err, context.Canceled)
	}
}
