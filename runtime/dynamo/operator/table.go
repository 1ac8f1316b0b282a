// Package operator is for people who run sluice on DynamoDB, and for the command that serves them.
//
//	definition := operator.Definition{Table: table, Protected: true}
//	created, err := definition.CreateTable(ctx, client)
//	if err != nil {
//		return err // an existing table is not altered: the error names what differs
//	}
//
//	notes, err := operator.CheckTable(ctx, client, table)
//	for _, note := range notes {
//		fmt.Println("note:", note.What)
//	}
//	return err
//
// It creates and checks tables, reads, lists and resets buckets, and reads and writes entities and overrides.
// It does not acquire.
package operator

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awsretry "github.com/aws/aws-sdk-go-v2/aws/retry"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go"

	"github.com/sluice-go/sluice/runtime/dynamo/codec"
	"github.com/sluice-go/sluice/runtime/dynamo/internal/layout"
	"github.com/sluice-go/sluice/runtime/dynamo/internal/wire"
	"github.com/sluice-go/sluice/runtime/internal/item"
	"github.com/sluice-go/sluice/runtime/internal/namespace"
	"github.com/sluice-go/sluice/runtime/internal/sdklog"
	"github.com/sluice-go/sluice/runtime/store"
)

// tablePattern matches what DynamoDB accepts as a table: its name, or, except to create it, its ARN.
var tablePattern = regexp.MustCompile(
	`^(?:arn:[a-z-]+:dynamodb:[a-z0-9-]+:[0-9]+:table/)?([a-zA-Z0-9_.-]{3,255})$`,
)

// TableName returns the name in table, a name or an ARN. ok is false if DynamoDB would accept it as neither.
func TableName(table string) (name string, ok bool) {
	if found := tablePattern.FindStringSubmatch(table); found != nil {
		return found[1], true
	}
	return "", false
}

// WrongTable says what is wrong with a table that TableName does not accept, and what to pass.
func WrongTable(table string) string {
	if !strings.HasPrefix(table, "arn:") {
		return fmt.Sprintf("table %q is not a table's name: pass 3 to 255 letters, digits, '_', '.' and '-', "+
			"or an ARN", table)
	}
	text := fmt.Sprintf("%q is not the ARN of a table: ", table)
	for _, part := range []string{"/stream/", "/index/", "/backup/", "/export/"} {
		if whole, _, cut := strings.Cut(table, part); cut && tablePattern.MatchString(whole) {
			return text + "pass that of its table, " + whole
		}
	}
	return text + "pass arn:aws:dynamodb:REGION:ACCOUNT:table/NAME, or the name alone"
}

// InNamespace returns a client of the items in a namespace of a table, which dynamo.Namespace gives to a
// store. All functions of this package take it but those that create or check a table, which is one for all
// namespaces. So do readers of package usage, and package region. Aggregators and Pollers take the client of
// the table, and usage.Config has the name. The error says what a name is like.
func InNamespace(client namespace.API, name string) (namespace.API, error) {
	n, err := item.ParseNamespace(name)
	if err != nil {
		return nil, err
	}
	return namespace.New(client, n), nil
}

// CheckNamespace returns the error of InNamespace for a name.
func CheckNamespace(name string) error {
	_, err := item.ParseNamespace(name)
	return err
}

// Definition is a table as sluice needs it. Its methods return the requests that create the table.
// CreateTable sends them, and the templates of `sluice infra` are made from them.
type Definition struct {
	Table string // its name
	// ReadUnits and WriteUnits are provisioned for the table, and as many again for each index. Both are 0 for a
	// table on demand.
	ReadUnits, WriteUnits int64
	// Protected turns deletion protection on.
	Protected bool
	// Recoverable turns point-in-time recovery on: DynamoDB can restore any second of the last 35 days.
	Recoverable bool
}

// Table returns the CreateTable input for a table on demand, with the layout that CheckTable expects. A
// request of its own enables the TTL attribute, ttl: Definition.TimeToLive returns it, and CreateTable of
// this package sends it.
func Table(table string) *dynamodb.CreateTableInput { return Definition{Table: table}.Create() }

