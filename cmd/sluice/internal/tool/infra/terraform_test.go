package infra_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/sluice-go/sluice/cmd/sluice/internal/tool/infra"
)

// readTerraform returns the layout in a configuration.
func readTerraform(t *testing.T, text string) layout {
	t.Helper()
	root := parseHCL(t, text)
	variables := map[string]any{}
	for _, v := range root.all("variable") {
		variables["var."+v.labels[0]] = v.attributes["default"]
	}
	known := func(v any) any {
		if name, ok := v.(expression); ok {
			return variables[string(name)]
		}
		return v
	}
	name := func(v any) *string {
		s, ok := known(v).(string)
		if !ok {
			t.Fatalf("%v is no text", v)
		}
		return &s
	}
	units := func(b *hclBlock) *types.ProvisionedThroughput {
		read, ok := known(b.attributes["read_capacity"]).(int64)
		write, too := known(b.attributes["write_capacity"]).(int64)
		if !ok || !too {
			return nil
		}
		return &types.ProvisionedThroughput{ReadCapacityUnits: &read, WriteCapacityUnits: &write}
	}
	keySchema := func(b *hclBlock) []types.KeySchemaElement {
		return []types.KeySchemaElement{
			{AttributeName: name(b.attributes["hash_key"]), KeyType: types.KeyTypeHash},
			{AttributeName: name(b.attributes["range_key"]), KeyType: types.KeyTypeRange},
		}
	}

	found := root.all("resource", "aws_dynamodb_table")
	if len(found) != 1 {
		t.Fatalf("%d tables, want 1", len(found))
	}
	in := found[0]
	enabled, _ := in.attributes["stream_enabled"].(bool)
	protected, _ := in.attributes["deletion_protection_enabled"].(bool)
	table := &dynamodb.CreateTableInput{
		TableName:             name(in.attributes["name"]),
		BillingMode:           types.BillingMode(*name(in.attributes["billing_mode"])),
		ProvisionedThroughput: units(in), KeySchema: keySchema(in), DeletionProtectionEnabled: &protected,
		StreamSpecification: &types.StreamSpecification{
			StreamEnabled: &enabled, StreamViewType: types.StreamViewType(*name(in.attributes["stream_view_type"])),
		},
	}
	for _, a := range in.all("attribute") {
		table.AttributeDefinitions = append(table.AttributeDefinitions, types.AttributeDefinition{
			AttributeName: name(a.attributes["name"]),
			AttributeType: types.ScalarAttributeType(*name(a.attributes["type"])),
		})
	}
	for _, i := range in.all("global_secondary_index") {
		table.GlobalSecondaryIndexes = append(table.GlobalSecondaryIndexes, types.GlobalSecondaryIndex{
			IndexName: name(i.attributes["name"]), KeySchema: keySchema(i), ProvisionedThroughput: units(i),
			Projection: &types.Projection{ProjectionType: types.ProjectionType(*name(
				i.attributes["projection_type"]))},
		})
	}
	ttl, recovery := in.all("ttl")[0], in.all("point_in_time_recovery")[0]
	l := layout{Table: table, Policies: map[infra.Role]policy{}}
	on, _ := ttl.attributes["enabled"].(bool)
	l.TTL = &types.TimeToLiveSpecification{AttributeName: name(ttl.attributes["attribute_name"]),
		Enabled: aws.Bool(on)}
	on, _ = recovery.attributes["enabled"].(bool)
	l.Recovery = &types.PointInTimeRecoverySpecification{PointInTimeRecoveryEnabled: aws.Bool(on)}

	for _, role := range infra.Roles() {
		id := strings.ReplaceAll(string(role), "-", "_")
		for _, p := range root.all("resource", "aws_iam_policy", id) {
			l.Policies[role] = decode[policy](t, resolved(p.attributes["policy"]))
		}
	}
	for _, a := range decode[map[string]struct {
		Metric     string
		Dimensions map[string]string
	}](t, root.all("locals")[0].attributes["alarms"]) {
		text := a.Metric
		for name, value := range a.Dimensions { // one, or none
			text += " " + name + " " + value
		}
		l.Alarms = append(l.Alarms, text)
	}
	slices.Sort(l.Alarms)
	return l
}

// resolved returns v with the table's ARN in place of what stands for it.
func resolved(v any) any {
	const attribute = "aws_dynamodb_table.sluice.arn"
	switch v := v.(type) {
	case expression:
		return strings.ReplaceAll(string(v), attribute, testARN)
	case string:
		return strings.NewReplacer("${"+attribute+"}", testARN, "${data.aws_partition.current.partition}",
			"aws").Replace(v)
	case []any:
		for i := range v {
			v[i] = resolved(v[i])
		}
	case map[string]any:
		for key := range v {
			v[key] = resolved(v[key])
		}
	}
	return v
}
