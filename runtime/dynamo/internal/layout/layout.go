// Package layout checks a table's keys, indexes and TTL, and reads and writes the item that records the
// table's layout.
package layout

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go"
	"github.com/aws/smithy-go/middleware"

	"github.com/sluice-go/sluice/runtime/dynamo/codec"
	"github.com/sluice-go/sluice/runtime/dynamo/internal/wire"
	"github.com/sluice-go/sluice/runtime/internal/item"
	"github.com/sluice-go/sluice/runtime/internal/sdklog"
	"github.com/sluice-go/sluice/runtime/store"
)

// Layouts of a table, as its version item records them.
const (
	Buckets  = 1 // buckets alone
	Carrying = 2 // buckets beside per-limit items: a program that does not know these would create full buckets

	newest = Carrying
)

// CarryingError reports that a table has the layout Carrying. Package migrating handles it; for other stores
// it is a mistake like any other.
type CarryingError struct{ *store.SetupError }

// Unwrap returns the *store.SetupError.
func (e *CarryingError) Unwrap() error { return e.SetupError }

// Version is what a table's version item says. It is empty in a table that sluice did not create, until the
// first reshape, or the first Check of a schema with an owner.
type Version struct {
	Layout   int64
	Revision int64  // the highest of the schemas that have reshaped a bucket
	Owner    string // of limits.yaml; "" until a Check records it
	place    string // that the owner owns: the table, or a namespace of it
	Metadata middleware.Metadata
}

// CompareRevision warns if v's table has seen a higher revision than own. An older binary beside newer ones
// works, with the buckets' own numbers.
func (v *Version) CompareRevision(ctx context.Context, logger *slog.Logger, table string, own int64) {
	if v.Revision > own {
		logger.LogAttrs(ctx, slog.LevelWarn,
			"sluice: the table has seen a higher revision of limits.yaml: its numbers stay in force",
			slog.String("table", table), slog.Int64("seen", v.Revision), slog.Int64("own", own))
	}
}

// CheckCarrying returns a *CarryingError if v's table holds per-limit items.
func (v *Version) CheckCarrying(table string) error {
	if v.Layout != Carrying {
		return nil
	}
	return &CarryingError{SetupError: &store.SetupError{
		What: fmt.Sprintf("table %s holds per-limit items, which this program would make full buckets beside",
			table),
		Do: "use migrating.New instead of dynamo.New, until `sluice migrate --cleanup` has removed the last of " +
			"them",
	}}
}

// readVersion reads the version item. A layout that this program does not know is a *store.SetupError.
func readVersion(ctx context.Context, client wire.Getter, table string) (Version, error) {
	out, err := client.GetItem(ctx, &dynamodb.GetItemInput{
		TableName: &table, Key: item.VersionKey(), ConsistentRead: aws.Bool(true),
	})
	if err != nil {
		return Version{}, wire.CallError(table, err)
	}
	v := Version{Metadata: out.ResultMetadata, place: "table " + table}
	if len(out.Item) == 0 {
		return v, nil
	}
	d := codec.Decoder{Item: out.Item}
	v.Layout, v.Revision = d.Int("layout"), d.Int("revision")
	if _, recorded := out.Item[ownerAttribute]; recorded {
		v.Owner = d.Text(ownerAttribute)
	}
	if n := item.NamespaceOf(out.Item); n != "" {
		v.place = fmt.Sprintf("namespace %s of table %s", n, table)
	}
	switch {
	case d.Err() != nil:
		return v, &store.SetupError{
			What: fmt.Sprintf("the version item of table %s is malformed", table),
			Err:  d.Err(),
			Do:   "restore " + item.NameOf(out.Item) + ", or delete it",
		}
	case v.Layout > newest:
		return v, &store.SetupError{
			What: fmt.Sprintf("table %s has layout %d, this program knows %d", table, v.Layout, newest),
			Do:   "upgrade sluice",
		}
	}
	return v, nil
}

// Describer is what Check calls.
type Describer interface {
	wire.Getter
	DescribeTable(
		context.Context,
		*dynamodb.DescribeTableInput,
		...func(*dynamodb.Options),
	) (*dynamodb.DescribeTableOutput, error)
	DescribeTimeToLive(
		context.Context,
		*dynamodb.DescribeTimeToLiveInput,
		...func(*dynamodb.Options),
	) (*dynamodb.DescribeTimeToLiveOutput, error)
}

// Check returns what the table's version item says and how the table is described. The error joins a
// *store.SetupError for everything that breaks acquires or makes them cost more. It leaves out the rest, such
// as the stream: a service whose acquires work must not stop for that. operator.CheckTable checks it.
// description is nil if the table cannot be described.
func Check(
	ctx context.Context,
	client Describer,
	table string,
) (v Version, description *types.TableDescription, err error) {
	description, err = Describe(ctx, client, table)
	if err != nil {
		return v, nil, wire.CallError(table, err)
	}
	ttl, err := client.DescribeTimeToLive(ctx, &dynamodb.DescribeTimeToLiveInput{TableName: &table})
	if err != nil {
		return v, nil, wire.CallError(table, err)
	}
	errs := append(CheckKeys(description), checkTTL(table, ttl.TimeToLiveDescription)...)
	if do := statusRemedy(description.TableStatus); do != "" {
		errs = append(errs, Wrong(table, do, "it is %s", description.TableStatus))
	} else if hasKeys(description.KeySchema, description.AttributeDefinitions, item.PK, item.SK) {
		if v, err = readVersion(ctx, client, table); err != nil {
			errs = append(errs, err)
		}
	}
	return v, description, errors.Join(errs...)
}

