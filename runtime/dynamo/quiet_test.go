package dynamo_test

import (
	"bytes"
	"net/http"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/smithy-go/logging"

	limits "github.com/sluice-go/sluice/generated"
	"github.com/sluice-go/sluice/internal/test/storetest"
	"github.com/sluice-go/sluice/runtime"
	"github.com/sluice-go/sluice/runtime/dynamo"
	"github.com/sluice-go/sluice/runtime/dynamo/operator"
	"github.com/sluice-go/sluice/runtime/memdynamo"
)

// bareErrors is a service whose errors have no checksum, as DynamoDB Local's have none.
type bareErrors struct{ dynamodb.HTTPClient }

// Do implements dynamodb.HTTPClient.
func (b bareErrors) Do(r *http.Request) (*http.Response, error) {
	reply, err := b.HTTPClient.Do(r)
	if err == nil && reply.StatusCode != http.StatusOK {
		reply.Header.Del("X-Amz-Crc32")
	}
	return reply, err
}

// TestQuiet: a refused condition is no warning in the log of the SDK's client. It is one without this module.
func TestQuiet(t *testing.T) {
	var log bytes.Buffer
	clock := &storetest.Clock{}
	engine := memdynamo.New(memdynamo.WithClock(clock))
	client := engine.Client(func(o *dynamodb.Options) {
		o.HTTPClient, o.Logger = bareErrors{o.HTTPClient}, logging.NewStandardLogger(&log)
	})
	if _, err := operator.CreateTable(t.Context(), client, "quiet"); err != nil {
		t.Fatal(err)
	}
	log.Reset() // of the error that says that there is no table
	project := limits.Project{ID: "1"}
	processes := make([]*limits.Limiter, 2)
	for i := range processes {
		var err error
		if processes[i], err = limits.New(dynamo.New(client, "quiet"), runtime.WithClock(clock)); err != nil {
			t.Fatal(err)
		}
		if err := processes[i].Check(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	for minute := range int64(2) { // in the second one, both claim the refill of the first
		clock.Set(minute * 60_000)
		for _, process := range processes {
			if _, err := process.GPT4.Acquire(t.Context(), project, limits.GPT4Cost{TPM: 1}); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, process := range processes {
		if err := process.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if n := engine.Consumed().Table("quiet").Refused.Write; n == 0 || log.Len() > 0 {
		t.Errorf("%v refused writes log %q", n, log.String())
	}
	_, err := client.GetItem(t.Context(),
		&dynamodb.GetItemInput{TableName: new("none"), Key: storetest.BucketKey("a", "b")})
	if err == nil || !strings.Contains(log.String(), "did not match expected checksum, 0, ") {
		t.Errorf("%v logs %q", err, log.String())
	}
}
