package connect

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
)

// network answers requests as STS does.
type network struct {
	asked  []string // hosts
	signed string   // the Authorization header of the last one
	answer string
	err    error
}

// Do implements dynamodb.HTTPClient.
func (n *network) Do(r *http.Request) (*http.Response, error) {
	n.asked, n.signed = append(n.asked, r.URL.Host), r.Header.Get("Authorization")
	return &http.Response{
		StatusCode: http.StatusOK, Header: http.Header{}, Request: r,
		Body: io.NopCloser(strings.NewReader(n.answer)),
	}, n.err
}

// TestCaller: a command on AWS asks STS of its region who it is, and no other endpoint. Without an answer it
// does not know.
func TestCaller(t *testing.T) {
	const arn = "arn:aws:sts::123456789012:assumed-role/operator/jane"
	const identity = `<GetCallerIdentityResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/">
<GetCallerIdentityResult><Arn>` + arn + `</Arn><Account>123456789012</Account></GetCallerIdentityResult>
</GetCallerIdentityResponse>`
	local := "http://127.0.0.1:8000"
	for name, test := range map[string]struct {
		network  network
		endpoint *string
		arn      string
		asked    bool
	}{
		"on AWS":         {network{answer: identity}, nil, arn, true},
		"no network":     {network{err: errors.New("no route")}, nil, "", true},
		"another answer": {network{answer: "<html>a proxy's page"}, nil, "", true},
		"elsewhere":      {network{answer: identity}, &local, "", false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { // the SDK pauses between attempts
				n := &test.network
				client := dynamodb.New(dynamodb.Options{
					Region: "eu-central-1", HTTPClient: n, BaseEndpoint: test.endpoint,
					Credentials: credentials.NewStaticCredentialsProvider("AKIAEXAMPLE", "secret", ""),
				})
				if got := Caller(t.Context(), client); got != test.arn {
					t.Errorf("got %q, want %q", got, test.arn)
				}
				if asked := len(n.asked) > 0; asked != test.asked {
					t.Fatalf("asked %v", n.asked)
				}
				if test.asked && (n.asked[0] != "sts.eu-central-1.amazonaws.com" ||
					!strings.Contains(n.signed, "AKIAEXAMPLE") || !strings.Contains(n.signed, "/eu-central-1/sts/")) {
					t.Errorf("asked %v, signed %s", n.asked, n.signed)
				}
			})
		})
	}
}
