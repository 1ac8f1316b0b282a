package migrate

import (
	"context"
	"fmt"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"golang.org/x/sync/errgroup"

	"github.com/sluice-go/sluice/runtime/dynamo/codec"
	"github.com/sluice-go/sluice/runtime/dynamo/migrating/perlimit"
)

// pageSize is how many items of the table are read at once, of whatever kind. A run that was killed reads up
// to one page per segment again, and each page costs one write for its checkpoint.
const pageSize = 500

// scan is how a job reads the table.
type scan struct {
	only       string // a condition on items beside that they are per-limit items, or empty
	keys       bool   // nothing but keys and the mark is needed
	consistent bool   // what has just been written is seen
	checkpoint string // the name under which positions are kept, empty for none
	page       func(context.Context, []*group) (tally, error)
}

// tally counts what was done with a page.
type tally struct {
	shown  int64 // items that were reported to progress
	missed int64 // buckets that a later run has to read again
}

// group is the per-limit items of one bucket that a page has.
type group struct {
	entity, resource string
	items            []codec.Item
	names            []string // of the items' limits
	done             bool     // the bucket has had its turn, for items that the page before ended with
}

func (g *group) is(entity, resource string) bool { return g.entity == entity && g.resource == resource }

// key is the primary key of g's bucket.
func (g *group) key() primaryKey { return keyOf(perlimit.BucketKey(g.entity, g.resource)) }

// primaryKey is a key as a map has it.
type primaryKey struct{ hash, sort string }

func keyOf(item codec.Item) primaryKey { return primaryKey{text(item["PK"]), text(item["SK"])} }

// scan reads all segments to their ends, or to the first error.
func (r *run) scan(ctx context.Context, s scan) error {
	positions, err := r.positions(ctx, s.checkpoint)
	if err != nil {
		return err
	}
	if err := r.size(ctx, positions); err != nil {
		return err
	}
	all, together := errgroup.WithContext(ctx)
	for _, p := range positions {
		if !p.done {
			all.Go(func() error { return r.segment(together, &s, p) })
		}
	}
	if err := all.Wait(); err != nil {
		return err
	}
	return r.deletePositions(ctx, positions)
}

// size sets the total of progress to the table's item count, which DynamoDB updates every six hours.
func (r *run) size(ctx context.Context, positions []*position) error {
	out, err := r.Client.DescribeTable(ctx, &dynamodb.DescribeTableInput{TableName: &r.Table}, patiently)
	if err != nil {
		return fmt.Errorf("describe table %s: %w", r.Table, err)
	}
	if out.Table == nil {
		return fmt.Errorf("describe table %s: the answer has no description, and is not as DynamoDB's: "+
			"correct the endpoint", r.Table)
	}
	var read int64
	for _, p := range positions {
		read += p.scanned
	}
	r.progress.start(read, aws.ToInt64(out.Table.ItemCount))
	return nil
}

// segment reads the pages of p. Its position moves on once all buckets of a page are done.
func (r *run) segment(ctx context.Context, s *scan, p *position) error {
	in := perlimit.Scan(r.Table)
	in.Limit, in.ConsistentRead = &r.page, &s.consistent
	in.Segment, in.TotalSegments = aws.Int32(int32(p.segment)), aws.Int32(int32(p.of))
	in.ExclusiveStartKey = p.at
	filter := *in.FilterExpression
	if s.only != "" {
		filter += " AND " + s.only
	}
	in.FilterExpression = aws.String("(" + filter + ") OR begins_with(SK, :checkpoints)")
	in.ExpressionAttributeValues[":checkpoints"] = codec.S(checkpointPrefix)
	if s.keys {
		in.ProjectionExpression = aws.String("PK, SK, " + perlimit.Migrated)
	}
	var last *group
	for {
		out, err := r.Client.Scan(ctx, in, patiently)
		if err != nil {
			return fmt.Errorf("scan table %s: %w", r.Table, err)
		}
		read := int64(out.ScannedCount) - checkpoints(out.Items)
		r.report.read(read, out.ConsumedCapacity)
		groups := r.groups(out.Items, last)
		came, err := s.page(ctx, groups)
		if err != nil {
			return err
		}
		if n := len(groups); n > 0 {
			last = groups[n-1]
		}
		r.progress.page(read, came.shown)
		p.scanned += read
		p.missed += came.missed
		p.at, p.done = out.LastEvaluatedKey, len(out.LastEvaluatedKey) == 0
		if err := r.save(ctx, p); err != nil {
			return err
		}
		if p.done {
			return nil
		}
		in.ExclusiveStartKey = out.LastEvaluatedKey
	}
}

