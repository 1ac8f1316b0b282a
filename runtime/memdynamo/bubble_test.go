package memdynamo_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
)

// TestStaleReadsInABubble: an engine from outside, where time is later, forgets a past that lies ahead.
func TestStaleReadsInABubble(t *testing.T) {
	engine, client := setUp(t)
	engine.Faults().StaleReads(time.Second)
	must(t, ignore(client.PutItem(t.Context(), put("a"))))
	synctest.Test(t, func(t *testing.T) {
		must(t, ignore(client.UpdateItem(t.Context(), add("a"))))
		time.Sleep(time.Minute) //nolint:forbidigo // on the bubble's clock
		out, err := client.GetItem(t.Context(), &dynamodb.GetItemInput{TableName: aws.String(things),
			Key: item{"id": s("a")}})
		must(t, err)
		if out.Item["n"] == nil {
			t.Errorf("a read that is a second late sees %v of a minute ago", out.Item)
		}
	})
}
