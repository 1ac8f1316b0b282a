package usage

import (
	"errors"
	"fmt"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams/types"

	"github.com/sluice-go/sluice/runtime/dynamo/codec"
)

// FromStreams converts a record as GetRecords of DynamoDB Streams returns it. For a record without one of its
// images it returns an error, together with the rest of the record.
func FromStreams(r types.Record) (codec.Record, error) {
	c := r.Dynamodb
	if c == nil {
		return codec.Record{},
			errors.New("sluice: stream record without a change: it is no record of a table's stream")
	}
	rec := codec.Record{At: aws.ToTime(c.ApproximateCreationDateTime), Sequence: aws.ToString(c.SequenceNumber)}
	event := string(r.EventName)
	if event != inserted && c.OldImage != nil {
		rec.Old = streamImage{c.OldImage}
	}
	if event != removed && c.NewImage != nil {
		rec.New = streamImage{c.NewImage}
	}
	return rec, checkImages(event, rec)
}

// streamImage is an item as the stream's client has it.
type streamImage struct {
	attributes[types.AttributeValue]
}

// Attr implements runtime.Image.
func (i streamImage) Attr(name string) (kind, text string) {
	switch v := i.attributes[name].(type) {
	case nil:
		return "", ""
	case *types.AttributeValueMemberN:
		return "N", v.Value
	case *types.AttributeValueMemberS:
		return "S", v.Value
	default:
		return strings.TrimPrefix(fmt.Sprintf("%T", v), "*types.AttributeValueMember"), ""
	}
}
