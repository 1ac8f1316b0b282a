package docs_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http/httptest"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"go.yaml.in/yaml/v3"

	"github.com/sluice-go/sluice/cmd/sluice/cli"
	limits "github.com/sluice-go/sluice/generated"
	"github.com/sluice-go/sluice/runtime/dynamo"
	"github.com/sluice-go/sluice/runtime/dynamo/codec"
	"github.com/sluice-go/sluice/runtime/dynamo/operator"
	"github.com/sluice-go/sluice/runtime/memdynamo"
	"github.com/sluice-go/sluice/runtime/usage"
)

const usageTable = "rate_limits"

// streamed is an engine with a table on which user-123 and its project have consumed something.
func streamed(t *testing.T) (*memdynamo.Engine, *dynamodb.Client) {
	t.Helper()
	engine := memdynamo.New()
	client := engine.Client()
	if _, err := operator.CreateTable(t.Context(), client, usageTable); err != nil {
		t.Fatal(err)
	}
	lim, err := limits.New(dynamo.New(client, usageTable))
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		if _, err := lim.GPT4.Acquire(t.Context(), limits.User{ID: "123", Project: limits.Project{ID: "1"}},
			limits.GPT4Cost{TPM: 10}); err != nil {
			t.Fatal(err)
		}
	}
	return engine, client
}

// units are the write units of docs/usage.md's table, in its order.
func units(t *testing.T) (all []float64) {
	t.Helper()
	_, table, _ := strings.Cut(read(t, "docs/usage.md"), "| what | write units |\n|---|--:|\n")
	table, _, _ = strings.Cut(table, "\n\n")
	for row := range strings.Lines(table + "\n") {
		cells := strings.Split(row, "|")
		n, err := strconv.ParseFloat(strings.TrimSpace(cells[2]), 64)
		if err != nil {
			t.Fatal(row, err)
		}
		all = append(all, n)
	}
	return all
}

// TestDocsUsageCosts holds what docs/usage.md says that aggregation costs against what the engine bills for
// sluice aggregate.
func TestDocsUsageCosts(t *testing.T) {
	engine, client := streamed(t)
	server := httptest.NewServer(engine)
	t.Cleanup(server.Close)
	count := func() memdynamo.Consumption {
		t.Helper()
		program := cli.Program{Stdout: io.Discard, Stderr: io.Discard, Now: time.Now}
		if code := program.Run(t.Context(), []string{"aggregate", "--once", "--endpoint", server.URL}); code != 0 {
			t.Fatal("exit code ", code)
		}
		return engine.Consumed()
	}
	const buckets = 2
	before := engine.Consumed().Tables[usageTable]
	counted := count().Tables[usageTable]
	found, err := client.Query(t.Context(), &dynamodb.QueryInput{
		TableName: aws.String(usageTable), KeyConditionExpression: aws.String("PK = :pk AND begins_with(SK, :sk)"),
		ExpressionAttributeValues: codec.Item{":pk": codec.S("SYSTEM#"), ":sk": codec.S("#CHECKPOINT#")},
	})
	if err != nil || len(found.Items) != 1 {
		t.Fatal(found, err)
	}
	if _, err := client.DeleteItem(t.Context(), &dynamodb.DeleteItemInput{ // it has forgotten where it was
		TableName: aws.String(usageTable), Key: codec.Item{"PK": found.Items[0]["PK"], "SK": found.Items[0]["SK"]},
	}); err != nil {
		t.Fatal(err)
	}
	again := count().Tables[usageTable]
	got := []float64{
		(counted["UpdateItem"].Applied.Write - before["UpdateItem"].Applied.Write) / buckets,
		(again["UpdateItem"].Refused.Write - counted["UpdateItem"].Refused.Write) / buckets,
		counted["PutItem"].Applied.Write - before["PutItem"].Applied.Write,
	}
	if want := units(t); !slices.Equal(got, want) {
		t.Errorf("the engine bills %v, docs/usage.md says %v", got, want)
	}
	if refused, applied := counted["UpdateItem"].Refused.Write-before["UpdateItem"].Refused.Write,
		again["UpdateItem"].Applied.Write-counted["UpdateItem"].Applied.Write; refused != 0 ||
		applied != 0 {
		t.Errorf("%v were refused at first, %v written again", refused, applied)
	}
}

