package dynamo

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go/middleware"

	"github.com/sluice-go/sluice/runtime/dynamo/codec"
	"github.com/sluice-go/sluice/runtime/dynamo/internal/wire"
	"github.com/sluice-go/sluice/runtime/internal/item"
	"github.com/sluice-go/sluice/runtime/store"
)

// Check implements store.Session: it reads the table's description, its TTL and its version item, and compares this
// host's clock with the service's. It changes nothing.
func (s *session) Check(ctx context.Context) error {
	began := s.env.Clock.Now()
	v, _, err := checkTable(ctx, s.api, s.table)
	if err != nil {
		return err
	}
	if off := wire.Skew(began, s.env.Clock.Now(), v.metadata); off != 0 {
		return &store.SetupError{
			What: fmt.Sprintf("this host's clock is at least %v %s DynamoDB's", off.Abs().Round(time.Millisecond), aheadOf(off)),
			Do:   "set it by NTP: a clock ahead stops everybody's refill",
		}
	}
	if v.layout == layoutCarrying && !s.perLimit {
		return &store.SetupError{
			What: fmt.Sprintf("table %s holds per-limit items, which this program would make full buckets beside", s.table),
			Do:   "pass dynamo.PerLimitItems() to dynamo.New, until `sluice migrate --cleanup` has removed the last of them",
		}
	}
	if v.revision > s.revision {
		// An older binary beside newer ones works, with the buckets' own numbers: no reason not to serve.
		s.env.Logger.LogAttrs(ctx, slog.LevelWarn, "sluice: the table has seen a higher revision of limits.yaml: its numbers stay in force",
			slog.String("table", s.table), slog.Int64("seen", v.revision), slog.Int64("own", s.revision))
	}
	return nil
}

// version is what a table's version item says: nothing in a table that was made by other means than ours, until the first
// reshape.
type version struct {
	layout   int64
	revision int64
	metadata middleware.Metadata
}

// readVersion reads the version item and refuses a layout that is newer than this program's.
func readVersion(ctx context.Context, client Getter, table string) (version, error) {
	out, err := client.GetItem(ctx, &dynamodb.GetItemInput{TableName: &table, Key: item.VersionKey(), ConsistentRead: aws.Bool(true)})
	if err != nil {
		return version{}, wire.CallError(table, err)
	}
	v := version{metadata: out.ResultMetadata}
	if len(out.Item) == 0 {
		return v, nil
	}
	d := codec.Decoder{Item: out.Item}
	v.layout, v.revision = d.Int("layout"), d.Int("revision")
	switch {
	case d.Err() != nil:
		return v, &store.SetupError{What: fmt.Sprintf("the version item of table %s is malformed", table), Err: d.Err(),
			Do: "restore SYSTEM# / #VERSION, or delete it"}
	case v.layout > layoutNewest:
		return v, &store.SetupError{What: fmt.Sprintf("table %s has layout %d, this program knows %d", table, v.layout, layoutNewest),
			Do: "upgrade sluice"}
	}
	return v, nil
}

func aheadOf(d time.Duration) string {
	if d > 0 {
		return "ahead of"
	}
	return "behind"
}

// describer is what Check calls.
type describer interface {
	Getter
	DescribeTable(context.Context, *dynamodb.DescribeTableInput, ...func(*dynamodb.Options)) (*dynamodb.DescribeTableOutput, error)
	DescribeTimeToLive(context.Context, *dynamodb.DescribeTimeToLiveInput, ...func(*dynamodb.Options)) (*dynamodb.DescribeTimeToLiveOutput, error)
}

// checkTable returns what the table's version item says and how the table is described. The error has what breaks acquires or
// has them cost more than they should, and no more: a service whose acquires are well is not to stop for a stream that others
// read. CheckTable has the rest.
func checkTable(ctx context.Context, client describer, table string) (v version, t *types.TableDescription, err error) {
	out, err := client.DescribeTable(ctx, &dynamodb.DescribeTableInput{TableName: &table})
	if err != nil {
		return v, nil, wire.CallError(table, err)
	}
	ttl, err := client.DescribeTimeToLive(ctx, &dynamodb.DescribeTimeToLiveInput{TableName: &table})
	if err != nil {
		return v, nil, wire.CallError(table, err)
	}
	errs := append(wrongLayout(out.Table), wrongTTL(table, ttl.TimeToLiveDescription)...)
	if do := cureOf(out.Table.TableStatus); do != "" {
		errs = append(errs, wrong(table, do, "it is %s", out.Table.TableStatus))
	} else if hasKeys(out.Table.KeySchema, out.Table.AttributeDefinitions, item.PK, item.SK) {
		if v, err = readVersion(ctx, client, table); err != nil {
			errs = append(errs, err)
		}
	}
	return v, out.Table, errors.Join(errs...)
}

