package codec

import (
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/sluice-go/sluice/runtime/bucket"
	"github.com/sluice-go/sluice/runtime/internal/item"
)

// BucketImage decodes a bucket in one side of a stream record, without a schema: its limits are Extra. The
// error is an *AttributeError.
func BucketImage(side Image) (entity string, img *bucket.Image, err error) {
	d := Decoder{Item: make(Item, side.Len())}
	side.Each(func(name string) bool {
		switch kind, text := side.Attr(name); kind {
		case "N":
			d.Item[name] = &types.AttributeValueMemberN{Value: text}
		case "S":
			d.Item[name] = &types.AttributeValueMemberS{Value: text}
		}
		return true
	})
	entity = d.Text("entity_id")
	img = &bucket.Image{Refilled: d.Int("rf"), Version: d.Int("cv"), TTL: d.Int(item.TTL), Op: d.Text("op"),
		Extra: d.Extra()}
	return entity, img, d.Err()
}

// Deleted returns the resource whose bucket rec says was deleted, "" where it is about something else.
func (rec Record) Deleted() (resource string) {
	if rec.New != nil || rec.Old == nil {
		return ""
	}
	return Record{New: rec.Old}.Bucket()
}
