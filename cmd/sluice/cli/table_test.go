package cli_test

import (
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/sluice-go/sluice/internal/test/dynamotest"
	"github.com/sluice-go/sluice/runtime/dynamo/operator"
)

// TestTableCheckFindsWhatChanged: somebody works on a table that was right, and table check says all that is
// wrong with it since.
func TestTableCheckFindsWhatChanged(t *testing.T) {
	sequential(t)
	client := dynamotest.Client(t)
	table := dynamotest.Table(t, client, operator.Table)
	if _, err := operator.CreateTable(t.Context(), client, table); err != nil {
		t.Fatal(err)
	}
	name := "sluice: table " + table + ": "
	enable := "run `aws dynamodb update-table --table-name " + table +
		" --stream-specification StreamEnabled=true,StreamViewType=NEW_AND_OLD_IMAGES`: "
	noStream := name + "it has no stream; " + enable + "usage and regional sync read it\n"
	noIndex := name + "index GSI1 (GSI1PK, GSI1SK) is missing; add it, projecting KEYS_ONLY\n"
	index := &types.CreateGlobalSecondaryIndexAction{
		IndexName: aws.String("GSI1"),
		KeySchema: []types.KeySchemaElement{
			{AttributeName: aws.String("GSI1PK"), KeyType: types.KeyTypeHash}, {AttributeName: aws.String("GSI1SK"),
				KeyType: types.KeyTypeRange},
		},
		Projection: &types.Projection{ProjectionType: types.ProjectionTypeAll},
	}
	for _, step := range []struct {
		change *dynamodb.UpdateTableInput
		errs   string
	}{
		{&dynamodb.UpdateTableInput{StreamSpecification: &types.StreamSpecification{StreamEnabled: aws.Bool(
			false)}}, noStream},
		{&dynamodb.UpdateTableInput{GlobalSecondaryIndexUpdates: []types.GlobalSecondaryIndexUpdate{
			{Delete: &types.DeleteGlobalSecondaryIndexAction{IndexName: aws.String("GSI1")}},
		}}, noIndex + noStream},
		{&dynamodb.UpdateTableInput{
			AttributeDefinitions:        operator.Table(table).AttributeDefinitions[2:4],
			GlobalSecondaryIndexUpdates: []types.GlobalSecondaryIndexUpdate{{Create: index}},
		}, name + "index GSI1 projects ALL, not KEYS_ONLY; delete the index and add it with KEYS_ONLY: as it " +
			"is, every acquire costs twice\n" + noStream},
		{&dynamodb.UpdateTableInput{StreamSpecification: &types.StreamSpecification{
			StreamEnabled: aws.Bool(true), StreamViewType: types.StreamViewTypeNewImage,
		}}, name + "index GSI1 projects ALL, not KEYS_ONLY; delete the index and add it with KEYS_ONLY: as it " +
			"is, every acquire costs twice\n" +
			name + "its stream has NEW_IMAGE, not NEW_AND_OLD_IMAGES; disable it, and " + enable +
			"what was consumed is the difference of two images\n"},
	} {
		if dynamotest.OnLocal(t) && step.change.GlobalSecondaryIndexUpdates != nil {
			t.Skip("DynamoDB Local changes indexes in the background")
		}
		step.change.TableName = &table
		if _, err := client.UpdateTable(t.Context(), step.change); err != nil {
			t.Fatal(err)
		}
		code, out, errs := sluice(t, start, "table", "check", "--table", table)
		expect(t, code, out, errs, 1, "", step.errs)
	}
}

// TestTableCreateAsAsked: flags say how a table is billed, and what it is protected from.
func TestTableCreateAsAsked(t *testing.T) {
	sequential(t)
	for _, test := range []struct {
		flags []string
		errs  string
	}{
		{[]string{"--read-units", "5"}, "5 read and 0 write units"},
		{[]string{"--write-units=-1"}, "0 read and -1 write units"},
	} {
		code, out, errs := sluice(t, start, append([]string{"table", "create"}, test.flags...)...)
		expect(t, code, out, errs, 2, "", "sluice: --read-units, --write-units: "+test.errs+
			": want both above 0, or neither for a table on demand; run `sluice table create --help`\n")
	}
	client := dynamotest.Client(t)
	table := dynamotest.Table(t, client, func(name string) *dynamodb.CreateTableInput {
		return operator.Definition{Table: name, ReadUnits: 5, WriteUnits: 6}.Create()
	})
	there := "sluice: it has table " + table + ": it already, "
	code, out, errs := sluice(t, start, "table", "create", "--table", table, "--read-units", "5",
		"--write-units", "7", "--protected")
	expect(t, code, out, errs, 1, "", there+
		"and its billing is provisioned: 5 read and 6 write units, GSI1 5 and 6, GSI2 5 and 6, "+
		"not 5 read and 7 write units; leave the units out, or change its billing by UpdateTable\n"+
		there+"and not protected from deletion; run `aws dynamodb update-table --table-name "+table+
		" --deletion-protection-enabled`\n")
	code, out, errs = sluice(t, start, "table", "create", "--table", table, "--recoverable")
	expect(t, code, out, errs, 1, "",
		"switching on point-in-time recovery: this can take minutes after a table was created\n"+
			"sluice: table "+table+": this DynamoDB has no point-in-time recovery; "+
			"leave it out here: engines for tests have none\n")
}
