package operator

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go"
	"github.com/google/go-cmp/cmp"

	"github.com/sluice-go/sluice/internal/test/errtext"
	"github.com/sluice-go/sluice/runtime/dynamo/internal/layout"
	"github.com/sluice-go/sluice/runtime/memdynamo"
	"github.com/sluice-go/sluice/runtime/store"
)

// described is a client whose table is described otherwise than it is: for what an engine in the process has
// no time for.
type described struct {
	*dynamodb.Client
	change   func(*types.TableDescription)
	ttl      string // the attribute, if it is another
	recovery func() (types.PointInTimeRecoveryStatus, error)
}

func (d described) DescribeTable(
	ctx context.Context,
	in *dynamodb.DescribeTableInput,
	opts ...func(*dynamodb.Options),
) (*dynamodb.DescribeTableOutput, error) {
	out, err := d.Client.DescribeTable(ctx, in, opts...)
	if err == nil {
		d.change(out.Table)
	}
	return out, err
}

func (d described) DescribeTimeToLive(
	ctx context.Context,
	in *dynamodb.DescribeTimeToLiveInput,
	opts ...func(*dynamodb.Options),
) (*dynamodb.DescribeTimeToLiveOutput, error) {
	out, err := d.Client.DescribeTimeToLive(ctx, in, opts...)
	if err == nil && d.ttl != "" {
		out.TimeToLiveDescription.AttributeName = &d.ttl
	}
	return out, err
}

func (d described) DescribeContinuousBackups(
	context.Context,
	*dynamodb.DescribeContinuousBackupsInput,
	...func(*dynamodb.Options),
) (*dynamodb.DescribeContinuousBackupsOutput, error) {
	status, err := d.recovery()
	return &dynamodb.DescribeContinuousBackupsOutput{
		ContinuousBackupsDescription: &types.ContinuousBackupsDescription{
			PointInTimeRecoveryDescription: &types.PointInTimeRecoveryDescription{PointInTimeRecoveryStatus: status},
		},
	}, err
}

