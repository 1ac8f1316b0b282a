package lean

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"maps"
	"net/http"
	"net/url"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
	"pgregory.net/rapid"
)

// signed is a request that is to be signed.
type signed struct {
	by       aws.Credentials
	endpoint endpoint
	target   string
	body     []byte
	at       time.Time
}

// drawSigned draws a request. Keys, days and endpoints are few, so that derived keys are used again.
func drawSigned(t *rapid.T) *signed {
	tokens := rapid.OneOf(rapid.Just(""), rapid.StringMatching(`[A-Za-z0-9/+= ]{1,300}`),
		rapid.StringMatching(`[ -~]{0,40}`))
	s := &signed{
		by: aws.Credentials{
			AccessKeyID:     rapid.SampledFrom([]string{"AKID", "OTHER", "a b"}).Draw(t, "access key"),
			SecretAccessKey: rapid.SampledFrom([]string{"SECRET", "", "s/e+c=r t"}).Draw(t, "secret"),
			SessionToken:    tokens.Draw(t, "token"),
		},
		endpoint: endpoint{
			region:  rapid.SampledFrom([]string{"us-east-1", "cn-north-1", ""}).Draw(t, "region"),
			service: rapid.SampledFrom([]string{"dynamodb", "other"}).Draw(t, "service"),
		},
		target: "DynamoDB_20120810." + rapid.SampledFrom([]string{"UpdateItem", "GetItem"}).Draw(t, "operation"),
		body:   rapid.SliceOfN(rapid.Byte(), 1, 3000).Draw(t, "body"),
		at: time.Unix(1_800_000_000+rapid.Int64Range(0, 3600).Draw(t, "second"), 5).AddDate(0, 0,
			rapid.SampledFrom([]int{0, 1, 2}).Draw(t, "day")),
	}
	hosts := rapid.SampledFrom([]string{"dynamodb.us-east-1.amazonaws.com", "localhost", "[::1]", "10.0.0.1"})
	found := &url.URL{
		Scheme: rapid.SampledFrom([]string{"https", "http"}).Draw(t, "scheme"),
		Host:   hosts.Draw(t, "host"),
		Path:   rapid.SampledFrom([]string{"", "/", "/a/b", "/ä b/%", "x/"}).Draw(t, "path"),
	}
	found.Host += rapid.SampledFrom([]string{"", ":443", ":80", ":8000"}).Draw(t, "port")
	s.endpoint.locate(found, rapid.Bool().Draw(t, "plain"))
	return s
}

// bySDK returns what v4.Signer puts into the headers of a request.
func (s *signed) bySDK(ctx context.Context, t rapid.TB) (date, authorization string) {
	t.Helper()
	r := &http.Request{
		Method: http.MethodPost, URL: &s.endpoint.url, ContentLength: int64(len(s.body)),
		Body: io.NopCloser(bytes.NewReader(s.body)),
		Header: http.Header{
			"Accept-Encoding": {"identity"}, "Content-Type": {contentType}, "X-Amz-Target": {s.target},
			"User-Agent": {"me"}, "X-Amzn-Trace-Id": {"trace"},
		},
	}
	sum := sha256.Sum256(s.body)
	if err := v4.NewSigner().SignHTTP(ctx, s.by, r, hex.EncodeToString(sum[:]), s.endpoint.service,
		s.endpoint.region, s.at.UTC()); err != nil {
		t.Fatal(err)
	}
	return r.Header.Get("X-Amz-Date"), r.Header.Get("Authorization")
}

// TestSign holds the signature to v4.Signer's, byte for byte, with one signer for all requests.
func TestSign(t *testing.T) {
	var by signer
	var memory signature
	rapid.Check(t, func(t *rapid.T) {
		s := drawSigned(t)
		for range 2 { // and a day later
			wantDate, want := s.bySDK(t.Context(), t)
			date, got := by.sign(&memory, &s.endpoint, &s.by, s.target, s.body, s.at.UTC())
			if date != wantDate || got != want {
				t.Fatalf("date %s, want %s\n%s\n%s, want", date, wantDate, got, want)
			}
			s.at = s.at.AddDate(0, 0, 1)
		}
	})
}

// TestSignControl: a signature over one other thing is another one.
func TestSignControl(t *testing.T) {
	plain := func() *signed {
		s := &signed{
			by:       aws.Credentials{AccessKeyID: "AKID", SecretAccessKey: "SECRET", SessionToken: "TOKEN"},
			endpoint: endpoint{region: "us-east-1", service: "dynamodb"},
			target:   "DynamoDB_20120810.UpdateItem", body: []byte("{}"), at: time.Unix(1_800_000_000, 0).UTC(),
		}
		s.endpoint.locate(&url.URL{Scheme: "https", Host: "dynamodb.us-east-1.amazonaws.com"}, false)
		return s
	}
	_, want := plain().bySDK(t.Context(), t)
	wrong := map[string]func(*signed){
		"secret":   func(s *signed) { s.by.SecretAccessKey = "OTHER" },
		"token":    func(s *signed) { s.by.SessionToken = "OTHER" },
		"no token": func(s *signed) { s.by.SessionToken = "" },
		"host":     func(s *signed) { s.endpoint.host += ":444" },
		"path":     func(s *signed) { s.endpoint.path = "/x" },
		"region":   func(s *signed) { s.endpoint.region = "us-east-2" },
		"service":  func(s *signed) { s.endpoint.service = "other" },
		"target":   func(s *signed) { s.target = "DynamoDB_20120810.PutItem" },
		"body":     func(s *signed) { s.body = []byte("{ ") },
		"second":   func(s *signed) { s.at = s.at.Add(time.Second) },
		"day":      func(s *signed) { s.at = s.at.Add(24 * time.Hour) },
	}
	wrong[""] = func(*signed) {}
	var by signer // one for all: its key must not outlive what it was derived from
	for name := range maps.Keys(wrong) {
		s := plain()
		wrong[name](s)
		_, got := by.sign(&signature{}, &s.endpoint, &s.by, s.target, s.body, s.at)
		if (got == want) != (name == "") {
			t.Errorf("other than usual: %q; the signature is the usual one: %v", name, got == want)
		}
	}
}
