package engine_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/sluice-go/sluice/runtime/memdynamo/internal/exception"
)

const plainARN = "arn:aws:dynamodb:us-east-1:000000000000:table/plain"

// tags returns n tags as JSON.
func tags(n int) string {
	var list []string
	for i := range n {
		list = append(list, fmt.Sprintf(`{"Key":"k%d","Value":""}`, i))
	}
	return "[" + strings.Join(list, ",") + "]"
}

func TestTags(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	const arn = `"ResourceArn":"` + plainARN + `"`
	const list = `{` + arn + `}`
	r.do("CreateTable", strings.TrimSuffix(plainTable, "}")+
		`,"Tags":[{"Key":"b","Value":"1"},{"Key":"a","Value":"ключ 2+-=._:/@"}]}`)
	r.gives("ListTagsOfResource", list,
		`{"Tags":[{"Key":"a","Value":"ключ 2+-=._:/@"},{"Key":"b","Value":"1"}]}`)
	if output := r.do("TagResource",
		`{`+arn+`,"Tags":[{"Key":"a","Value":"3"},{"Key":"c","Value":""}]}`); output != "" {
		t.Errorf("TagResource says %q", output)
	}
	if output := r.do("UntagResource", `{`+arn+`,"TagKeys":["b","none"]}`); output != "" {
		t.Errorf("UntagResource says %q", output)
	}
	r.gives("ListTagsOfResource", list, `{"Tags":[{"Key":"a","Value":"3"},{"Key":"c","Value":""}]}`)

	const tooMany = "Number of Tags exceed the current limit for the provided ResourceArn"
	r.invalid("TagResource", `{`+arn+`,"Tags":`+tags(49)+`}`, tooMany) // beside the two
	r.invalid("TagResource", `{`+arn+`,"Tags":`+tags(51)+`}`, tooMany)
	r.do("TagResource", `{`+arn+`,"Tags":`+tags(48)+`}`)
	r.do("DeleteTable", `{"TableName":"plain"}`)
	r.do("CreateTable", plainTable)
	r.gives("ListTagsOfResource", list, `{"Tags":[]}`)
}

func TestTagRules(t *testing.T) {
	t.Parallel()
	r := newTables(t)
	const invalid = "One or more parameter values were invalid: "
	long := strings.Repeat("x", 257)
	for _, c := range []struct{ tags, message string }{
		{`[]`, "Atleast one Tag needs to be provided as Input."},
		{`null`, "1 validation error detected: Value null at 'tags' failed to satisfy constraint: Member must " +
			"not be null"},
		{`[{"Value":"v"}]`, "The Tag Key provided is invalid, Key: null"},
		{`[{"Key":"","Value":"v"}]`, "The Tag Key provided is invalid, Key: "},
		{`[{"Key":"` + long[:129] + `","Value":"v"}]`, "The Tag Key provided is invalid, Key: " + long[:129]},
		{`[{"Key":"a|b","Value":"v"}]`, "The Tag Key provided is invalid, Key: a|b"},
		{`[{"Key":"k"}]`, "The Tag Value provided is invalid, Value: null"},
		{`[{"Key":"k","Value":"` + long + `"}]`, "The Tag Value provided is invalid, Value: " + long},
		{`[{"Key":"k","Value":"🔑"}]`, "The Tag Value provided is invalid, Value: 🔑"},
		{`[{"Key":"good","Value":""},{"Key":"aws:k","Value":"v"}]`,
			"Tag Key cannot be prefixed with aws:, Key: aws:k"},
		{`[{"Key":"k","Value":"v"},{"Key":"k","Value":"w"}]`,
			"Duplicate Tag Keys provided as input: Duplicate Tag Key found k"},
	} {
		r.invalid("TagResource", `{"ResourceArn":"`+plainARN+`","Tags":`+c.tags+`}`, c.message)
	}
	r.invalid("CreateTable", strings.Replace(plainTable, `"plain"`, `"third","Tags":[{"Key":"k"}]`, 1),
		"The Tag Value provided is invalid, Value: null")
	for keys, message := range map[string]string{
		`[]`: "Atleast one Tag Key needs to be provided as Input.",
		`null`: "1 validation error detected: Value null at 'tagKeys' failed to satisfy " +
			"constraint: Member must not be null",
		`[""]`:                   "The Tag Key provided is invalid, Key: ",
		`["` + long[:129] + `"]`: "The Tag Key provided is invalid, Key: " + long[:129],
		`["k"` + strings.Repeat(`,"k"`, 50) +
			`]`: "Number of Tags exceed the current limit for the provided ResourceArn",
	} {
		r.invalid("UntagResource", `{"ResourceArn":"`+plainARN+`","TagKeys":`+keys+`}`, message)
	}
	r.gives("ListTagsOfResource", `{"ResourceArn":"`+plainARN+`"}`, `{"Tags":[]}`)

	const more = `,"Tags":[{"Key":"k","Value":"v"}],"TagKeys":["k"]}`
	for _, operation := range []string{"ListTagsOfResource", "TagResource", "UntagResource"} {
		r.invalid(operation, `{"X":1`+more, "Invalid TableArn")
		for arn, message := range map[string]string{
			"plain": "One or more parameter values were invalid: ARNs must start with 'arn:': " +
				"plain",
			"arn:aws:s3:::plain": invalid + "Provided Arn is not a DynamoDB resource arn: arn:aws:s3:::plain",
			plainARN + "/index/i": invalid +
				"Invalid resource arn provided, only table or stream is accepted. Provided resource arn: " + plainARN +
				"/index/i",
			plainARN[:len(plainARN)-3]: "Invalid TableArn: Invalid ResourceArn provided as input " +
				plainARN[:len(plainARN)-3],
		} {
			r.invalid(operation, `{"ResourceArn":"`+arn+`"`+more, message)
		}
		// as the service spells it
		message := "Requested resource not found: ResourcArn: " + plainARN + "er not found"
		if operation == "UntagResource" {
			message = "Requested resource not found"
		}
		r.fails(operation, `{"ResourceArn":"`+plainARN+`er"`+more, exception.ResourceNotFound, message)
	}
}

func TestDescribeAccount(t *testing.T) {
	t.Parallel()
	r := newTables(t)
	r.gives("DescribeLimits", `{}`, `{"AccountMaxReadCapacityUnits":80000,"AccountMaxWriteCapacityUnits":80000,
		"TableMaxReadCapacityUnits":40000,"TableMaxWriteCapacityUnits":40000}`)
	r.gives("DescribeEndpoints", `{}`,
		`{"Endpoints":[{"Address":"dynamodb.us-east-1.amazonaws.com","CachePeriodInMinutes":1440}]}`)
	r.gives("DescribeContinuousBackups", `{"TableName":"plain"}`, `{"ContinuousBackupsDescription":{
		"ContinuousBackupsStatus":"ENABLED","PointInTimeRecoveryDescription":{"PointInTimeRecoveryStatus":"DISABLED"}}}`)
	r.fails("DescribeContinuousBackups", `{"TableName":"none"}`, exception.TableNotFound,
		"Table not found: none")
}