// cureOf returns what to do about a status in which a table serves nobody, empty for one in which it does.
func cureOf(status types.TableStatus) string {
	switch status {
	case types.TableStatusCreating:
		return "wait until it is ACTIVE: `sluice table create` does"
	case types.TableStatusDeleting:
		return "wait until it is gone, and run `sluice table create`"
	case types.TableStatusInaccessibleEncryptionCredentials, types.TableStatusArchiving, types.TableStatusArchived:
		return "give DynamoDB back the use of its KMS key; one that is ARCHIVED is restored from its backup"
	}
	return ""
}

// wrongTTL returns what is wrong with a table's TTL.
func wrongTTL(table string, d *types.TimeToLiveDescription) []error {
	const why = ": else buckets that nobody uses stay for ever"
	if ttlEnabled(d) {
		return nil
	}
	if d != nil && aws.ToString(d.AttributeName) != "" && d.TimeToLiveStatus != types.TimeToLiveStatusDisabled {
		return []error{wrong(table, "disable it, wait until it is DISABLED, which takes up to an hour, and run `sluice table create`"+why,
			"TTL is %s on attribute %s, not enabled on %s", d.TimeToLiveStatus, *d.AttributeName, item.TTL)}
	}
	return []error{wrong(table, "enable it, as `sluice table create` does"+why, "TTL is not enabled on attribute %s", item.TTL)}
}

func wrong(table, do, what string, args ...any) error {
	return &store.SetupError{What: "table " + table + ": " + fmt.Sprintf(what, args...), Do: do}
}

// wrongLayout returns what is wrong with a table's keys and indexes.
func wrongLayout(t *types.TableDescription) []error {
	var errs []error
	table := aws.ToString(t.TableName)
	add := func(do, what string, args ...any) { errs = append(errs, wrong(table, do, what, args...)) }
	if !hasKeys(t.KeySchema, t.AttributeDefinitions, item.PK, item.SK) {
		add("create it anew: run `sluice table create` with another name", "its key is not %s (S, hash) and %s (S, range)", item.PK, item.SK)
	}
	for _, want := range item.Indexes() {
		i := slices.IndexFunc(t.GlobalSecondaryIndexes, func(g types.GlobalSecondaryIndexDescription) bool {
			return aws.ToString(g.IndexName) == want.Name
		})
		if i < 0 {
			add("add it, projecting KEYS_ONLY", "index %s (%s, %s) is missing", want.Name, want.Hash, want.Sort)
			continue
		}
		got := t.GlobalSecondaryIndexes[i]
		if !hasKeys(got.KeySchema, t.AttributeDefinitions, want.Hash, want.Sort) {
			add("delete the index and add it with these", "the keys of index %s are not %s (S, hash) and %s (S, range)",
				want.Name, want.Hash, want.Sort)
		}
		switch p := got.Projection; {
		case p != nil && p.ProjectionType == types.ProjectionTypeKeysOnly:
		case p != nil && p.ProjectionType == types.ProjectionTypeInclude:
			add("delete the index and add it with KEYS_ONLY: as it is, every acquire that writes one of these costs twice",
				"index %s projects %s, not KEYS_ONLY", want.Name, projection(p))
		default:
			add("delete the index and add it with KEYS_ONLY: as it is, every acquire costs twice",
				"index %s projects %s, not KEYS_ONLY", want.Name, projection(p))
		}
	}
	return errs
}

// projection returns what an index projects: INCLUDE with the attributes.
func projection(p *types.Projection) string {
	switch {
	case p == nil:
		return "nothing"
	case p.ProjectionType == types.ProjectionTypeInclude:
		return fmt.Sprintf("%s (%s)", p.ProjectionType, strings.Join(p.NonKeyAttributes, ", "))
	}
	return string(p.ProjectionType)
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
		s.background.Start(func() {
			ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.env.SettleTimeout)
			defer cancel()
			err := s.note(ctx, &dynamodb.UpdateItemInput{
				TableName:                 &s.table,
				Key:                       item.VersionKey(),
				UpdateExpression:          aws.String("SET revision = :revision, layout = if_not_exists(layout, :layout)"),
				ConditionExpression:       aws.String("attribute_not_exists(revision) OR revision < :revision"),
				ExpressionAttributeValues: codec.Item{":revision": codec.N(s.revision), ":layout": codec.N(layoutBuckets)},
			})
			if err != nil {
				s.env.Logger.LogAttrs(ctx, slog.LevelWarn, "sluice: could not note the revision in the table",
					slog.String("table", s.table), slog.Any("error", err))
			}
		})
	})
}
