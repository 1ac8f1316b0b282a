package memdynamo_test

import (
	"bytes"
	"io"
	"net/http"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/sluice-go/sluice/runtime/memdynamo"
)

// conditional is a request such as sluice sends: it counts on the condition that nobody else is ahead.
func conditional() *dynamodb.UpdateItemInput {
	in := add("a")
	in.ConditionExpression = aws.String("attribute_not_exists(stop) AND #n < :most")
	in.UpdateExpression = aws.String("SET #n = #n + :one")
	in.ExpressionAttributeNames = map[string]string{"#n": "n"}
	in.ExpressionAttributeValues = item{":one": n("1"), ":most": n("1000000000000")}
	return in
}

// BenchmarkConditionalUpdate is one conditional update through the SDK, on one goroutine.
func BenchmarkConditionalUpdate(b *testing.B) {
	engine := memdynamo.New()
	client := engine.Client()
	createThings(b, client)
	must(b, ignore(client.UpdateItem(b.Context(), add("a"))))
	update(b, client)
}

// BenchmarkEmptyHandler is the same with an engine that does nothing: what the SDK alone takes.
func BenchmarkEmptyHandler(b *testing.B) {
	update(b, memdynamo.New().Client(func(o *dynamodb.Options) { o.HTTPClient = empty{} }))
}

func update(b *testing.B, client *dynamodb.Client) {
	b.Helper()
	b.ReportAllocs()
	for b.Loop() {
		must(b, ignore(client.UpdateItem(b.Context(), conditional())))
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "updates/s")
}

// BenchmarkOverhead runs both in turns, for machines whose speed changes, and reports how many times the
// empty handler's time the engine takes.
func BenchmarkOverhead(b *testing.B) {
	engine := memdynamo.New()
	clients := []*dynamodb.Client{
		engine.Client(func(o *dynamodb.Options) { o.HTTPClient = empty{} }),
		engine.Client(),
	}
	createThings(b, clients[1])
	must(b, ignore(clients[1].UpdateItem(b.Context(), add("a"))))
	var took [2]time.Duration
	for b.Loop() {
		for i, client := range clients {
			began := time.Now()
			must(b, ignore(client.UpdateItem(b.Context(), conditional())))
			took[i] += time.Since(began)
		}
	}
	b.ReportMetric(float64(took[1])/float64(took[0]), "times-empty")
	b.ReportMetric(float64(b.N)/took[1].Seconds(), "updates/s")
}

// empty answers everything with nothing.
type empty struct{}

// Do implements aws.HTTPClient.
func (empty) Do(r *http.Request) (*http.Response, error) {
	if _, err := io.Copy(io.Discard, r.Body); err != nil {
		return nil, err
	}
	return &http.Response{
		StatusCode: http.StatusOK, Body: io.NopCloser(bytes.NewReader([]byte("{}"))), ContentLength: 2, Request: r,
		Header: http.Header{"Content-Type": {"application/x-amz-json-1.0"}, "X-Amz-Crc32": {"2745614147"}},
	}, nil
}

// BenchmarkNew is a new engine with its first table.
func BenchmarkNew(b *testing.B) {
	for b.Loop() {
		createThings(b, memdynamo.New().Client())
	}
}

// TestNewIsQuick: an engine and its first table are there within 10 ms.
func TestNewIsQuick(t *testing.T) {
	best := time.Hour
	for range 10 { // this machine may be busy
		began := time.Now()
		createThings(t, memdynamo.New().Client())
		best = min(best, time.Since(began))
	}
	if best > 10*time.Millisecond {
		t.Errorf("the quickest of ten starts took %v", best)
	}
}
