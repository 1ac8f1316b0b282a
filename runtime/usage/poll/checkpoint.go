package poll

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/expression"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/sluice-go/sluice/runtime/dynamo/codec"
	"github.com/sluice-go/sluice/runtime/internal/item"
	"github.com/sluice-go/sluice/runtime/internal/sdklog"
	"github.com/sluice-go/sluice/runtime/store"
)

const (
	shardPrefix = "shardId-" // of all shards' ids, which tells their checkpoints from others'

	sequenceDigits = 40
)

// How long checkpoints are kept after they were written. Those of shards that are done have only to outlive
// the shard, the others tell a Poller that was off for long that it was.
const (
	keepDone = 3 * 24 * time.Hour
	keepOpen = 35 * 24 * time.Hour
)

// position is the point up to which a shard has been read and counted.
type position struct {
	after string    // the last record's sequence number, as the stream has it; empty for none
	at    time.Time // all that was written to the shard before has been read; zero where nothing is known
	done  bool      // there is no more
}

// sequence returns the last record's sequence number as texts compare it.
func (p *position) sequence() string {
	return strings.Repeat("0", max(0, sequenceDigits-len(p.after))) + p.after
}

// checkpoints reads all that are kept, by shard.
func (r *run) checkpoints(ctx context.Context) (map[string]position, error) {
	keys := expression.Key(item.PK).Equal(expression.Value(r.namespace.Hash(item.SystemKey))).
		And(expression.Key(item.SK).BeginsWith(item.CheckpointPrefix + shardPrefix))
	built, err := expression.NewBuilder().WithKeyCondition(keys).Build()
	if err != nil {
		return nil, fmt.Errorf("expression for the checkpoints of table %s: %w", r.name, err)
	}
	in := &dynamodb.QueryInput{
		TableName: &r.Table, ConsistentRead: aws.Bool(true), KeyConditionExpression: built.KeyCondition(),
		ExpressionAttributeNames: built.Names(), ExpressionAttributeValues: built.Values(),
	}
	kept := map[string]position{}
	for {
		var out *dynamodb.QueryOutput
		if err := r.retry(ctx, "read the checkpoints", func() (err error) {
			out, err = r.Client.Query(ctx, in)
			return err
		}); err != nil {
			return nil, err
		}
		for _, stored := range out.Items {
			shard, p, err := decode(stored)
			if err != nil {
				return nil, &store.SetupError{
					What: fmt.Sprintf("the checkpoint %s of table %s is malformed", item.NameOf(stored), r.name), Err: err,
					Do: "delete it: the shard is read again as far as it goes back, and nothing is counted twice",
				}
			}
			kept[shard] = p
		}
		if in.ExclusiveStartKey = out.LastEvaluatedKey; in.ExclusiveStartKey == nil {
			return kept, nil
		}
	}
}

// decode reads a checkpoint.
func decode(stored codec.Item) (shard string, p position, err error) {
	d := codec.Decoder{Item: stored}
	shard = strings.TrimPrefix(d.Text(item.SK), item.CheckpointPrefix)
	if stored["at"] != nil {
		p.at = time.UnixMilli(d.Int("at"))
	}
	if stored["after"] != nil {
		p.after = d.Text("after")
	}
	if stored["done"] != nil {
		p.done = d.Bool("done")
	}
	if sequence := d.Text("sequence"); d.Err() == nil && sequence != p.sequence() {
		err = &codec.AttributeError{Attr: "sequence", Got: fmt.Sprintf("%q", sequence), Want: "after, in 40 digits"}
		return shard, p, err
	}
	return shard, p, d.Err()
}

// put writes a checkpoint, once. One that is further on is left: it is another Poller's, and as good.
func (r *run) put(ctx context.Context, shard string, p position) error {
	keep := keepOpen
	stored := r.namespace.In(item.CheckpointKey(shard))
	stored["sequence"] = codec.S(p.sequence())
	if !p.at.IsZero() {
		stored["at"] = codec.N(p.at.UnixMilli())
	}
	if p.after != "" {
		stored["after"] = codec.S(p.after)
	}
	if p.done {
		stored["done"] = &types.AttributeValueMemberBOOL{Value: true}
		keep = keepDone
	}
	stored["ttl"] = codec.N(r.Clock.Now().Add(keep).Unix())
	sequence := expression.Name("sequence")
	isOpen := expression.Name("done").AttributeNotExists()
	isBehind := sequence.LessThanEqual(expression.Value(p.sequence())).And(isOpen)
	built, err := expression.NewBuilder().WithCondition(sequence.AttributeNotExists().Or(isBehind)).Build()
	if err != nil {
		return fmt.Errorf("expression for the checkpoint of shard %s: %w", shard, err)
	}
	_, err = r.Client.PutItem(ctx, &dynamodb.PutItemInput{
		TableName: &r.Table, Item: stored, ConditionExpression: built.Condition(),
		ExpressionAttributeNames: built.Names(), ExpressionAttributeValues: built.Values(),
	}, sdklog.Quiet)
	if _, refused := errors.AsType[*types.ConditionalCheckFailedException](err); refused {
		return nil
	}
	if err == nil {
		r.report(func(p *Progress) { p.Checkpoints++ })
	}
	return err
}