// Check returns an error unless the units are both above 0 or both 0.
func (d Definition) Check() error {
	if d.ReadUnits < 0 || d.WriteUnits < 0 || (d.ReadUnits == 0) != (d.WriteUnits == 0) {
		return fmt.Errorf("%d read and %d write units: want both above 0, or neither for a table on demand",
			d.ReadUnits, d.WriteUnits)
	}
	return nil
}

// Create returns the request that creates the table.
func (d Definition) Create() *dynamodb.CreateTableInput {
	in := &dynamodb.CreateTableInput{
		TableName:             &d.Table,
		BillingMode:           types.BillingModePayPerRequest,
		ProvisionedThroughput: d.units(),
		KeySchema:             keySchema(item.PK, item.SK),
		StreamSpecification: &types.StreamSpecification{
			StreamEnabled: aws.Bool(true), StreamViewType: types.StreamViewTypeNewAndOldImages,
		},
	}
	if in.ProvisionedThroughput != nil {
		in.BillingMode = types.BillingModeProvisioned
	}
	if d.Protected {
		in.DeletionProtectionEnabled = aws.Bool(true)
	}
	define := func(names ...string) {
		for _, name := range names {
			in.AttributeDefinitions = append(in.AttributeDefinitions,
				types.AttributeDefinition{AttributeName: aws.String(name), AttributeType: types.ScalarAttributeTypeS})
		}
	}
	define(item.PK, item.SK)
	for _, i := range item.Indexes() {
		define(i.Hash, i.Sort)
		in.GlobalSecondaryIndexes = append(in.GlobalSecondaryIndexes, types.GlobalSecondaryIndex{
			IndexName: aws.String(i.Name), KeySchema: keySchema(i.Hash, i.Sort), ProvisionedThroughput: d.units(),
			Projection: &types.Projection{ProjectionType: types.ProjectionTypeKeysOnly},
		})
	}
	return in
}

// units returns what is provisioned, or nil for a table on demand.
func (d Definition) units() *types.ProvisionedThroughput {
	if d.ReadUnits == 0 && d.WriteUnits == 0 {
		return nil
	}
	return &types.ProvisionedThroughput{ReadCapacityUnits: &d.ReadUnits, WriteCapacityUnits: &d.WriteUnits}
}

// TimeToLive returns the request that makes DynamoDB delete unused buckets.
func (d Definition) TimeToLive() *dynamodb.UpdateTimeToLiveInput {
	return &dynamodb.UpdateTimeToLiveInput{
		TableName: &d.Table,
		TimeToLiveSpecification: &types.TimeToLiveSpecification{
			AttributeName: aws.String(item.TTL), Enabled: aws.Bool(true),
		},
	}
}

// Recovery returns the request that turns point-in-time recovery on, or nil unless d is Recoverable.
func (d Definition) Recovery() *dynamodb.UpdateContinuousBackupsInput {
	if !d.Recoverable {
		return nil
	}
	return &dynamodb.UpdateContinuousBackupsInput{
		TableName: &d.Table,
		PointInTimeRecoverySpecification: &types.PointInTimeRecoverySpecification{
			PointInTimeRecoveryEnabled: aws.Bool(true),
		},
	}
}

func keySchema(hash, sort string) []types.KeySchemaElement {
	return []types.KeySchemaElement{
		{AttributeName: &hash, KeyType: types.KeyTypeHash},
		{AttributeName: &sort, KeyType: types.KeyTypeRange},
	}
}

// Admin is the part of *dynamodb.Client that CreateTable calls. Only a Recoverable table needs
// UpdateContinuousBackups.
type Admin interface {
	dynamodb.DescribeTableAPIClient
	CreateTable(
		context.Context,
		*dynamodb.CreateTableInput,
		...func(*dynamodb.Options),
	) (*dynamodb.CreateTableOutput, error)
	UpdateTimeToLive(
		context.Context,
		*dynamodb.UpdateTimeToLiveInput,
		...func(*dynamodb.Options),
	) (*dynamodb.UpdateTimeToLiveOutput, error)
	DescribeTimeToLive(
		context.Context,
		*dynamodb.DescribeTimeToLiveInput,
		...func(*dynamodb.Options),
	) (*dynamodb.DescribeTimeToLiveOutput, error)
	PutItem(context.Context, *dynamodb.PutItemInput, ...func(*dynamodb.Options)) (*dynamodb.PutItemOutput, error)
	UpdateContinuousBackups(
		context.Context,
		*dynamodb.UpdateContinuousBackupsInput,
		...func(*dynamodb.Options),
	) (*dynamodb.UpdateContinuousBackupsOutput, error)
}

