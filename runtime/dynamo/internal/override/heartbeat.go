package override

import (
	"context"
	"strconv"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/sluice-go/sluice/runtime/dynamo/codec"
	"github.com/sluice-go/sluice/runtime/dynamo/internal/wire"
	"github.com/sluice-go/sluice/runtime/internal/item"
	"github.com/sluice-go/sluice/runtime/store"
)

// Heartbeat is the heartbeat of regional sync as it was read.
type Heartbeat struct {
	store.Heartbeat

	ReadAt int64 // ms
}

// RegionAttribute names the region whose sync wrote the heartbeat. It is a reserved word: an expression needs a placeholder for it.
const RegionAttribute = "region"

// DecodeHeartbeat decodes the heartbeat's item, read at an instant in ms. The item may be empty. Its times count in a
// bucket's version, so they have the bounds of versions. The error is a *store.SetupError.
func DecodeHeartbeat(stored codec.Item, readAt int64) (*Heartbeat, error) {
	h := &Heartbeat{ReadAt: readAt}
	if len(stored) == 0 {
		return h, nil
	}
	d := codec.Decoder{Item: stored}
	h.Heartbeat = store.Heartbeat{Epoch: d.Int("epoch"), Since: d.Int("since"), Expires: d.Int("exp")}
	if stored[RegionAttribute] != nil { // versions before regions were named wrote none
		h.Region = d.Text(RegionAttribute)
	}
	err := d.Err()
	if err == nil && (h.Since < 1 || h.Since > MaxVersion) {
		err = &codec.AttributeError{Attr: "since", Got: strconv.FormatInt(h.Since, 10), Want: "a time in ms"}
	}
	if err == nil && (h.Expires < 1 || h.Expires > MaxVersion) {
		err = &codec.AttributeError{Attr: "exp", Got: strconv.FormatInt(h.Expires, 10), Want: "a time in ms"}
	}
	if err == nil && h.Epoch < 1 {
		err = &codec.AttributeError{Attr: "epoch", Got: strconv.FormatInt(h.Epoch, 10), Want: "at least 1"}
	}
	if err != nil {
		return nil, &store.SetupError{
			What: "the heartbeat of regional sync is malformed", Err: err,
			Do: "stop the region's sync and delete the item " + item.Heartbeat.String() +
				": quotas count as the floor until it is back",
		}
	}
	return h, nil
}

// ReadHeartbeat reads the heartbeat consistently. now is the clock's time in ms.
func ReadHeartbeat(ctx context.Context, api wire.API, retrier *wire.Retrier, now int64) (*Heartbeat, error) {
	in := &dynamodb.GetItemInput{TableName: &retrier.Table, Key: item.HeartbeatKey(), ConsistentRead: aws.Bool(true)}
	var out *dynamodb.GetItemOutput
	err := retrier.Do(ctx, func() (err error) {
		out, err = api.GetItem(ctx, in, wire.NoRetry)
		return err
	})
	if err != nil {
		return nil, err
	}
	return DecodeHeartbeat(out.Item, now)
}
