package lean

import (
	"crypto/tls"
	"errors"
	"io"
	"log"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/sluice-go/sluice/internal/test/longform"
	"github.com/sluice-go/sluice/runtime/dynamo/operator"
	"github.com/sluice-go/sluice/runtime/memdynamo"
)

// served is an engine behind a socket.
type served struct {
	*httptest.Server

	connections atomic.Int64
	protocols   sync.Map
}

func serve(t *testing.T, secure bool) *served {
	t.Helper()
	engine := memdynamo.New()
	if _, err := operator.CreateTable(t.Context(), engine.Client(), "table"); err != nil {
		t.Fatal(err)
	}
	s := &served{}
	s.Server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.protocols.Store(r.Proto, true)
		engine.ServeHTTP(w, r)
	}))
	s.Config.ErrorLog = log.New(io.Discard, "", 0) // of TestUntrusted
	s.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			s.connections.Add(1)
		}
	}
	s.EnableHTTP2 = true
	if secure {
		s.StartTLS()
	} else {
		s.Start()
	}
	t.Cleanup(s.Close)
	return s
}

// at returns a client of the service at a URL. It trusts the certificate of s.
func (s *served) at(t *testing.T, at string, change func(*http.Transport)) *Client {
	t.Helper()
	client := awshttp.NewBuildableClient().WithTransportOptions(func(tr *http.Transport) {
		if s.TLS != nil {
			tr.TLSClientConfig = s.Client().Transport.(*http.Transport).TLSClientConfig
		}
		change(tr)
	})
	return New(config(client), func(o *dynamodb.Options) { o.BaseEndpoint = &at })
}

func key(name string) map[string]types.AttributeValue {
	return map[string]types.AttributeValue{
		"PK": &types.AttributeValueMemberS{Value: name}, "SK": &types.AttributeValueMemberS{Value: name},
	}
}

// TestConnections: calls that succeed, that are refused and that fail use one connection, of HTTP/1.1.
func TestConnections(t *testing.T) {
	s := serve(t, true)
	client := s.at(t, s.URL, func(*http.Transport) {})
	for range 3 {
		_, err := client.UpdateItem(t.Context(), inputs()[0].(*dynamodb.UpdateItemInput))
		if err != nil {
			t.Fatal(err)
		}
		_, err = client.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: aws.String("table"), Item: key("a"),
			ConditionExpression:                 aws.String("attribute_not_exists(PK)"),
			ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld})
		refused, ok := errors.AsType[*types.ConditionalCheckFailedException](err)
		if !ok || len(refused.Item) != 2 {
			t.Fatal(err)
		}
		_, err = client.GetItem(t.Context(), &dynamodb.GetItemInput{TableName: aws.String("none"), Key: key("a")})
		if _, ok := errors.AsType[*types.ResourceNotFoundException](err); !ok {
			t.Fatal(err)
		}
	}
	described := &dynamodb.DescribeTableInput{TableName: aws.String("table")}
	if _, err := client.DescribeTable(t.Context(), described); err != nil { // the SDK's call
		t.Fatal(err)
	}
	if n := s.connections.Load(); n != 1 {
		t.Errorf("%d connections, want 1", n)
	}
	s.protocols.Range(func(protocol, _ any) bool {
		if protocol != "HTTP/1.1" {
			t.Errorf("over %v", protocol)
		}
		return true
	})
}

// TestProxy: requests go through a proxy.
func TestProxy(t *testing.T) {
	s := serve(t, false)
	var proxied atomic.Int64
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		proxied.Add(1)
		out := r.Clone(r.Context())
		out.RequestURI, out.URL.Host = "", s.Listener.Addr().String()
		reply, err := s.Client().Transport.RoundTrip(out)
		if err != nil {
			t.Error(err)
			return
		}
		defer func() { _ = reply.Body.Close() }()
		maps.Copy(w.Header(), reply.Header)
		w.WriteHeader(reply.StatusCode)
		_, _ = io.Copy(w, reply.Body)
	}))
	defer proxy.Close()
	through, err := url.Parse(proxy.URL)
	if err != nil {
		t.Fatal(err)
	}
	client := s.at(t, "http://dynamodb.example", func(tr *http.Transport) { tr.Proxy = http.ProxyURL(through) })
	in := &dynamodb.GetItemInput{TableName: aws.String("table"), Key: key("a")}
	if out, err := client.GetItem(t.Context(), in); err != nil || out.Item != nil {
		t.Error(out, err)
	}
	if proxied.Load() != 1 {
		t.Errorf("%d requests through the proxy, want 1", proxied.Load())
	}
}