// TestCheckTable: what is wrong, to whom, and what is only noted.
func TestCheckTable(t *testing.T) {
	client := memdynamo.New().Client()
	const table = "limits"
	if _, err := (Definition{Table: table, Protected: true}).CreateTable(t.Context(), client); err != nil {
		t.Fatal(err)
	}
	onDemand := Note{What: "billing is on demand"}
	const stream = "run `aws dynamodb update-table --table-name limits --stream-specification " +
		"StreamEnabled=true,StreamViewType=NEW_AND_OLD_IMAGES`: "
	for name, test := range map[string]struct {
		change   func(*types.TableDescription)
		ttl      string
		recovery error
		status   types.PointInTimeRecoveryStatus
		acquires bool // Check sees it too
		err      string
		notes    []Note
	}{
		"as it should be": {notes: []Note{onDemand}},
		"no stream": {
			change: func(d *types.TableDescription) { d.StreamSpecification = nil },
			err:    "it has no stream | " + stream[:len(stream)-2] + ": usage and regional sync read it",
			notes:  []Note{onDemand},
		},
		"a stream of keys": {
			change: func(d *types.TableDescription) {
				d.StreamSpecification = &types.StreamSpecification{StreamEnabled: aws.Bool(true),
					StreamViewType: types.StreamViewTypeKeysOnly}
			},
			err: "its stream has KEYS_ONLY, not NEW_AND_OLD_IMAGES | disable it, and " + stream +
				"what was consumed is the difference of two images",
			notes: []Note{onDemand},
		},
		"an index that is being filled": {
			change: func(d *types.TableDescription) {
				index := &d.GlobalSecondaryIndexes[1]
				index.IndexStatus, index.Backfilling = types.IndexStatusCreating, aws.Bool(true)
			},
			err: "index GSI2 is CREATING, backfilling | wait until it is ACTIVE: lists leave out what it has not " +
				"got to yet",
			notes: []Note{onDemand},
		},
		"an index that is being deleted": {
			change: func(d *types.TableDescription) {
				d.GlobalSecondaryIndexes[0].IndexStatus = types.IndexStatusDeleting
			},
			err:   "index GSI1 is DELETING | wait until it is gone, and add it again, projecting KEYS_ONLY",
			notes: []Note{onDemand},
		},
		"TTL on another attribute": {
			ttl: "expires",
			err: "TTL is ENABLED on attribute expires, not enabled on ttl | disable it, wait until it is DISABLED, " +
				"which takes up to an hour, " +
				"and run `sluice table create`: else buckets that nobody uses stay for ever",
			acquires: true,
			notes:    []Note{onDemand},
		},
		"a table in the making": {
			change:   func(d *types.TableDescription) { d.TableStatus = types.TableStatusCreating },
			err:      "it is CREATING | wait until it is ACTIVE: `sluice table create` does",
			acquires: true,
			notes:    []Note{onDemand},
		},
		"a table on its way out": {
			change:   func(d *types.TableDescription) { d.TableStatus = types.TableStatusDeleting },
			err:      "it is DELETING | wait until it is gone, and run `sluice table create`",
			acquires: true,
			notes:    []Note{onDemand},
		},
		"a table without its key": {
			change: func(d *types.TableDescription) {
				d.TableStatus = types.TableStatusInaccessibleEncryptionCredentials
			},
			err: "it is INACCESSIBLE_ENCRYPTION_CREDENTIALS | give DynamoDB back the use of its KMS key; " +
				"one that is ARCHIVED is restored from its backup",
			acquires: true,
			notes:    []Note{onDemand},
		},
		"all there is to note": {
			change: func(d *types.TableDescription) {
				units := func(read, write int64) *types.ProvisionedThroughputDescription {
					return &types.ProvisionedThroughputDescription{ReadCapacityUnits: &read, WriteCapacityUnits: &write}
				}
				d.BillingModeSummary, d.ProvisionedThroughput = nil, units(5, 6)
				d.GlobalSecondaryIndexes[0].ProvisionedThroughput = units(7, 8)
				d.GlobalSecondaryIndexes = append(d.GlobalSecondaryIndexes, types.GlobalSecondaryIndexDescription{
					IndexName:  aws.String("by_owner"),
					Projection: &types.Projection{ProjectionType: types.ProjectionTypeAll},
				})
				d.LocalSecondaryIndexes = []types.LocalSecondaryIndexDescription{{
					IndexName:  aws.String("by_age"),
					Projection: &types.Projection{ProjectionType: types.ProjectionTypeKeysOnly},
				}}
				d.TableStatus, d.DeletionProtectionEnabled = types.TableStatusUpdating, nil
				d.Replicas = []types.ReplicaDescription{{RegionName: aws.String("eu-west-1")},
					{RegionName: aws.String("eu-north-1")}}
			},
			status: types.PointInTimeRecoveryStatusDisabled,
			notes: []Note{
				{"billing is provisioned: 5 read and 6 write units, GSI1 7 and 8, GSI2 0 and 0, by_owner 0 and 0", ""},
				{"it is UPDATING", "it serves meanwhile"},
				{
					"index by_owner is not sluice's and projects ALL",
					"delete it if nobody queries it: every write of what it projects costs once more, and acquires twice " +
						"where it holds buckets",
				},
				{"index by_age is not sluice's and projects KEYS_ONLY",
					"delete it if nobody queries it: every write that changes its keys costs once more"},
				{
					"it is replicated to eu-west-1, eu-north-1",
					"let one region alone acquire: of two regions' writes to a bucket the last one wins, and the other's " +
						"charge is lost",
				},
				{"deletion protection is off",
					"`aws dynamodb update-table --table-name limits --deletion-protection-enabled` switches it on"},
				{
					"point-in-time recovery is off",
					"`sluice table create --table limits --recoverable` switches it on, on AWS: it brings back what a " +
						"mistake deleted",
				},
			},
		},
		"a service that does not say": {recovery: &smithy.GenericAPIError{Code: "UnknownOperationException"},
			notes: []Note{onDemand}},
		"a service that may not say": {recovery: &smithy.GenericAPIError{Code: "AccessDeniedException"},
			notes: []Note{onDemand}},
		"a service that does not answer": {recovery: errors.New("broken"),
			err: "DynamoDB refused the call | broken | check the client's configuration", notes: []Note{onDemand}},
	} {
		t.Run(name, func(t *testing.T) {
			if test.change == nil {
				test.change = func(*types.TableDescription) {}
			}
			d := described{client, test.change, test.ttl, func() (types.PointInTimeRecoveryStatus, error) {
				if test.status == "" {
					test.status = types.PointInTimeRecoveryStatusEnabled
				}
				return test.status, test.recovery
			}}
			notes, err := CheckTable(t.Context(), d, table)
			text := ""
			if err != nil {
				text = strings.TrimPrefix(strings.TrimPrefix(errtext.Of(err), "setup: "), "table limits: ")
				if !isSetupError(err) {
					t.Errorf("got a %T", err)
				}
			}
			if text != test.err {
				t.Errorf("got\n%s\nwant\n%s", text, test.err)
			}
			if diff := cmp.Diff(test.notes, notes); diff != "" {
				t.Errorf("notes, - wanted, + got:\n%s", diff)
			}
			if _, _, err := layout.Check(t.Context(), d, table); (err != nil) != test.acquires {
				t.Errorf("Check says %v, want an error: %v", err, test.acquires)
			}
		})
	}
}

