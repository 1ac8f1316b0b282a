package infra_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/google/go-cmp/cmp"

	"github.com/sluice-go/sluice/cmd/sluice/internal/tool/infra"
)

// layout is a table with all that belongs to it, as the requests of the definition say it, or as a template
// that was read does.
type layout struct {
	Table    *dynamodb.CreateTableInput
	TTL      *types.TimeToLiveSpecification
	Recovery *types.PointInTimeRecoverySpecification
	Policies map[infra.Role]policy
	Alarms   []string // sorted: the metric, and its dimension beside the table's
}

// text returns l as JSON, to compare.
func (l layout) text(t *testing.T) string {
	t.Helper()
	text, err := json.MarshalIndent(l, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// defined returns the layout that the definition has.
func defined(t *testing.T, d infra.Stack) layout {
	t.Helper()
	l := layout{
		Table: d.Create(), TTL: d.TimeToLive().TimeToLiveSpecification,
		Recovery: d.Recovery().PointInTimeRecoverySpecification,
		Policies: map[infra.Role]policy{},
	}
	for _, role := range infra.Roles() {
		if role != infra.RegionSync || d.Snapshots != "" {
			l.Policies[role] = policyOf(t, role)
		}
	}
	both := func(one, other, dimension string) { l.Alarms = append(l.Alarms, one+dimension, other+dimension) }
	both("ReadThrottleEvents", "WriteThrottleEvents", "")
	for _, index := range l.Table.GlobalSecondaryIndexes {
		both("ReadThrottleEvents", "WriteThrottleEvents", " GlobalSecondaryIndexName "+*index.IndexName)
	}
	// TestOperations
	for _, operation := range []string{"BatchGetItem", "GetItem", "PutItem", "TransactWriteItems",
		"UpdateItem"} {
		both("ThrottledRequests", "SystemErrors", " Operation "+operation)
	}
	slices.Sort(l.Alarms)
	return l
}

// readers return the layout that a template has, when all its parameters are left as they are.
func readers() map[string]struct {
	write func(infra.Stack) ([]byte, error)
	read  func(*testing.T, string) layout
} {
	type pair = struct {
		write func(infra.Stack) ([]byte, error)
		read  func(*testing.T, string) layout
	}
	return map[string]pair{"cloudformation": {infra.CloudFormation, readCloudFormation},
		"terraform": {infra.Terraform, readTerraform}}
}

// TestDrift reads each template and compares what it makes with the definition and the roles, attribute by
// attribute.
func TestDrift(t *testing.T) {
	for name, of := range readers() {
		for billing, d := range definitions() {
			t.Run(name+" "+billing, func(t *testing.T) {
				got := of.read(t, string(rendered(t, of.write, d))).text(t)
				if diff := cmp.Diff(defined(t, d).text(t), got); diff != "" {
					t.Errorf("- defined, + in the template:\n%s", diff)
				}
			})
		}
	}
}

// TestDriftIsNoticed is the control of TestDrift: a template that says anything else is told from the
// definition.
func TestDriftIsNoticed(t *testing.T) {
	changes := map[string][][2]string{
		"cloudformation": {
			{"ProjectionType: KEYS_ONLY", "ProjectionType: ALL"},
			{`IndexName: "GSI2"`, `IndexName: "GSI3"`},
			{`AttributeName: "GSI1SK"` + "\n              KeyType: RANGE", `AttributeName: "GSI1PK"` +
				"\n              KeyType: RANGE"},
			{`AttributeName: "GSI2PK"` + "\n          AttributeType: S", `AttributeName: "GSI2PK"` +
				"\n          AttributeType: N"},
			{"NEW_AND_OLD_IMAGES", "KEYS_ONLY"},
			{`AttributeName: "ttl"`, `AttributeName: "TTL"`},
			{"BillingMode: PROVISIONED", "BillingMode: PAY_PER_REQUEST"},
			{"Default: 200", "Default: 20"},
			{"PointInTimeRecoveryEnabled: true", "PointInTimeRecoveryEnabled: false"},
			{"DeletionProtectionEnabled: true", "DeletionProtectionEnabled: false"},
			{`"dynamodb:PutItem", `, ""},
			{"${Table.Arn}/stream/*", "${Table.Arn}/*"},
			{`"ENTITY#*"`, `"*"`},
			{"s3:::quotas/limits/*", "s3:::quotas/*"},
			{`"s3:ListBucket"`, `"s3:*"`},
			{"Value: TransactWriteItems", "Value: TransactGetItems"},
			{"MetricName: WriteThrottleEvents", "MetricName: ThrottleEvents"},
		},
		"terraform": {
			{`projection_type = "KEYS_ONLY"`, `projection_type = "ALL"`},
			{`name            = "GSI2"`, `name            = "GSI3"`},
			{`range_key       = "GSI1SK"`, `range_key       = "GSI1PK"`},
			{`name = "GSI2PK"` + "\n    " + `type = "S"`, `name = "GSI2PK"` + "\n    " + `type = "N"`},
			{"NEW_AND_OLD_IMAGES", "KEYS_ONLY"},
			{"stream_enabled   = true", "stream_enabled   = false"},
			{`attribute_name = "ttl"`, `attribute_name = "TTL"`},
			{`"PROVISIONED"`, `"PAY_PER_REQUEST"`},
			{"default     = 200", "default     = 20"},
			{"point_in_time_recovery {\n    enabled = true", "point_in_time_recovery {\n    enabled = false"},
			{"deletion_protection_enabled = true", "deletion_protection_enabled = false"},
			{`"dynamodb:PutItem", `, ""},
			{"${aws_dynamodb_table.sluice.arn}/stream/*", "${aws_dynamodb_table.sluice.arn}/*"},
			{`"ENTITY#*"`, `"*"`},
			{"s3:::quotas/limits/*", "s3:::quotas/*"},
			{`"s3:ListBucket"`, `"s3:*"`},
			{`Operation = "TransactWriteItems"`, `Operation = "TransactGetItems"`},
			{`"WriteThrottleEvents"` + "\n", `"ThrottleEvents"` + "\n"},
		},
	}
	d := definitions()["provisioned"]
	d.Snapshots = snapshots
	want := defined(t, d).text(t)
	for name, of := range readers() {
		text := string(rendered(t, of.write, d))
		for _, change := range changes[name] {
			changed := strings.Replace(text, change[0], change[1], 1)
			if changed == text {
				t.Errorf("%s has no %q to change", name, change[0])
			} else if of.read(t, changed).text(t) == want {
				t.Errorf("%s: nobody noticed %q in place of %q", name, change[1], change[0])
			}
		}
	}

	// And a definition that changes without its template.
	moved := defined(t, d)
	moved.Table.GlobalSecondaryIndexes[1].Projection.ProjectionType = types.ProjectionTypeAll
	if got := readCloudFormation(t, string(rendered(t, infra.CloudFormation, d))).text(t); got == moved.text(t) {
		t.Error("nobody noticed that an index was defined otherwise")
	}
}

// decode converts v, as JSON, to a T. A field that T does not have fails the test, so that nothing in a
// template is left out.
func decode[T any](t *testing.T, v any) T {
	t.Helper()
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	var out T
	decoder := json.NewDecoder(strings.NewReader(string(text)))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&out); err != nil {
		t.Fatalf("%v in\n%s", err, text)
	}
	return out
}
