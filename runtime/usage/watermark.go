package usage

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/sluice-go/sluice/runtime/dynamo/codec"
	"github.com/sluice-go/sluice/runtime/internal/item"
	"github.com/sluice-go/sluice/runtime/internal/sdklog"
)

// watermarkPrefix begins the attribute of a shard's watermark.
const watermarkPrefix = "w_"

// watermarkOf returns the attribute that holds a shard's watermark: w_ and the shard's own part of its id. It
// is short because names count in an item's size, and a day sees many shards.
func watermarkOf(shard string) string {
	return watermarkPrefix + strings.TrimLeft(strings.TrimPrefix(shard, "shardId-"), "0")
}

// dateSign separates a watermark's sequence number from the time of its record, in s.
const dateSign = "@"

// dated returns a watermark with the time of its record. A window of a limit may last a year, which sees
// 2,000 shards: their watermarks would take 140 KB, and each write as many units. The time tells which of
// them guard nothing any more. As text, such a watermark is above its sequence number and below the next.
func dated(sequence string, at time.Time) string {
	return sequence + dateSign + strconv.FormatInt(at.Unix(), 10)
}

// sequenceOf returns the sequence number of a watermark. ok is false if it is none.
func sequenceOf(watermark types.AttributeValue) (sequence string, ok bool) {
	s, ok := watermark.(*types.AttributeValueMemberS)
	if !ok {
		return "", false
	}
	sequence, _, _ = strings.Cut(s.Value, dateSign)
	return sequence, len(sequence) == sequenceDigits
}

// A write drops watermarks if there are at least leastDropped that guard nothing: a window that is written
// once a shard does not cost two writes each time. It drops mostDropped at most, so that the expression stays
// within DynamoDB's limits.
const leastDropped, mostDropped = 4, 100

// dropped returns the watermarks of a window that guard nothing any more, when a record of this time is
// counted: their records have left the stream.
func dropped(window codec.Item, at time.Time) (names []string) {
	for name, value := range window {
		s, ok := value.(*types.AttributeValueMemberS)
		if !ok || !strings.HasPrefix(name, watermarkPrefix) {
			continue
		}
		_, date, _ := strings.Cut(s.Value, dateSign)
		seconds, err := strconv.ParseInt(date, 10, 64)
		if err == nil && at.Sub(time.Unix(seconds, 0)) > LeastKeep+time.Hour { // times of records are approximate
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// drop removes watermarks that guard nothing from the window of a limit, as the write of s left it. A failure
// changes no sum, and the next write tries again.
func (a *Aggregator) drop(ctx context.Context, s *addition, window codec.Item) {
	names := dropped(window, s.latest())
	if len(names) < leastDropped {
		return
	}
	names = names[:min(len(names), mostDropped)]
	placeholders := make(map[string]string, len(names))
	var list []string
	for i, name := range names {
		placeholder := "#w" + strconv.Itoa(i)
		placeholders[placeholder] = name
		list = append(list, placeholder)
	}
	_, _ = a.config.Client.UpdateItem(ctx, &dynamodb.UpdateItemInput{
		TableName: aws.String(a.config.Table), Key: item.Namespace(a.config.Namespace).In(s.key()),
		UpdateExpression: aws.String("REMOVE " + strings.Join(list, ", ")), ExpressionAttributeNames: placeholders,
		ConditionExpression: aws.String("attribute_exists(PK)"), // it may have been erased
	}, sdklog.Quiet)
}
