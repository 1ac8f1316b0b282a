// Package infra describes the table and what belongs to it to those who set up AWS: as a CloudFormation
// template, as a Terraform configuration, and as IAM policies. All of it comes from the one definition of the
// table in runtime/dynamo, and from the roles here, which the tests hold against the calls that sluice makes.
package infra

import (
	"bytes"
	"embed"
	"slices"
	"strconv"
	"strings"
	"text/template"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/sluice-go/sluice/runtime/dynamo/operator"
)

//go:embed templates
var templates embed.FS

// Stack is what a template makes: a table, and what belongs to it.
type Stack struct {
	operator.Definition

	Snapshots string // where regions publish, s3://bucket/prefix; without it, RegionSync has no policy
}

// Check returns what is wrong with where regions publish.
func (s Stack) Check() error {
	if s.Snapshots == "" {
		return nil
	}
	_, err := placeOf(s.Snapshots)
	return err
}

// CloudFormation returns a template, in YAML, with the table, its alarms and a managed policy per role.
func CloudFormation(s Stack) ([]byte, error) { return render("cloudformation.yaml.tmpl", s) }

// Terraform returns a configuration, in HCL as `terraform fmt` leaves it, with the table, its alarms and a
// policy per role.
func Terraform(s Stack) ([]byte, error) { return render("terraform.tf.tmpl", s) }

// contents are what a template is filled with.
type contents struct {
	Command  string // that wrote it
	Table    *dynamodb.CreateTableInput
	TTL      *types.TimeToLiveSpecification
	Recovery bool
	Units    *types.ProvisionedThroughput // nil: on demand
	Alarms   []alarm
	Roles    []role
	Publish  published // nowhere, with a role less
}

func contentsOf(s Stack) (c contents, err error) {
	c = contents{Table: s.Create(), TTL: s.TimeToLive().TimeToLiveSpecification, Alarms: alarms(s.Create()),
		Roles: roles()}
	c.Units = c.Table.ProvisionedThroughput
	if recovery := s.Recovery(); recovery != nil {
		c.Recovery = aws.ToBool(recovery.PointInTimeRecoverySpecification.PointInTimeRecoveryEnabled)
	}
	if s.Snapshots == "" {
		c.Roles = slices.DeleteFunc(c.Roles, role.published)
	} else {
		c.Publish, err = placeOf(s.Snapshots)
	}
	return c, err
}

// Widest is the width of the longest role, quoted: Terraform aligns names to it.
func (c contents) Widest() (widest int) {
	for _, r := range c.Roles {
		widest = max(widest, len(strconv.Quote(string(r.Role))))
	}
	return widest
}

// render fills a template in.
func render(name string, s Stack) ([]byte, error) {
	c, err := contentsOf(s)
	if err != nil {
		return nil, err
	}
	t, err := template.New(name).Option("missingkey=error").Funcs(template.FuncMap{
		"quote":    func(s *string) string { return strconv.Quote(aws.ToString(s)) },
		"list":     List,
		"prefixed": prefixed,
		"key":      keyOf,
		"title":    title,
		"snake":    func(r Role) string { return strings.ReplaceAll(string(r), "-", "_") },
		"resource": c.resource,
		"pad":      pad,
		"leading":  func() string { return leadingKey },
		"operator": func() string { return leadingOperator },
	}).ParseFS(templates, "templates/"+name)
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	err = t.Execute(&out, c)
	return out.Bytes(), err
}

// List writes a list as YAML, JSON and HCL all read it.
func List(items []string) string {
	quoted := make([]string, len(items))
	for i, item := range items {
		quoted[i] = strconv.Quote(item)
	}
	return "[" + strings.Join(quoted, ", ") + "]"
}

// keyOf returns the attribute of a key that has a type, quoted.
func keyOf(schema []types.KeySchemaElement, kind types.KeyType) string {
	for _, element := range schema {
		if element.KeyType == kind {
			return strconv.Quote(aws.ToString(element.AttributeName))
		}
	}
	return `""`
}

// title writes a role as a name of CloudFormation's: letters and digits alone.
func title(r Role) string {
	var name strings.Builder
	for word := range strings.SplitSeq(string(r), "-") {
		name.WriteString(strings.ToUpper(word[:1]) + word[1:])
	}
	return name.String()
}

// resource returns the ARN of on as an expression of the template. alone is the expression for the table's
// ARN. The other ARNs are texts after prefix, with base for the table's ARN and partition for AWS's.
func (c contents) resource(on where, alone, prefix, base, partition string) string {
	switch on {
	case table:
		return alone
	case indexes:
		return prefix + strconv.Quote(base+"/index/*")
	case streams:
		return prefix + strconv.Quote(base+"/stream/*")
	case objects:
		return prefix + strconv.Quote(c.Publish.objects(partition))
	case bucket:
		return prefix + strconv.Quote(c.Publish.bucket(partition))
	}
	return `"*"`
}

// pad fills a text with blanks to as many characters as Terraform aligns it to.
func pad(width int, text string) string { return text + strings.Repeat(" ", max(0, width-len(text))) }
