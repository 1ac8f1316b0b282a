package usage

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/sluice-go/sluice/internal/test/dynamotest"
	"github.com/sluice-go/sluice/internal/test/longform"
	"github.com/sluice-go/sluice/runtime/dynamo/codec"
)

// month is a window that is open for a month, with a record an hour and a shard every four hours.
type month struct {
	most  int // watermarks that its item had
	bytes int // of the largest item
	extra int // writes that count nothing
	sum   int64
}

// deliverMonth delivers a month of user-1 to its window, each record twice, 20 hours apart.
func (l *ledger) deliverMonth(t *testing.T, replies func(*dynamodb.UpdateItemOutput)) (m month) {
	t.Helper()
	const hours = 30 * 24
	ends := strconv.FormatInt(noon.Add((hours+1)*time.Hour).UnixMilli(), 10)
	a := l.aggregator(t, &replying{&rewriting{l.client, func(in *dynamodb.UpdateItemInput) {
		if strings.HasPrefix(*in.UpdateExpression, "REMOVE") {
			m.extra++
		}
	}}, replies})
	a.config.Extract = extractWindows
	a.config.Writers = 1
	var records []codec.Record
	shard := func(i int) string { return fmt.Sprintf("shardId-0000000141457%06d-f55eea83", i/4) }
	for i := range hours {
		image := func(n int) codec.Image {
			return plain{"SK": "S:#BUCKET#gpt-4", "entity_id": "S:user-1",
				"b_usd_tc": strconv.Itoa(1000 * n), "b_usd_we": ends}
		}
		records = append(records, codec.Record{Old: image(i), New: image(i + 1),
			At: noon.Add(time.Duration(i) * time.Hour), Sequence: "44215845000000000174504390" + strconv.Itoa(10+i%4)})
		for _, ago := range []int{0, 20} {
			if at := i - ago; at >= 0 {
				if err := a.Add(t.Context(), shard(at), records[at:at+1]); err != nil {
					t.Fatal(err)
				}
			}
		}
		m.see(t, l)
	}
	return m
}

// see notes the window's watermarks, size and sum.
func (m *month) see(t *testing.T, l *ledger) {
	t.Helper()
	out, err := l.client.Query(t.Context(), &dynamodb.QueryInput{
		TableName: &l.table, KeyConditionExpression: aws.String("PK = :pk AND begins_with(SK, :sk)"),
		ExpressionAttributeValues: codec.Item{":pk": codec.S("ENTITY#user-1"),
			":sk": codec.S("#USAGE#gpt-4#window#usd#")},
	})
	if err != nil || len(out.Items) != 1 {
		t.Fatal(out, err)
	}
	watermarks, bytes := 0, 0
	for name, v := range out.Items[0] {
		if bytes += len(name); strings.HasPrefix(name, watermarkPrefix) {
			watermarks++
		}
		switch v := v.(type) {
		case *types.AttributeValueMemberS:
			bytes += len(v.Value)
		case *types.AttributeValueMemberN:
			bytes += len(v.Value)/2 + 2
		}
	}
	m.most, m.bytes = max(m.most, watermarks), max(m.bytes, bytes)
	m.sum = codecInt(t, out.Items[0], "u_usd")
}

func codecInt(t *testing.T, stored codec.Item, name string) int64 {
	t.Helper()
	d := codec.Decoder{Item: stored}
	n := d.Int(name)
	if d.Err() != nil {
		t.Fatal(d.Err())
	}
	return n
}

// TestWatermarksAreDropped: a window that is open for a month stays as small as one that is open for a day.
// So a write of it costs one unit. Each record counts once.
func TestWatermarksAreDropped(t *testing.T) {
	m := newLedger(t).deliverMonth(t, func(*dynamodb.UpdateItemOutput) {})
	if m.most > 6+1+leastDropped || m.bytes > 1024 || m.extra > 30*24/4/leastDropped || m.sum != 30*24*1000 {
		t.Errorf("%d watermarks, %d bytes, %d writes that count nothing, %d millitokens", m.most, m.bytes, m.extra,
			m.sum)
	}
}

// TestWatermarksAreDroppedControl: without this a month would have a watermark for each of its shards.
func TestWatermarksAreDroppedControl(t *testing.T) {
	longform.Control(t)
	if dynamotest.OnLocal(t) {
		t.Skip("a control, on which the engine has no bearing: make test runs it")
	}
	m := newLedger(t).deliverMonth(t, func(out *dynamodb.UpdateItemOutput) { out.Attributes = nil })
	if m.most != 30*6 || m.bytes < 12_000 || m.sum != 30*24*1000 {
		t.Errorf("%d watermarks, %d bytes, %d millitokens", m.most, m.bytes, m.sum)
	}
}