// TestUntrusted: a certificate of nobody's is refused.
func TestUntrusted(t *testing.T) {
	s := serve(t, true)
	client := New(config(nil), func(o *dynamodb.Options) { o.BaseEndpoint = &s.URL })
	_, err := client.GetItem(t.Context(), &dynamodb.GetItemInput{TableName: aws.String("table"), Key: key("a")})
	if _, ok := errors.AsType[*tls.CertificateVerificationError](err); !ok {
		t.Error(err)
	}
}

// TestBody: a transport that goes on reading a request beside its reply, or after it, reads nothing of the
// next one, which is written into the same memory.
func TestBody(t *testing.T) {
	var reading sync.WaitGroup
	defer reading.Wait()
	var late io.Reader
	client := New(config(doer(func(r *http.Request) (*http.Response, error) {
		first := make([]byte, 1)
		if _, err := r.Body.Read(first); err != nil || first[0] != '{' {
			t.Errorf("%q, %v", first, err)
		}
		late = r.Body
		reading.Go(func() {
			if _, err := io.ReadAll(r.Body); err != nil {
				t.Error(err)
			}
		})
		return &http.Response{StatusCode: 200, Header: http.Header{}, Body: http.NoBody}, nil
	})))
	for i := range 200 {
		if _, err := send(t.Context(), client, inputs()[i%len(inputs())]); err != nil {
			t.Fatal(err)
		}
		if rest, err := io.ReadAll(late); err != nil || len(rest) > 0 {
			t.Fatalf("after the reply: %q, %v", rest, err)
		}
	}
}

// TestTogether: many goroutines use one client, and each gets the reply to its own request.
func TestTogether(t *testing.T) {
	s := serve(t, false)
	client := s.at(t, s.URL, func(*http.Transport) {})
	var running sync.WaitGroup
	for i := range 32 {
		name := string(rune('A' + i))
		running.Go(func() {
			for range 20 {
				out, err := client.UpdateItem(t.Context(), &dynamodb.UpdateItemInput{
					TableName: aws.String("table"), Key: key(name), ReturnValues: types.ReturnValueAllNew,
				})
				if err != nil || out.Attributes["PK"].(*types.AttributeValueMemberS).Value != name {
					t.Errorf("%v, %v", out, err)
					return
				}
			}
		})
	}
	running.Wait()
}

// TestAllocations: a call allocates little, whatever the machine. Of these, the transport's reply is three.
func TestAllocations(t *testing.T) {
	longform.NoRace(t, "the race detector allocates")
	const body = `{"Attributes":{"PK":{"S":"a"},"SK":{"S":"b"},"rf":{"N":"1"},"tk":{"N":"2"}},` +
		`"ConsumedCapacity":{"TableName":"table","CapacityUnits":1}}`
	header := http.Header{"X-Amzn-Requestid": {"ID1"}, "Date": {"Thu, 26 Nov 2026 03:01:29 GMT"}}
	client := New(config(doer(func(*http.Request) (*http.Response, error) {
		return &http.Response{StatusCode: 200, Header: header, Body: io.NopCloser(strings.NewReader(body))}, nil
	})))
	in, opts := inputs()[0].(*dynamodb.UpdateItemInput), []func(*dynamodb.Options){noRetry}
	call := func() {
		if _, err := client.UpdateItem(t.Context(), in, opts...); err != nil {
			t.Fatal(err)
		}
	}
	if got := testing.AllocsPerRun(100, call); got > 24 {
		t.Errorf("%v allocations", got)
	}
}