// CreateTable creates a table on demand. It is Definition.CreateTable without the other fields.
func CreateTable(ctx context.Context, client Admin, table string) (created bool, err error) {
	return Definition{Table: table}.CreateTable(ctx, client)
}

// CreateTable creates the table, waits until it is active, enables its TTL, turns point-in-time recovery on
// if it is to be Recoverable, and writes its version item. It skips what was done before, so that calling it
// again completes what was interrupted. created reports whether the table is new. ctx bounds it. It fails
// with
//   - *store.SetupErrors, joined, if an existing table has another layout, other units, or no protection that
//     d asks for; such a table is left as it is,
//   - a *store.SetupError for anything else that must be fixed,
//   - a *store.UnavailableError if DynamoDB does not answer.
func (d Definition) CreateTable(ctx context.Context, client Admin) (created bool, err error) {
	if err := d.Check(); err != nil {
		return false, &store.SetupError{What: fmt.Sprintf("table %s: %v", d.Table, err), Do: "correct the call"}
	}
	if created, err = d.ensure(ctx, client); err != nil {
		return created, err
	}
	const most = 10 * time.Minute // ctx usually ends earlier
	waiter := dynamodb.NewTableExistsWaiter(
		client,
		func(o *dynamodb.TableExistsWaiterOptions) { o.MinDelay = time.Second },
	)
	if err := waiter.Wait(ctx, &dynamodb.DescribeTableInput{TableName: &d.Table}, most); err != nil {
		return created, stepError(d.Table, "wait for table "+d.Table, err)
	}
	if err := d.enableTTL(ctx, client); err != nil {
		return created, err
	}
	if err := d.enableRecovery(ctx, client); err != nil {
		return created, err
	}
	_, err = client.PutItem(ctx, &dynamodb.PutItemInput{
		TableName:           &d.Table,
		Item:                versionItem(),
		ConditionExpression: aws.String("attribute_not_exists(PK)"),
	}, sdklog.Quiet)
	if _, exists := errors.AsType[*types.ConditionalCheckFailedException](err); err != nil && !exists {
		return created, stepError(d.Table, "write the version item of table "+d.Table, err)
	}
	return created, nil
}

// ensure creates the table unless it exists. An existing table that differs from d is an error.
func (d Definition) ensure(ctx context.Context, client Admin) (created bool, err error) {
	t, err := layout.Describe(ctx, client, d.Table)
	if err == nil {
		return false, errors.Join(append(layout.CheckKeys(t), d.differences(t)...)...)
	}
	if _, missing := errors.AsType[*types.ResourceNotFoundException](err); !missing {
		return false, stepError(d.Table, "describe table "+d.Table, err)
	}
	if _, err = client.CreateTable(ctx, d.Create()); err != nil {
		if _, exists := errors.AsType[*types.ResourceInUseException](err); exists {
			return false, nil
		}
		return false, stepError(d.Table, "create table "+d.Table, err)
	}
	return true, nil
}

// differences returns a *store.SetupError for each difference between d and the existing table, its layout
// aside.
func (d Definition) differences(t *types.TableDescription) []error {
	var errs []error
	if asked := d.units(); asked != nil {
		got := t.ProvisionedThroughput
		if got == nil || aws.ToInt64(got.ReadCapacityUnits) != d.ReadUnits ||
			aws.ToInt64(got.WriteCapacityUnits) != d.WriteUnits {
			errs = append(errs, layout.Wrong(d.Table, "leave the units out, or change its billing by UpdateTable",
				"it is there already, and its billing is %s, not %d read and %d write units",
				billing(t), d.ReadUnits, d.WriteUnits))
		}
	}
	if d.Protected && !aws.ToBool(t.DeletionProtectionEnabled) {
		errs = append(errs, layout.Wrong(d.Table, "run `"+protectCommand(d.Table)+"`",
			"it is there already, and not protected from deletion"))
	}
	return errs
}

