package dynamo

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/sluice-go/sluice/runtime"
	"github.com/sluice-go/sluice/runtime/dynamo/codec"
)

// Check implements runtime.Session: it reads the table's description, its TTL and its version item, and compares this
// host's clock with the service's. It changes nothing.
func (s *session) Check(ctx context.Context) error {
	if err := CheckTable(ctx, s.api, s.table); err != nil {
		return err
	}
	began := s.env.Clock.Now()
	out, err := s.api.GetItem(ctx, &dynamodb.GetItemInput{TableName: &s.table, Key: versionKey(), ConsistentRead: aws.Bool(true)})
	if err != nil {
		return s.checkError(err)
	}
	if off := skew(began, s.env.Clock.Now(), out.ResultMetadata); off != 0 {
		return &runtime.SetupError{
			What: fmt.Sprintf("this host's clock is at least %v %s DynamoDB's", off.Abs().Round(time.Millisecond), aheadOf(off)),
			Do:   "set it by NTP: a clock ahead stops everybody's refill",
		}
	}
	if len(out.Item) == 0 {
		return nil // a table made by other means than ours: the first reshape writes the item
	}
	d := codec.Decoder{Item: out.Item}
	found, revision := d.Int("layout"), d.Int("revision")
	switch {
	case d.Err() != nil:
		return &runtime.SetupError{What: fmt.Sprintf("the version item of table %s is malformed", s.table), Err: d.Err(),
			Do: "restore SYSTEM# / #VERSION, or delete it"}
	case found > layout:
		return &runtime.SetupError{What: fmt.Sprintf("table %s has layout %d, this program knows %d", s.table, found, layout),
			Do: "upgrade sluice"}
	case revision > s.revision:
		// An older binary beside newer ones works, with the buckets' own numbers: no reason not to serve.
		s.env.Logger.LogAttrs(ctx, slog.LevelWarn, "sluice: the table has seen a higher revision of limits.yaml: its numbers stay in force",
			slog.String("table", s.table), slog.Int64("seen", revision), slog.Int64("own", s.revision))
	}
	return nil
}

func aheadOf(d time.Duration) string {
	if d > 0 {
		return "ahead of"
	}
	return "behind"
}

func (s *session) checkError(err error) error {
	if o, _ := classify(err); o == fatal {
		return s.setupError(err)
	}
	return &runtime.UnavailableError{Resource: "table " + s.table, Attempts: 1, Err: err}
}

// Describer is the part of *dynamodb.Client that CheckTable calls.
type Describer interface {
	DescribeTable(context.Context, *dynamodb.DescribeTableInput, ...func(*dynamodb.Options)) (*dynamodb.DescribeTableOutput, error)
	DescribeTimeToLive(context.Context, *dynamodb.DescribeTimeToLiveInput, ...func(*dynamodb.Options)) (*dynamodb.DescribeTimeToLiveOutput, error)
}

// CheckTable compares a table with Table's layout. All that is wrong with it comes in one error, made of a
// *runtime.SetupError each, which says what to do.
func CheckTable(ctx context.Context, client Describer, table string) error {
	s := &session{Store: &Store{table: table}}
	out, err := client.DescribeTable(ctx, &dynamodb.DescribeTableInput{TableName: &table})
	if err != nil {
		return s.checkError(err)
	}
	ttl, err := client.DescribeTimeToLive(ctx, &dynamodb.DescribeTimeToLiveInput{TableName: &table})
	if err != nil {
		return s.checkError(err)
	}
	var errs []error
	wrong := func(do, what string, args ...any) {
		errs = append(errs, &runtime.SetupError{What: "table " + table + ": " + fmt.Sprintf(what, args...), Do: do})
	}
	const recreate = "create it anew: run `sluice table create` with another name"
	if !hasKeys(out.Table.KeySchema, out.Table.AttributeDefinitions, hashKey, rangeKey) {
		wrong(recreate, "its key is not %s (S, hash) and %s (S, range)", hashKey, rangeKey)
	}
	for _, want := range indexes() {
		i := slices.IndexFunc(out.Table.GlobalSecondaryIndexes, func(g types.GlobalSecondaryIndexDescription) bool {
			return aws.ToString(g.IndexName) == want.name
		})
		if i < 0 {
			wrong("add it, projecting KEYS_ONLY", "index %s (%s, %s) is missing", want.name, want.hash, want.sort)
			continue
		}
		got := out.Table.GlobalSecondaryIndexes[i]
		if !hasKeys(got.KeySchema, out.Table.AttributeDefinitions, want.hash, want.sort) {
			wrong("delete the index and add it with these", "the keys of index %s are not %s (S, hash) and %s (S, range)",
				want.name, want.hash, want.sort)
		}
		if p := got.Projection; p == nil || p.ProjectionType != types.ProjectionTypeKeysOnly {
			wrong("delete the index and add it with KEYS_ONLY: as it is, every acquire costs twice",
				"index %s projects %s, not KEYS_ONLY", want.name, projection(p))
		}
	}
	if !ttlEnabled(ttl.TimeToLiveDescription) {
		wrong("enable it on attribute ttl: else buckets that nobody uses stay for ever", "TTL is not enabled on attribute %s", ttlAttribute)
	}
	return errors.Join(errs...)
}

func projection(p *types.Projection) types.ProjectionType {
	if p == nil {
		return "nothing"
	}
	return p.ProjectionType
}

// hasKeys reports that schema is these two string attributes.
func hasKeys(schema []types.KeySchemaElement, defs []types.AttributeDefinition, hash, sort string) bool {
	if len(schema) != 2 {
		return false
	}
	for _, key := range schema {
		name, kind := hash, types.KeyTypeHash
		if key.KeyType == types.KeyTypeRange {
			name, kind = sort, types.KeyTypeRange
		}
		isString := slices.ContainsFunc(defs, func(d types.AttributeDefinition) bool {
			return aws.ToString(d.AttributeName) == name && d.AttributeType == types.ScalarAttributeTypeS
		})
		if aws.ToString(key.AttributeName) != name || key.KeyType != kind || !isString {
			return false
		}
	}
	return true
}

// recordRevision notes in the table that this session's revision has reached it, once, in the background. It is a record
// for Check; nothing else reads it, so that losing it to a failure is harmless.
func (s *session) recordRevision(ctx context.Context) {
	s.recorded.Do(func() {
		s.background.start(func() {
			ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.env.SettleTimeout)
			defer cancel()
			_, err := s.api.UpdateItem(ctx, &dynamodb.UpdateItemInput{
				TableName:                 &s.table,
				Key:                       versionKey(),
				UpdateExpression:          aws.String("SET revision = :revision, layout = if_not_exists(layout, :layout)"),
				ConditionExpression:       aws.String("attribute_not_exists(revision) OR revision < :revision"),
				ExpressionAttributeValues: codec.Item{":revision": codec.N(s.revision), ":layout": codec.N(layout)},
			})
			if o, _ := classify(err); err != nil && o != refused {
				s.env.Logger.LogAttrs(ctx, slog.LevelWarn, "sluice: could not note the revision in the table",
					slog.String("table", s.table), slog.Any("error", err))
			}
		})
	})
}