// Describe returns a table's description. An answer without one is a *store.SetupError: another server than
// DynamoDB may answer any request with status 200.
func Describe(
	ctx context.Context, client dynamodb.DescribeTableAPIClient, table string,
) (*types.TableDescription, error) {
	out, err := client.DescribeTable(ctx, &dynamodb.DescribeTableInput{TableName: &table})
	switch {
	case err != nil:
		return nil, err
	case out.Table == nil:
		return nil, &store.SetupError{
			What: "the answer has no description of table " + table + ", and is not as DynamoDB's",
			Do:   wire.EndpointCure(nil),
		}
	}
	return out.Table, nil
}

// CheckInTime is Check within wire.CheckTime.
func CheckInTime(
	ctx context.Context, client Describer, table string,
) (v Version, description *types.TableDescription, err error) {
	err = wire.InTime(ctx, table, func(ctx context.Context) error {
		v, description, err = Check(ctx, client, table)
		return err
	})
	return v, description, err
}

// statusRemedy returns what to do about a table's status, or "" if the table serves requests.
func statusRemedy(status types.TableStatus) string {
	switch status {
	case types.TableStatusCreating:
		return "wait until it is ACTIVE: `sluice table create` does"
	case types.TableStatusDeleting:
		return "wait until it is gone, and run `sluice table create`"
	case types.TableStatusInaccessibleEncryptionCredentials,
		types.TableStatusArchiving,
		types.TableStatusArchived:
		return "give DynamoDB back the use of its KMS key; one that is ARCHIVED is restored from its backup"
	}
	return ""
}

// checkTTL returns what is wrong with a table's TTL.
func checkTTL(table string, d *types.TimeToLiveDescription) []error {
	const why = ": else buckets that nobody uses stay for ever"
	if TTLEnabled(d) {
		return nil
	}
	if d != nil && aws.ToString(d.AttributeName) != "" && d.TimeToLiveStatus != types.TimeToLiveStatusDisabled {
		return []error{Wrong(table,
			"disable it, wait until it is DISABLED, which takes up to an hour, and run `sluice table create`"+why,
			"TTL is %s on attribute %s, not enabled on %s", d.TimeToLiveStatus, *d.AttributeName, item.TTL)}
	}
	return []error{Wrong(table, "enable it, as `sluice table create` does"+why,
		"TTL is not enabled on attribute %s", item.TTL)}
}

// Wrong returns a *store.SetupError for a table. what is a format for args.
func Wrong(table, do, what string, args ...any) error {
	return &store.SetupError{What: "table " + table + ": " + fmt.Sprintf(what, args...), Do: do}
}

// CheckKeys returns a *store.SetupError for each mistake in a table's keys and indexes.
func CheckKeys(t *types.TableDescription) []error {
	var errs []error
	table := aws.ToString(t.TableName)
	add := func(do, what string, args ...any) { errs = append(errs, Wrong(table, do, what, args...)) }
	if !hasKeys(t.KeySchema, t.AttributeDefinitions, item.PK, item.SK) {
		add("create it anew: run `sluice table create` with another name",
			"its key is not %s (S, hash) and %s (S, range)", item.PK, item.SK)
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
			add("delete the index and add it with these",
				"the keys of index %s are not %s (S, hash) and %s (S, range)", want.Name, want.Hash, want.Sort)
		}
		switch p := got.Projection; {
		case p != nil && p.ProjectionType == types.ProjectionTypeKeysOnly:
		case p != nil && p.ProjectionType == types.ProjectionTypeInclude:
			add("delete the index and add it with KEYS_ONLY: as it is, every acquire that writes one of these "+
				"costs twice", "index %s projects %s, not KEYS_ONLY", want.Name, Projection(p))
		default:
			add("delete the index and add it with KEYS_ONLY: as it is, every acquire costs twice",
				"index %s projects %s, not KEYS_ONLY", want.Name, Projection(p))
		}
	}
	return errs
}

// Projection returns what an index projects, as errors name it: an INCLUDE comes with its attributes.
func Projection(p *types.Projection) string {
	switch {
	case p == nil:
		return "nothing"
	case p.ProjectionType == types.ProjectionTypeInclude:
		return fmt.Sprintf("%s (%s)", p.ProjectionType, strings.Join(p.NonKeyAttributes, ", "))
	}
	return string(p.ProjectionType)
}

// hasKeys reports whether schema consists of these two string attributes.
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

