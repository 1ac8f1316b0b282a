package cli

import (
	"context"
	"errors"
	"net"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/sluice-go/sluice/runtime/dynamo"
)

// closedPort is a URL at which nobody listens.
func closedPort(t *testing.T) string {
	t.Helper()
	var config net.ListenConfig
	listener, err := config.Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	if err := listener.Close(); err != nil {
		t.Fatal(err)
	}
	return "http://" + listener.Addr().String()
}

// TestNothingAnswers: all commands say the same, and none that it waits for a table.
func TestNothingAnswers(t *testing.T) {
	t.Setenv("AWS_MAX_ATTEMPTS", "1")
	t.Setenv("AWS_REGION", "us-east-1")
	t.Setenv("AWS_ACCESS_KEY_ID", "dev")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "dev")
	url := closedPort(t)
	for _, command := range []string{
		"table check", "table create", "peek user-123 gpt-4", "top gpt-4", "reset user-123 gpt-4", "usage user-123", "aggregate",
		"entity put user-123 --parent project-7 --file ../../limits.yaml", "entity show user-123 --file ../../limits.yaml",
		"entity children user-123 --file ../../limits.yaml", "entity delete user-123 --file ../../limits.yaml",
		"override set user gpt-4 rpm=1 --file ../../limits.yaml", "override list gpt-4 --file ../../limits.yaml",
		"override explain user-123 gpt-4 --file ../../limits.yaml", "load --file ../../limits.yaml",
	} {
		for _, flags := range [][]string{{"--endpoint", url}, nil} {
			endpoint := url
			if flags != nil {
				endpoint = "http://127.0.0.1:1" // the flag beats it
			}
			t.Setenv("AWS_ENDPOINT_URL_DYNAMODB", endpoint)
			var out, errs strings.Builder
			var code int
			synctest.Test(t, func(t *testing.T) { // for commands that try again
				code = Program{Stdout: &out, Stderr: &errs, Now: time.Now}.Run(t.Context(), append(strings.Fields(command), flags...))
			})
			want := "sluice: nothing answers at " + url + ": is `sluice dev` running? (--endpoint, AWS_ENDPOINT_URL_DYNAMODB)\n"
			if code != exitFailure || out.String() != "" || errs.String() != want {
				t.Errorf("%s %v: exit code %d\n%s%s", command, flags, code, out.String(), errs.String())
			}
		}
	}
}

// TestNowhere: a variable that is not set does not lead to another table than was meant.
func TestNowhere(t *testing.T) {
	for _, flag := range []string{"--endpoint=", "--region="} {
		var out, errs strings.Builder
		code := Program{Stdout: &out, Stderr: &errs, Now: time.Now}.Run(t.Context(), []string{"reset", "user-123", "gpt-4", flag})
		want := "sluice: " + strings.TrimSuffix(flag, "=") + " is empty: pass "
		if code != exitUsage || out.String() != "" || !strings.HasPrefix(errs.String(), want) {
			t.Errorf("%s: exit code %d\n%s%s", flag, code, out.String(), errs.String())
		}
	}
}

// failing is a network on which every call ends in err.
type failing struct{ err error }

func (f failing) RoundTrip(*http.Request) (*http.Response, error) { return nil, f.err }

// TestExplain: where the network is at fault the message says so, and other errors stay.
func TestExplain(t *testing.T) {
	refused := &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}
	unknown := &net.OpError{Op: "dial", Net: "tcp", Err: &net.DNSError{Name: "dynamo", Err: "no such host", IsNotFound: true}}
	keys := credentials.NewStaticCredentialsProvider("id", "secret", "")
	noKeys := aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) { return aws.Credentials{}, refused })
	const cure = ": check the network and the region; to try sluice without AWS, run `sluice dev` and pass --endpoint"
	for _, tc := range []struct {
		name     string
		endpoint *string
		keys     aws.CredentialsProvider
		network  error
		want     string // "" for the error as it was
	}{
		{"AWS refuses", nil, keys, refused, "nothing answers at DynamoDB in eu-west-1" + cure},
		{"no AWS", nil, keys, unknown, "nothing answers at DynamoDB in eu-west-1 (lookup dynamo: no such host)" + cure},
		{"unknown host", aws.String("http://dynamo:8000"), keys, unknown, "nothing answers at http://dynamo:8000 " +
			"(lookup dynamo: no such host): is `sluice dev` running? (--endpoint, AWS_ENDPOINT_URL_DYNAMODB)"},
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
			_, failed := dynamo.CreateTable(t.Context(), client, "rate_limits")
			if failed == nil {
				t.Fatal("the call succeeded")
			}
			got, want := explain(client, failed).Error(), tc.want
			if want == "" {
				want = failed.Error()
			}
			if got != want {
				t.Errorf("got  %s\nwant %s", got, want)
			}
		})
	}
}