// checkpoints counts the checkpoints among items. They are not counted as read: how many there are depends on
// which segment ends first.
func checkpoints(items []codec.Item) (n int64) {
	for _, item := range items {
		if strings.HasPrefix(text(item["SK"]), checkpointPrefix) {
			n++
		}
	}
	return n
}

// groups returns the per-limit items of a page by bucket, as they follow each other: they have one partition,
// and keys in a row. Those of resources that are not asked for are left out.
func (r *run) groups(items []codec.Item, last *group) []*group {
	var all []*group
	var g *group
	for _, item := range items {
		entity, resource, name, ok := perlimit.Key(item)
		if !ok || r.Resource != "" && resource != r.Resource {
			continue
		}
		if g == nil || !g.is(entity, resource) {
			g = &group{entity: entity, resource: resource, done: last != nil && last.is(entity, resource) && last.done}
			last = nil
			all = append(all, g)
		}
		g.items = append(g.items, item)
		g.names = append(g.names, name)
	}
	return all
}

// buckets reads those buckets of groups that are there, with attrs alone unless that is empty.
func (r *run) buckets(ctx context.Context, groups []*group, attrs string) (map[primaryKey]codec.Item, error) {
	var keys []codec.Item
	for _, g := range groups {
		keys = append(keys, perlimit.BucketKey(g.entity, g.resource))
	}
	found := make(map[primaryKey]codec.Item, len(keys))
	for len(keys) > 0 {
		const most = 100
		n := min(len(keys), most)
		ask := types.KeysAndAttributes{Keys: keys[:n], ConsistentRead: aws.Bool(true)}
		if attrs != "" {
			ask.ProjectionExpression = &attrs
		}
		out, err := r.Client.BatchGetItem(ctx, &dynamodb.BatchGetItemInput{
			RequestItems:           map[string]types.KeysAndAttributes{r.Table: ask},
			ReturnConsumedCapacity: types.ReturnConsumedCapacityTotal,
		}, patiently)
		if err != nil {
			return nil, fmt.Errorf("read buckets of table %s: %w", r.Table, err)
		}
		for _, items := range out.Responses { // of one table, whether it was named or given by its ARN
			for _, item := range items {
				found[keyOf(item)] = item
			}
		}
		for i := range out.ConsumedCapacity {
			r.report.read(0, &out.ConsumedCapacity[i])
		}
		keys = keys[n:]
		for _, left := range out.UnprocessedKeys {
			keys = append(keys, left.Keys...)
		}
	}
	return found, nil
}

// text returns a string attribute, empty for anything else.
func text(v types.AttributeValue) string {
	if s, ok := v.(*types.AttributeValueMemberS); ok {
		return s.Value
	}
	return ""
}

// patiently has the client make more attempts than usual: no user waits for these calls, and a run that fails
// has to be started again. The client also retries transaction conflicts, which it does not do by itself.
// That is safe, since none of these calls is a transaction with conditions.
func patiently(o *dynamodb.Options) {
	o.RetryMaxAttempts = 10
	o.Retryer = retry.AddWithErrorCodes(o.Retryer, "TransactionConflictException",
		"TransactionCanceledException")
}