// TestCheckTableSaysAll: all that is wrong comes at once, what only CheckTable sees too.
func TestCheckTableSaysAll(t *testing.T) {
	client := memdynamo.New().Client()
	in := Table("limits")
	in.StreamSpecification = nil
	in.GlobalSecondaryIndexes[0].Projection.ProjectionType = types.ProjectionTypeAll
	if _, err := client.CreateTable(t.Context(), in); err != nil {
		t.Fatal(err)
	}
	notes, err := CheckTable(t.Context(), client, "limits")
	if err == nil {
		t.Fatal("nothing was wrong")
	}
	for _, want := range []string{"index GSI1 projects ALL", "TTL is not enabled", "it has no stream"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("nothing of %q in\n%v", want, err)
		}
	}
	if len(notes) != 3 { // billing, protection, recovery
		t.Errorf("notes %v", notes)
	}
	if notes, err := CheckTable(t.Context(), client, "nobody-made-this"); err == nil || notes != nil {
		t.Errorf("a table that is not there: %v, %v", notes, err)
	}
}

func isSetupError(err error) bool {
	_, ok := errors.AsType[*store.SetupError](err)
	return ok
}

// undescribed is a client of another server than DynamoDB: one that answers with status 200 and nothing.
type undescribed struct{ *dynamodb.Client }

func (undescribed) DescribeTable(
	context.Context,
	*dynamodb.DescribeTableInput,
	...func(*dynamodb.Options),
) (*dynamodb.DescribeTableOutput, error) {
	return &dynamodb.DescribeTableOutput{}, nil
}

// TestUndescribed: an answer without a description is an error that says what to do.
func TestUndescribed(t *testing.T) {
	client := undescribed{memdynamo.New().Client()}
	_, checked := CheckTable(t.Context(), client, "limits")
	_, created := Definition{Table: "limits"}.CreateTable(t.Context(), client)
	for name, err := range map[string]error{"check": checked, "create": created} {
		const want = "sluice: the answer has no description of table limits, and is not as DynamoDB's; correct " +
			"the endpoint (--endpoint, AWS_ENDPOINT_URL_DYNAMODB), or the proxy on the way"
		if _, ok := errors.AsType[*store.SetupError](err); !ok || err.Error() != want {
			t.Errorf("%s: %v, want a SetupError: %s", name, err, want)
		}
	}
}
