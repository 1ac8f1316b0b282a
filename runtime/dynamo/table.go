package dynamo

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go"

	"github.com/sluice-go/sluice/runtime/dynamo/codec"
)

// The table's key and index attributes.
const (
	hashKey      = "PK"
	rangeKey     = "SK"
	entityPrefix = "ENTITY#" // of the hash key of all that an entity has
	ttlAttribute = "ttl"
)

// index is a global secondary index. All are KEYS_ONLY and no acquire touches their keys: projecting more would make
// every acquire cost twice.
type index struct{ name, hash, sort string }

// indexes returns the table's: parents to children, and resources to buckets.
func indexes() []index {
	return []index{{"GSI1", "GSI1PK", "GSI1SK"}, {"GSI2", "GSI2PK", "GSI2SK"}}
}

// tableForm is what DynamoDB takes for a table: its name, or, but for creating it, its ARN.
var tableForm = regexp.MustCompile(`^(?:arn:[a-z-]+:dynamodb:[a-z0-9-]+:[0-9]+:table/)?([a-zA-Z0-9_.-]{3,255})$`)

// TableName returns the name in table, a name or an ARN; ok is false where DynamoDB would take it for neither.
func TableName(table string) (name string, ok bool) {
	if found := tableForm.FindStringSubmatch(table); found != nil {
		return found[1], true
	}
	return "", false
}

// Table returns the CreateTable input for a table: the one definition of its layout. Its TTL attribute, ttl, is enabled
// by a call of its own, which CreateTable of this package makes.
func Table(table string) *dynamodb.CreateTableInput {
	in := &dynamodb.CreateTableInput{
		TableName:   &table,
		BillingMode: types.BillingModePayPerRequest,
		KeySchema:   keySchema(hashKey, rangeKey),
		StreamSpecification: &types.StreamSpecification{
			StreamEnabled: aws.Bool(true), StreamViewType: types.StreamViewTypeNewAndOldImages,
		},
	}
	define := func(names ...string) {
		for _, name := range names {
			in.AttributeDefinitions = append(in.AttributeDefinitions,
				types.AttributeDefinition{AttributeName: aws.String(name), AttributeType: types.ScalarAttributeTypeS})
		}
	}
	define(hashKey, rangeKey)
	for _, i := range indexes() {
		define(i.hash, i.sort)
		in.GlobalSecondaryIndexes = append(in.GlobalSecondaryIndexes, types.GlobalSecondaryIndex{
			IndexName: aws.String(i.name), KeySchema: keySchema(i.hash, i.sort),
			Projection: &types.Projection{ProjectionType: types.ProjectionTypeKeysOnly},
		})
	}
	return in
}

func keySchema(hash, sort string) []types.KeySchemaElement {
	return []types.KeySchemaElement{
		{AttributeName: &hash, KeyType: types.KeyTypeHash},
		{AttributeName: &sort, KeyType: types.KeyTypeRange},
	}
}

// Admin is the part of *dynamodb.Client that CreateTable calls.
type Admin interface {
	dynamodb.DescribeTableAPIClient
	CreateTable(context.Context, *dynamodb.CreateTableInput, ...func(*dynamodb.Options)) (*dynamodb.CreateTableOutput, error)
	UpdateTimeToLive(context.Context, *dynamodb.UpdateTimeToLiveInput, ...func(*dynamodb.Options)) (*dynamodb.UpdateTimeToLiveOutput, error)
	DescribeTimeToLive(context.Context, *dynamodb.DescribeTimeToLiveInput, ...func(*dynamodb.Options)) (*dynamodb.DescribeTimeToLiveOutput, error)
	PutItem(context.Context, *dynamodb.PutItemInput, ...func(*dynamodb.Options)) (*dynamodb.PutItemOutput, error)
}

