package dynamo

import (
	"context"
	"strconv"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/sluice-go/sluice/runtime"
	"github.com/sluice-go/sluice/runtime/dynamo/codec"
)

// beat is the heartbeat as it was read.
type beat struct {
	runtime.Heartbeat

	read int64 // ms
}

// beatPlace is where the heartbeat is: one for all resources of a table.
var beatPlace = primaryKey{"SYSTEM#", "#HEARTBEAT"}

// regionAttribute is the heartbeat's attribute of whose sync it is. It is a reserved word: in an expression it would need a name.
const regionAttribute = "region"

func beatKey() codec.Item {
	return codec.Item{hashKey: codec.S(beatPlace.hash), rangeKey: codec.S(beatPlace.sort)}
}

// decodeBeat reads the heartbeat's item, which was read at an instant and may be empty. What is in it counts in cv, as versions do,
// and is bounded like them. It fails with a *runtime.SetupError.
func decodeBeat(item codec.Item, read int64) (*beat, error) {
	b := &beat{read: read}
	if len(item) == 0 {
		return b, nil
	}
	d := codec.Decoder{Item: item}
	b.Heartbeat = runtime.Heartbeat{Epoch: d.Int("epoch"), Since: d.Int("since"), Expires: d.Int("exp")}
	if item[regionAttribute] != nil { // who stored it knew to say
		b.Region = d.Text(regionAttribute)
	}
	err := d.Err()
	if err == nil && (b.Since < 1 || b.Since > lastVersion) {
		err = &codec.AttributeError{Attr: "since", Got: strconv.FormatInt(b.Since, 10), Want: "a time in ms"}
	}
	if err == nil && (b.Expires < 1 || b.Expires > lastVersion) {
		err = &codec.AttributeError{Attr: "exp", Got: strconv.FormatInt(b.Expires, 10), Want: "a time in ms"}
	}
	if err == nil && b.Epoch < 1 {
		err = &codec.AttributeError{Attr: "epoch", Got: strconv.FormatInt(b.Epoch, 10), Want: "at least 1"}
	}
	if err != nil {
		return nil, &runtime.SetupError{
			What: "the heartbeat of regional sync is malformed", Err: err,
			Do: "stop the region's sync and delete the item " + itemText(beatKey()) + ": shares count as the floor until it is back",
		}
	}
	return b, nil
}

// readBeat reads the heartbeat consistently.
func readBeat(ctx context.Context, api API, p *patience, now int64) (*beat, error) {
	var out *dynamodb.GetItemOutput
	err := p.call(ctx, func() (err error) {
		out, err = api.GetItem(ctx, &dynamodb.GetItemInput{TableName: &p.table, Key: beatKey(), ConsistentRead: aws.Bool(true)}, once)
		return err
	})
	if err != nil {
		return nil, err
	}
	return decodeBeat(out.Item, now)
}

// lacksBeat reports whether the heartbeat is to be read with l's overrides: once a window, and where what is remembered of it does
// not say how things are now.
func (c *charge) lacksBeat(l *leg, now int64) bool {
	known := c.beat.Load()
	return known == nil || l.unsure || l.lacks&(newest|whole) != 0 || !known.Alive(now) || !c.fresh(l.spec, known.read, now)
}

// beatFor returns the heartbeat by which own, l's level, counts: of items if it was read, else as it is remembered. It is nil where own
// is a share that was stored after that: then both are to be read together.
func (c *charge) beatFor(l *leg, own *level, items map[primaryKey]codec.Item, now int64) (*beat, error) {
	if !l.withBeat {
		known := c.beat.Load()
		if l.unsure = own.shared() && (own.Epoch > known.Epoch || own.ver >= known.Expires); l.unsure {
			return nil, nil
		}
		return known, nil
	}
	read, err := decodeBeat(items[beatPlace], now)
	if err != nil {
		return nil, err
	}
	if known := c.beat.Load(); known == nil || known.read <= now {
		c.beat.Store(read)
	}
	return read, nil
}