// TestDocsUsageSizes holds what docs/usage.md says of the sizes of watermarks and windows: shards are named
// as AWS names them.
func TestDocsUsageSizes(t *testing.T) {
	_, client := streamed(t)
	a, err := usage.New(usage.Config{
		Client: client, Table: usageTable, Poisoned: func(_ context.Context, p usage.Poison) error { return p.Err },
		Extract: func(rec codec.Record) ([]codec.Delta, error) {
			all := []codec.Delta{
				{Limit: "rpm", Millitokens: 1_000_000_000},
				{Limit: "tpm", Millitokens: 1_000_000_000_000},
			}
			for i := range all {
				all[i].Entity, all[i].Resource, all[i].At = "user-"+strings.Repeat("x", 36), "gpt-4", rec.At
			}
			return all, nil
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	at := time.Date(2026, 11, 19, 14, 0, 0, 0, time.UTC)
	var sizes []int
	for i := range 8 {
		shard := fmt.Sprintf("shardId-0000000141457657362%d-f55eea83", i)
		if err := a.Add(t.Context(), shard,
			[]codec.Record{{At: at, Sequence: "4421584500000000017450439091"}}); err != nil {
			t.Fatal(err)
		}
		out, err := client.GetItem(
			t.Context(),
			&dynamodb.GetItemInput{TableName: aws.String(usageTable), Key: codec.Item{
				"PK": codec.S("ENTITY#user-" + strings.Repeat("x", 36)), "SK": codec.S("#USAGE#gpt-4#day#2026-11-19"),
			}},
		)
		if err != nil {
			t.Fatal(err)
		}
		sizes = append(sizes, size(out.Item))
	}
	docs := unwrapped(t, "docs/usage.md")
	if said := fmt.Sprintf("A watermark takes %d bytes of its item, %d for Lambda,", sizes[7]-sizes[6],
		len("w_lambda")+40); !strings.Contains(
		docs,
		said,
	) {
		t.Errorf("docs/usage.md does not say: %s", said)
	}
	if sizes[7] > 1024 {
		t.Errorf("a day's window of 8 shards has %d bytes", sizes[7])
	}
}

// size is an item's as DynamoDB counts it: a number has a byte for two digits, and one more.
func size(item codec.Item) (n int) {
	for name, v := range item {
		n += len(name)
		switch v := v.(type) {
		case *types.AttributeValueMemberS:
			n += len(v.Value)
		case *types.AttributeValueMemberN:
			n += (len(v.Value)+1)/2 + 1
		}
	}
	return n
}

// TestDocsUsageMapping: the event source mapping in docs/usage.md is one, has partial failures reported, and
// lets buckets through, when they were written, and nothing else.
func TestDocsUsageMapping(t *testing.T) {
	block := regexp.MustCompile("(?s)```yaml\n(.*?)```").FindStringSubmatch(read(t, "docs/usage.md"))
	if block == nil {
		t.Fatal("docs/usage.md has no mapping")
	}
	text := strings.NewReplacer("!Ref ", "", "!GetAtt ", "").Replace(block[1])
	var template struct {
		Aggregate struct {
			Properties struct {
				FunctionResponseTypes []string `yaml:"FunctionResponseTypes"`
				FilterCriteria        struct {
					Filters []struct {
						Pattern string `yaml:"Pattern"`
					} `yaml:"Filters"`
				} `yaml:"FilterCriteria"`
			} `yaml:"Properties"`
		} `yaml:"Aggregate"`
	}
	if err := yaml.Unmarshal([]byte(text), &template); err != nil {
		t.Fatal(err)
	}
	p := template.Aggregate.Properties
	if len(p.FilterCriteria.Filters) != 1 ||
		!slices.Equal(p.FunctionResponseTypes, []string{"ReportBatchItemFailures"}) {
		t.Fatalf("%+v", p)
	}
	var filter struct {
		EventName []string
		Dynamodb  struct {
			Keys struct {
				SK struct{ S []struct{ Prefix string } }
			}
		}
	}
	if err := json.Unmarshal([]byte(p.FilterCriteria.Filters[0].Pattern), &filter); err != nil {
		t.Fatal(err)
	}
	passes := func(event, sort string) bool {
		return slices.Contains(filter.EventName, event) &&
			slices.ContainsFunc(filter.Dynamodb.Keys.SK.S, func(rule struct{ Prefix string }) bool {
				return strings.HasPrefix(sort, rule.Prefix)
			})
	}
	var batch events.DynamoDBEvent
	if err := json.Unmarshal([]byte(read(t, "examples/aggregator/event.json")), &batch); err != nil ||
		len(batch.Records) == 0 {
		t.Fatal(batch, err)
	}
	for _, r := range batch.Records {
		if !passes(r.EventName, r.Change.Keys["SK"].String()) {
			t.Errorf("%s of %s does not pass", r.EventName, r.Change.Keys["SK"].String())
		}
	}
	for _, sort := range []string{"#USAGE#gpt-4#hour#2026-11-19T14", "#CHECKPOINT#shardId-1", "#META",
		"#CONFIG#gpt-4"} {
		if passes("MODIFY", sort) {
			t.Errorf("%s passes", sort)
		}
	}
	if passes("REMOVE", "#BUCKET#gpt-4") {
		t.Error("what expires passes")
	}
}