// CreateTable creates a table, waits until it is active, enables its TTL and writes its version item. Each step is
// skipped where it has been done before, so that calling it again completes what was interrupted. A table of another
// layout is somebody else's: it is an error, made of *runtime.SetupErrors, and left as it is. What else has to be mended is
// a *runtime.SetupError too, and that DynamoDB does not answer a *runtime.UnavailableError. created reports whether the
// table is new. ctx bounds it.
func CreateTable(ctx context.Context, client Admin, table string) (created bool, err error) {
	if created, err = ensureTable(ctx, client, table); err != nil {
		return created, err
	}
	const most = 10 * time.Minute // ctx usually ends earlier
	waiter := dynamodb.NewTableExistsWaiter(client, func(o *dynamodb.TableExistsWaiterOptions) { o.MinDelay = time.Second })
	if err := waiter.Wait(ctx, &dynamodb.DescribeTableInput{TableName: &table}, most); err != nil {
		return created, stepError(table, "wait for table "+table, err)
	}
	if err := enableTTL(ctx, client, table); err != nil {
		return created, err
	}
	_, err = client.PutItem(ctx, &dynamodb.PutItemInput{
		TableName:           &table,
		Item:                versionItem(),
		ConditionExpression: aws.String("attribute_not_exists(PK)"),
	})
	if _, exists := errors.AsType[*types.ConditionalCheckFailedException](err); err != nil && !exists {
		return created, stepError(table, "write the version item of table "+table, err)
	}
	return created, nil
}

// ensureTable creates the table unless it is there, in the layout that it should have.
func ensureTable(ctx context.Context, client Admin, table string) (created bool, err error) {
	out, err := client.DescribeTable(ctx, &dynamodb.DescribeTableInput{TableName: &table})
	if err == nil {
		return false, errors.Join(wrongLayout(out.Table)...)
	}
	if _, missing := errors.AsType[*types.ResourceNotFoundException](err); !missing {
		return false, stepError(table, "describe table "+table, err)
	}
	if _, err = client.CreateTable(ctx, Table(table)); err != nil {
		if _, raced := errors.AsType[*types.ResourceInUseException](err); raced {
			return false, nil
		}
		return false, stepError(table, "create table "+table, err)
	}
	return true, nil
}

// stepError is what a failed step of CreateTable means: an answer of DynamoDB's, or the lack of one, is explained as for
// every other call; anything else, such as the end of the wait, is told with the step.
func stepError(table, step string, err error) error {
	if _, called := errors.AsType[*smithy.OperationError](err); called && !errors.Is(err, context.Canceled) {
		return checkError(table, err)
	}
	return fmt.Errorf("%s: %w", step, err)
}

func enableTTL(ctx context.Context, client Admin, table string) error {
	now, err := client.DescribeTimeToLive(ctx, &dynamodb.DescribeTimeToLiveInput{TableName: &table})
	if err != nil {
		return stepError(table, "describe the TTL of table "+table, err)
	}
	if ttlEnabled(now.TimeToLiveDescription) {
		return nil
	}
	_, err = client.UpdateTimeToLive(ctx, &dynamodb.UpdateTimeToLiveInput{
		TableName: &table,
		TimeToLiveSpecification: &types.TimeToLiveSpecification{
			AttributeName: aws.String(ttlAttribute), Enabled: aws.Bool(true),
		},
	})
	if err != nil {
		return stepError(table, "enable the TTL of table "+table, err)
	}
	return nil
}

func ttlEnabled(d *types.TimeToLiveDescription) bool {
	return d != nil && aws.ToString(d.AttributeName) == ttlAttribute &&
		(d.TimeToLiveStatus == types.TimeToLiveStatusEnabled || d.TimeToLiveStatus == types.TimeToLiveStatusEnabling)
}

// versionKey is the key of the item that says what the table holds: layout, and the highest revision seen.
func versionKey() codec.Item {
	return codec.Item{hashKey: codec.S("SYSTEM#"), rangeKey: codec.S("#VERSION")}
}

func versionItem() codec.Item {
	item := versionKey()
	item["layout"] = codec.N(layoutBuckets)
	item["revision"] = codec.N(0)
	return item
}