// stepError explains the error of a step of CreateTable. An answer of DynamoDB, or a call without one, is
// explained as for every other call. A *store.SetupError is returned as it is. Any other error, such as the
// end of the wait, is returned with the step.
func stepError(table, step string, err error) error {
	if _, setup := errors.AsType[*store.SetupError](err); setup {
		return err
	}
	if _, called := errors.AsType[*smithy.OperationError](err); called && !errors.Is(err, context.Canceled) {
		return wire.CallError(table, err)
	}
	return fmt.Errorf("%s: %w", step, err)
}

func (d Definition) enableTTL(ctx context.Context, client Admin) error {
	now, err := client.DescribeTimeToLive(ctx, &dynamodb.DescribeTimeToLiveInput{TableName: &d.Table})
	if err != nil {
		return stepError(d.Table, "describe the TTL of table "+d.Table, err)
	}
	if layout.TTLEnabled(now.TimeToLiveDescription) {
		return nil
	}
	if _, err = client.UpdateTimeToLive(ctx, d.TimeToLive()); err != nil {
		return stepError(d.Table, "enable the TTL of table "+d.Table, err)
	}
	return nil
}

// enableRecovery turns point-in-time recovery on; again does no harm. For a while after a table was created
// AWS answers that it is not ready.
func (d Definition) enableRecovery(ctx context.Context, client Admin) error {
	in := d.Recovery()
	if in == nil {
		return nil
	}
	const attempts = 30 // of 20 s each once the pauses have grown
	_, err := client.UpdateContinuousBackups(ctx, in, func(o *dynamodb.Options) {
		o.Retryer = awsretry.AddWithMaxAttempts(
			awsretry.AddWithErrorCodes(o.Retryer, "ContinuousBackupsUnavailableException"),
			attempts,
		)
	})
	if isUnknownOperation(err) {
		return layout.Wrong(d.Table, "leave it out here: engines for tests have none",
			"this DynamoDB has no point-in-time recovery")
	}
	if err != nil {
		return stepError(d.Table, "switch on the point-in-time recovery of table "+d.Table, err)
	}
	return nil
}

func versionItem() codec.Item {
	item := item.VersionKey()
	item["layout"] = codec.N(layout.Buckets)
	item["revision"] = codec.N(0)
	return item
}

// billing returns how a table is billed, with what is provisioned for it and its indexes.
func billing(t *types.TableDescription) string {
	if t.BillingModeSummary != nil && t.BillingModeSummary.BillingMode == types.BillingModePayPerRequest {
		return "on demand"
	}
	units := func(p *types.ProvisionedThroughputDescription) (read, write int64) {
		if p == nil {
			return 0, 0
		}
		return aws.ToInt64(p.ReadCapacityUnits), aws.ToInt64(p.WriteCapacityUnits)
	}
	var of []string
	for _, i := range t.GlobalSecondaryIndexes {
		read, write := units(i.ProvisionedThroughput)
		of = append(of, fmt.Sprintf(", %s %d and %d", aws.ToString(i.IndexName), read, write))
	}
	slices.Sort(of) // DynamoDB has no order
	read, write := units(t.ProvisionedThroughput)
	return fmt.Sprintf("provisioned: %d read and %d write units", read, write) + strings.Join(of, "")
}

// protectCommand returns the command that protects a table from deletion.
func protectCommand(table string) string {
	return "aws dynamodb update-table --table-name " + table + " --deletion-protection-enabled"
}

// isUnknownOperation reports whether the service does not know the call.
func isUnknownOperation(err error) bool {
	api, ok := errors.AsType[smithy.APIError](err)
	return ok && api.ErrorCode() == "UnknownOperationException"
}