// Record replaces the layout from, or none, by to. It leaves any other layout as it is. The error is
// DynamoDB's.
func Record(ctx context.Context, api wire.API, table string, from, to int64) error {
	_, err := api.UpdateItem(ctx, Update(table, from, to), sdklog.Quiet)
	if _, other := errors.AsType[*types.ConditionalCheckFailedException](err); other {
		return nil
	}
	return err
}

// Update returns the write of Record.
func Update(table string, from, to int64) *dynamodb.UpdateItemInput {
	return &dynamodb.UpdateItemInput{
		TableName:                 &table,
		Key:                       item.VersionKey(),
		UpdateExpression:          aws.String("SET layout = :to, revision = if_not_exists(revision, :none)"),
		ConditionExpression:       aws.String("attribute_not_exists(layout) OR layout = :from"),
		ExpressionAttributeValues: codec.Item{":from": codec.N(from), ":to": codec.N(to), ":none": codec.N(0)},
	}
}

// NoteRevision returns a write that notes in table that a revision of the schema has reached it, unless a
// higher one has.
func NoteRevision(table string, revision int64) *dynamodb.UpdateItemInput {
	return &dynamodb.UpdateItemInput{
		TableName:           &table,
		Key:                 item.VersionKey(),
		UpdateExpression:    aws.String("SET revision = :revision, layout = if_not_exists(layout, :layout)"),
		ConditionExpression: aws.String("attribute_not_exists(revision) OR revision < :revision"),
		ExpressionAttributeValues: codec.Item{
			":revision": codec.N(revision), ":layout": codec.N(Buckets),
		},
	}
}

// TTLEnabled reports whether DynamoDB deletes items by their ttl, or is about to.
func TTLEnabled(d *types.TimeToLiveDescription) bool {
	return d != nil && aws.ToString(d.AttributeName) == item.TTL &&
		(d.TimeToLiveStatus == types.TimeToLiveStatusEnabled ||
			d.TimeToLiveStatus == types.TimeToLiveStatusEnabling)
}

// ownerAttribute is the attribute of the version item that holds the owner.
const ownerAttribute = "owner"

// Claim compares the owner that v's table records with own. It records own in a table without an owner, on
// the condition that no other process has recorded one meanwhile. An own of "" fits every table. Claim ends
// with CheckCarrying, whose error it returns for a table of own. It takes wire.CheckTime at most.
//
// It returns:
//   - a *store.SetupError that names both owners, if the table is another owner's,
//   - no error but a warning, if the role may not write to a table without an owner,
//   - wire.CallError otherwise.
func (v *Version) Claim(ctx context.Context, api wire.API, logger *slog.Logger, table, own string) error {
	claim := func(ctx context.Context) error { return v.claim(ctx, api, logger, table, own) }
	return wire.InTime(ctx, table, claim)
}

func (v *Version) claim(ctx context.Context, api wire.API, logger *slog.Logger, table, own string) error {
	if own == "" || v.Owner == own {
		return v.CheckCarrying(table)
	}
	if v.Owner != "" {
		return store.OtherOwner(v.place, v.Owner, own)
	}
	_, err := api.UpdateItem(ctx, recordOwner(table, own), sdklog.Quiet)
	if _, other := errors.AsType[*types.ConditionalCheckFailedException](err); other {
		now, err := readVersion(ctx, api, table)
		if err == nil && now.Owner != own {
			return store.OtherOwner(now.place, now.Owner, own)
		}
		return cmp.Or(err, v.CheckCarrying(table))
	}
	if denied, ok := errors.AsType[smithy.APIError](err); ok && denied.ErrorCode() == "AccessDeniedException" {
		logger.LogAttrs(ctx, slog.LevelWarn,
			"sluice: the table records no owner, and this role may not write it: run Check once with a role that may",
			slog.String("table", table), slog.String("owner", own))
	} else if err != nil {
		return wire.CallError(table, err)
	}
	return v.CheckCarrying(table)
}

// CheckOwner returns a *store.SetupError if table records another owner than own, or wire.CallError. It fits
// every owner while it records none. CheckOwner writes nothing.
func CheckOwner(ctx context.Context, client wire.Getter, table, own string) error {
	v, err := readVersion(ctx, client, table)
	if err != nil || v.Owner == "" || v.Owner == own {
		return err
	}
	return store.OtherOwner(v.place, v.Owner, own)
}

// recordOwner returns a write that records the owner of table, unless one is recorded.
func recordOwner(table, owner string) *dynamodb.UpdateItemInput {
	return &dynamodb.UpdateItemInput{
		TableName: &table,
		Key:       item.VersionKey(),
		UpdateExpression: aws.String("SET #owner = :owner, layout = if_not_exists(layout, :layout), " +
			"revision = if_not_exists(revision, :none)"),
		ConditionExpression:      aws.String("attribute_not_exists(#owner)"),
		ExpressionAttributeNames: map[string]string{"#owner": ownerAttribute},
		ExpressionAttributeValues: codec.Item{
			":owner": &types.AttributeValueMemberS{Value: owner}, ":layout": codec.N(Buckets), ":none": codec.N(0),
		},
	}
}
