package usage

import (
	"github.com/aws/aws-lambda-go/events"

	"github.com/sluice-go/sluice/runtime/dynamo/codec"
)

// FromLambda converts a record as Lambda delivers it. For a record without one of its images it returns an
// error, together with the rest of the record.
func FromLambda(r events.DynamoDBEventRecord) (codec.Record, error) {
	c := &r.Change
	rec := codec.Record{At: c.ApproximateCreationDateTime.Time, Sequence: c.SequenceNumber}
	if r.EventName != inserted && c.OldImage != nil {
		rec.Old = lambdaImage{c.OldImage}
	}
	if r.EventName != removed && c.NewImage != nil {
		rec.New = lambdaImage{c.NewImage}
	}
	return rec, checkImages(r.EventName, rec)
}

// lambdaImage is an item as Lambda's event has it.
type lambdaImage struct {
	attributes[events.DynamoDBAttributeValue]
}

// Attr implements runtime.Image.
func (i lambdaImage) Attr(name string) (kind, text string) {
	v, ok := i.attributes[name]
	if !ok {
		return "", ""
	}
	switch v.DataType() {
	case events.DataTypeNumber:
		return "N", v.Number()
	case events.DataTypeString:
		return "S", v.String()
	case events.DataTypeBinary:
		return "B", ""
	case events.DataTypeBoolean:
		return "BOOL", ""
	case events.DataTypeNull:
		return "NULL", ""
	case events.DataTypeList:
		return "L", ""
	case events.DataTypeMap:
		return "M", ""
	case events.DataTypeBinarySet:
		return "BS", ""
	case events.DataTypeNumberSet:
		return "NS", ""
	}
	return "SS", ""
}
