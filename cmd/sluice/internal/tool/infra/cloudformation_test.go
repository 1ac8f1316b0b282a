package infra_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"go.yaml.in/yaml/v3"

	"github.com/sluice-go/sluice/cmd/sluice/internal/tool/infra"
)

// stack is a CloudFormation template in the making: what parameters stand for is filled in.
type stack struct{ parameters map[string]any }

// readCloudFormation returns the layout in a template.
func readCloudFormation(t *testing.T, text string) layout {
	t.Helper()
	var root yaml.Node
	if err := yaml.Unmarshal([]byte(text), &root); err != nil {
		t.Fatal(err)
	}
	var top struct {
		Parameters map[string]struct {
			Default any `yaml:"Default"`
		} `yaml:"Parameters"`
		Resources map[string]struct {
			Type       string    `yaml:"Type"`
			Properties yaml.Node `yaml:"Properties"`
		} `yaml:"Resources"`
	}
	if err := root.Decode(&top); err != nil {
		t.Fatal(err)
	}
	s := stack{map[string]any{}}
	for name, parameter := range top.Parameters {
		s.parameters[name] = parameter.Default
	}

	resource := top.Resources["Table"]
	if resource.Type != "AWS::DynamoDB::Table" {
		t.Fatalf("Table is a %s", resource.Type)
	}
	properties, _ := s.value(&resource.Properties).(map[string]any)
	ttl := take[types.TimeToLiveSpecification](t, properties, "TimeToLiveSpecification")
	recovery := take[types.PointInTimeRecoverySpecification](t, properties, "PointInTimeRecoverySpecification")
	table := decode[dynamodb.CreateTableInput](t, properties)
	table.StreamSpecification.StreamEnabled = aws.Bool(true) // a template that has one means that
	l := layout{Table: &table, TTL: &ttl, Recovery: &recovery, Policies: map[infra.Role]policy{}}
	for _, role := range infra.Roles() {
		name := strings.ReplaceAll(strings.ToLower(string(role)), "-", "") + "policy"
		for id, resource := range top.Resources {
			if strings.ToLower(id) == name && resource.Type == "AWS::IAM::ManagedPolicy" {
				properties, _ := s.value(&resource.Properties).(map[string]any)
				l.Policies[role] = decode[policy](t, properties["PolicyDocument"])
			}
		}
	}
	for _, resource := range top.Resources {
		if resource.Type == "AWS::CloudWatch::Alarm" {
			properties, _ := s.value(&resource.Properties).(map[string]any)
			l.Alarms = append(l.Alarms, alarmOf(t, properties))
		}
	}
	slices.Sort(l.Alarms)
	return l
}

// alarmOf returns an alarm as layout names it, which is one on DynamoDB's metrics of the table.
func alarmOf(t *testing.T, properties map[string]any) string {
	t.Helper()
	dimensions := decode[[]struct{ Name, Value string }](t, properties["Dimensions"])
	if properties["Namespace"] != "AWS/DynamoDB" || dimensions[0].Name != "TableName" ||
		dimensions[0].Value != testTable {
		t.Errorf("an alarm on something else: %v", properties)
	}
	text, _ := properties["MetricName"].(string)
	for _, d := range dimensions[1:] {
		text += " " + d.Name + " " + d.Value
	}
	return text
}

// take decodes a property, and removes it.
func take[T any](t *testing.T, properties map[string]any, name string) T {
	t.Helper()
	v, ok := properties[name]
	if !ok {
		t.Fatalf("the table has no %s", name)
	}
	delete(properties, name)
	return decode[T](t, v)
}

// value returns what a node of the template comes to.
func (s stack) value(n *yaml.Node) any {
	switch {
	case n.Tag == "!Ref" && n.Value == "Table":
		return testTable
	case n.Tag == "!Ref":
		return s.parameters[n.Value]
	case n.Tag == "!GetAtt" && n.Value == "Table.Arn":
		return testARN
	case n.Tag == "!Sub":
		return strings.NewReplacer("${Table.Arn}", testARN, "${AWS::Partition}", "aws").Replace(n.Value)
	case n.Kind == yaml.MappingNode:
		all := map[string]any{}
		for i := 0; i < len(n.Content); i += 2 {
			all[n.Content[i].Value] = s.value(n.Content[i+1])
		}
		return all
	case n.Kind == yaml.SequenceNode:
		all := []any{}
		for _, item := range n.Content {
			all = append(all, s.value(item))
		}
		return all
	}
	var v any
	_ = n.Decode(&v) // of a scalar
	return v
}
