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
	"github.com/sluice-go/sluice/runtime/region/s3store"

	"github.com/sluice-go/sluice/cmd/sluice/internal/program"
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
		{"AWS hangs", nil, keys, program.ErrSilent,
			"DynamoDB in eu-west-1 does not answer, no answer in time: check the network, the proxy and the region"},
		{"a host hangs", aws.String("http://dynamo:8000"), keys, program.ErrSilent, "http://dynamo:8000 takes " +
			"the connection and does not answer, no answer in time: check that DynamoDB is served there, or " +
			"correct the endpoint (--endpoint, AWS_ENDPOINT_URL_DYNAMODB)"},
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

// TestExplainS3: an error of S3 stays one of S3.
func TestExplainS3(t *testing.T) {
	const object = "s3://quotas/eu-west-1/snapshot.json"
	const cure = ": check the network, the region and AWS_ENDPOINT_URL_S3"
	client := dynamodb.New(dynamodb.Options{Region: "eu-west-1"})
	for _, tc := range []struct {
		err  error
		want string
	}{
		{&net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}, object + ": S3 does not answer" + cure},
		{program.ErrSilent, object + ": S3 does not answer, no answer in time" + cure},
		{errors.New("broken"), object + ": GetObject: broken; try it"},
	} {
		err := error(&s3store.Error{Object: object, Op: "GetObject", Do: "try it", Err: tc.err})
		if got := Explain(client, err); got.Error() != tc.want {
			t.Errorf("%v, want %s", got, tc.want)
		}
	}
}
