package storetest

import (
	"net/http"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/sluice-go/sluice/runtime/store"
)

// Dated returns a client whose replies have the date of clock. The engine's clock is another one, and a
// limiter whose clock is ahead of the replies' dates goes by the dates.
func Dated(client *dynamodb.Client, clock store.Clock) *dynamodb.Client {
	o := client.Options()
	o.HTTPClient = dated{o.HTTPClient, clock}
	return dynamodb.New(o)
}

// dated is a connection whose replies have the date of a clock.
type dated struct {
	dynamodb.HTTPClient
	clock store.Clock
}

// Do implements dynamodb.HTTPClient.
func (d dated) Do(r *http.Request) (*http.Response, error) {
	reply, err := d.HTTPClient.Do(r)
	if err == nil {
		reply.Header.Set("Date", d.clock.Now().UTC().Format(http.TimeFormat))
	}
	return reply, err
}
