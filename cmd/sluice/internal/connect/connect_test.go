package connect

import (
	"context"
	"errors"
	"net"
	"net/http"
	"syscall"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/sluice-go/sluice/runtime/dynamo/operator"
)

// failing is a network on which every call ends in err.
type failing struct{ err error }

func (f failing) RoundTrip(*http.Request) (*http.Response, error) { return nil, f.err }

// TestExplain: where the network is at fault the message says so, and other errors stay.
func TestExplain(t *testing.T) {
	refused := &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}
	unknown := &net.OpError{Op: "dial", Net: "tcp",
		Err: &net.DNSError{Name: "dynamo", Err: "no such host", IsNotFound: true}}
	keys := credentials.NewStaticCredentialsProvider("id", "secret", "")
	noKeys := aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials,
		error) {
		return aws.Credentials{}, refused
	})
	const cure = ": check the network and the region; to try sluice without AWS, run `sluice dev` and pass " +
		"--endpoint"
	for _, tc := range []struct {
		name     string
		endpoint *string
		keys     aws.CredentialsProvider
		network  error
		want     string // "" for the error as it was
	}{
		{"AWS refuses", nil, keys, refused, "DynamoDB does not answer in eu-west-1" + cure},
		{"no AWS", nil, keys, unknown, "DynamoDB does not answer in eu-west-1 (lookup dynamo: no such host)" +
			cure},
		{"unknown host", aws.String("http://dynamo:8000"), keys, unknown, "http://dynamo:8000 does not answer " +
			"(lookup dynamo: no such host): start `sluice dev`, or correct the endpoint (--endpoint, " +
			"AWS_ENDPOINT_URL_DYNAMODB)"},
		{"nobody has credentials", aws.String("http://dynamo:8000"), noKeys, refused, ""},
		{"a proxy", nil, keys, &net.OpError{Op: "proxyconnect", Net: "tcp", Err: refused}, ""},
		{"Ctrl-C", nil, keys, &net.OpError{Op: "dial", Net: "tcp", Err: context.Canceled}, ""},
		{"cut off", nil, keys, &net.OpError{Op: "read", Net: "tcp", Err: syscall.ECONNRESET}, ""},
		{"another failure", nil, keys, errors.New("broken"), ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			client := dynamodb.New(dynamodb.Options{
				Region: "eu-west-1", BaseEndpoint: tc.endpoint, Credentials: tc.keys, RetryMaxAttempts: 1,
				HTTPClient: &http.Client{Transport: failing{tc.network}},
			})
			_, failed := operator.CreateTable(t.Context(), client, "rate_limits")
			if failed == nil {
				t.Fatal("the call succeeded")
			}
			got, want := Explain(client, failed).Error(), tc.want
			if want == "" {
				want = failed.Error()
			}
			if got != want {
				t.Errorf("got  %s\nwant %s", got, want)
			}
		})
	}
}
