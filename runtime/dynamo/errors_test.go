package dynamo

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/credentials/ec2rolecreds"
	"github.com/aws/aws-sdk-go-v2/feature/ec2/imds"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams"
	"github.com/aws/smithy-go"

	"github.com/sluice-go/sluice/runtime/dynamo/internal/wire"
	"github.com/sluice-go/sluice/runtime/dynamo/lean"
	"github.com/sluice-go/sluice/runtime/internal/item"
	"github.com/sluice-go/sluice/runtime/store"
)

// TestClassify has the real client meet what a network does. A request that was never sent has no unknown
// outcome, whatever another service, such as that of the credentials, answered.
func TestClassify(t *testing.T) {
	answer := func(status int, body string) string {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(status)
			_, _ = w.Write([]byte(body))
		}))
		t.Cleanup(s.Close)
		return s.URL
	}
	down := answer(http.StatusServiceUnavailable, "")
	over, cancel := context.WithCancel(t.Context())
	cancel()
	// A request that arrives, and whose caller gives up before the reply.
	cut, giveUp := context.WithCancel(t.Context())
	tested := make(chan struct{})
	silent := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		giveUp()
		<-tested
	}))
	t.Cleanup(silent.Close)
	t.Cleanup(func() { close(tested) })
	static := credentials.NewStaticCredentialsProvider("a", "b", "")
	role := aws.NewCredentialsCache(ec2rolecreds.New(func(o *ec2rolecreds.Options) {
		o.Client = imds.New(imds.Options{Endpoint: down, Retryer: aws.NopRetryer{}})
	}))
	for name, test := range map[string]struct {
		ctx         context.Context
		endpoint    string
		credentials aws.CredentialsProvider
		want        wire.Outcome
		setup       bool
	}{
		"503 without a body": {t.Context(), down, static, wire.Unknown, false},
		"502 of a proxy": {t.Context(), answer(http.StatusBadGateway, "<html>"), static, wire.Unknown,
			false},
		"429 of a proxy": {t.Context(), answer(http.StatusTooManyRequests, "{}"), static, wire.Throttled,
			false},
		"garbled reply":          {t.Context(), answer(http.StatusOK, "{"), static, wire.Unknown, false},
		"nobody listens":         {t.Context(), "http://127.0.0.1:1", static, wire.NotSent, false},
		"context over before":    {over, down, static, wire.NotSent, false},
		"cut off in flight":      {cut, silent.URL, static, wire.Unknown, false},
		"role's service is down": {t.Context(), down, role, wire.NotSent, false},
		"throttled": {
			t.Context(),
			answer(http.StatusBadRequest, `{"__type":"com.amazon.coral.availability#ThrottlingException"}`), static,
			wire.Throttled, false,
		},
		"throttled, by its older name": {t.Context(), answer(http.StatusBadRequest, `{"__type":"Throttling"}`),
			static, wire.Throttled, false},
		"no access": {
			t.Context(),
			answer(http.StatusBadRequest, `{"__type":"com.amazonaws.dynamodb.v20120810#AccessDeniedException"}`),
			static, wire.Failed, true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			client := dynamodb.New(
				dynamodb.Options{Region: "eu-west-1", BaseEndpoint: &test.endpoint, Credentials: test.credentials},
			)
			_, err := client.UpdateItem(
				test.ctx,
				&dynamodb.UpdateItemInput{TableName: aws.String("t"), Key: item.VersionKey()},
				wire.NoRetry,
			)
			if err == nil {
				t.Fatal("no error")
			}
			got, _ := wire.Classify(err)
			if got != test.want {
				t.Errorf("%v is %v, want %v", err, got, test.want)
			}
			// A client's own middleware may wrap what the transport returned.
			op, ok := errors.AsType[*smithy.OperationError](err)
			if !ok {
				t.Fatalf("a %T", err)
			}
			wrapped := &smithy.OperationError{Err: fmt.Errorf("middleware: %w", op.Err)}
			if again, _ := wire.Classify(wrapped); again != got {
				t.Errorf("wrapped it is %v, want %v", again, got)
			}
			if _, setup := errors.AsType[*store.SetupError](wire.Explain("t", got, err)); setup != test.setup {
				t.Errorf("%v: a SetupError is %v, want %v", err, setup, test.setup)
			}
		})
	}
}

// TestOtherServer: if another server answers than DynamoDB, as at a wrong endpoint, the error names the
// endpoint, without a user and a password, and what to do. Errors of DynamoDB's and outages do not.
func TestOtherServer(t *testing.T) {
	for name, test := range map[string]struct {
		status int
		body   string
		want   wire.Outcome
		other  bool
	}{
		"404 as text":      {http.StatusNotFound, "404 page not found\n", wire.Unknown, true},
		"404 as JSON":      {http.StatusNotFound, `{"message": "no such page"}`, wire.Failed, true},
		"405, empty":       {http.StatusMethodNotAllowed, "", wire.Failed, true},
		"a redirect":       {http.StatusFound, "", wire.Failed, true},
		"400 as HTML":      {http.StatusBadRequest, "<html>", wire.Unknown, true},
		"200 as HTML":      {http.StatusOK, "<html>", wire.Unknown, true},
		"200, cut short":   {http.StatusOK, `{"Item": `, wire.Unknown, false},
		"502 as HTML":      {http.StatusBadGateway, "<html>", wire.Unknown, false},
		"an error's code":  {http.StatusBadRequest, `{"__type": "ValidationException"}`, wire.Failed, false},
		"a throttled call": {http.StatusTooManyRequests, "{}", wire.Throttled, false},
	} {
		t.Run(name, func(t *testing.T) {
			s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.WriteHeader(test.status)
				_, _ = w.Write([]byte(test.body))
			}))
			t.Cleanup(s.Close)
			at := s.Listener.Addr()
			config := aws.Config{
				Region: "eu-west-1", Credentials: credentials.NewStaticCredentialsProvider("a", "b", ""),
				BaseEndpoint: aws.String(fmt.Sprintf("http://me:secret@%s/console/", at)),
			}
			want := fmt.Sprintf("http://%s/console answers with status %d, and not as DynamoDB does", at, test.status)
			for _, client := range []wire.Getter{dynamodb.NewFromConfig(config), lean.New(config)} {
				_, err := client.GetItem(t.Context(), &dynamodb.GetItemInput{
					TableName: aws.String("t"), Key: item.VersionKey(),
				}, wire.NoRetry)
				got, _ := wire.Classify(err)
				text := wire.Explain("t", got, err).Error()
				if got != test.want || strings.Contains(text, want) != test.other ||
					strings.Contains(text, "correct the endpoint") != test.other || strings.Contains(text, "secret") {
					t.Errorf("%T: %v, want %v; the error is %s, of another server: %v", client, got, test.want, text,
						test.other)
				}
			}
		})
	}
}

// TestEndpointCure: the variable is that of the service that was called.
func TestEndpointCure(t *testing.T) {
	for service, want := range map[string]string{
		dynamodb.ServiceID:        "AWS_ENDPOINT_URL_DYNAMODB)",
		dynamodbstreams.ServiceID: "AWS_ENDPOINT_URL_DYNAMODB_STREAMS)",
	} {
		if got := wire.EndpointCure(&smithy.OperationError{ServiceID: service}); !strings.Contains(got, want) {
			t.Errorf("%s: %s, want %s", service, got, want)
		}
	}
}
