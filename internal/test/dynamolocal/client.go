package dynamolocal

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"syscall"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
)

const (
	pollEvery = 50 * time.Millisecond

	// idleConnections is how many connections a client keeps open to the engine. The SDK keeps 10; tests with 64
	// writers would open and close one per call.
	idleConnections = 128
)

// Client returns a new client of the engine, with an HTTP transport of its own, which Stop closes. Region and
// credentials are made up: the engine takes any.
func (s *Server) Client() *dynamodb.Client {
	transport := http.DefaultTransport.(*http.Transport).Clone() //nolint:forcetypeassert // documented
	transport.MaxIdleConns, transport.MaxIdleConnsPerHost = idleConnections, idleConnections
	s.mu.Lock()
	s.transports = append(s.transports, transport)
	s.mu.Unlock()
	return dynamodb.New(dynamodb.Options{
		BaseEndpoint: aws.String(s.endpoint),
		Region:       "us-east-1",
		Credentials:  credentials.NewStaticCredentialsProvider("sluice", "sluice", ""),
		HTTPClient:   &http.Client{Transport: transport},
	})
}

// awaitAnswer returns nil once the engine lists its tables. It is an error if ctx ends, if the process does,
// or if nobody has listened on its port for as long as refused.
func (s *Server) awaitAnswer(ctx context.Context, refused time.Duration) error {
	client := s.Client()
	exited := s.Exited() // nil, so never ready, for an engine that somebody else runs
	began := time.Now()
	ticker := time.NewTicker(pollEvery)
	defer ticker.Stop()
	for {
		_, err := client.ListTables(ctx, &dynamodb.ListTablesInput{}, func(o *dynamodb.Options) {
			o.RetryMaxAttempts = 1
		})
		select {
		case <-exited: // first: an answer then came from somebody else on the same port
			return errors.New("it exited")
		default:
		}
		if err == nil {
			return nil
		}
		if errors.Is(err, syscall.ECONNREFUSED) && time.Since(began) > refused {
			return fmt.Errorf("nobody has listened there for %v: %w", refused, syscall.ECONNREFUSED)
		}
		select {
		case <-exited:
		case <-ctx.Done():
			return fmt.Errorf("%w (last try: %w)", context.Cause(ctx), err)
		case <-ticker.C:
		}
	}
}
