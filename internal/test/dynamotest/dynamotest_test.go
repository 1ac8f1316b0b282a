package dynamotest_test

import (
	"fmt"
	"net/http"
	"runtime"
	"slices"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/sluice-go/sluice/internal/test/dynamotest"
)

func TestMain(m *testing.M) { dynamotest.Main(m) }

// onlyKey makes the smallest table there is.
func onlyKey(name string) *dynamodb.CreateTableInput {
	return &dynamodb.CreateTableInput{
		TableName:   &name,
		BillingMode: types.BillingModePayPerRequest,
		KeySchema: []types.KeySchemaElement{{AttributeName: aws.String("PK"),
			KeyType: types.KeyTypeHash}},
		AttributeDefinitions: []types.AttributeDefinition{{AttributeName: aws.String("PK"),
			AttributeType: types.ScalarAttributeTypeS}},
	}
}

func tables(t *testing.T, client *dynamodb.Client) []string {
	t.Helper()
	out, err := client.ListTables(t.Context(), &dynamodb.ListTablesInput{})
	if err != nil {
		t.Fatal(err)
	}
	return out.TableNames
}

func TestTableLivesAsLongAsItsTest(t *testing.T) {
	client := dynamotest.Client(t)
	var names []string
	t.Run("two of one test/with odd characters", func(t *testing.T) {
		names = append(names, dynamotest.Table(t, client, onlyKey), dynamotest.Table(t, client, onlyKey))
		got := tables(t, client)
		for _, name := range names {
			if !slices.Contains(got, name) {
				t.Errorf("%s is not among the tables %q", name, got)
			}
		}
	})
	if names[0] == names[1] {
		t.Errorf("two tables have the name %s", names[0])
	}
	got := tables(t, client)
	for _, name := range names {
		if slices.Contains(got, name) {
			t.Errorf("%s outlived its test", name)
		}
	}
}

func TestTableDeletedByItsTest(t *testing.T) {
	client := dynamotest.Client(t)
	name := dynamotest.Table(t, client, onlyKey)
	if _, err := client.DeleteTable(t.Context(), &dynamodb.DeleteTableInput{TableName: &name}); err != nil {
		t.Fatal(err)
	}
}

func TestClientIsShared(t *testing.T) {
	first, second := dynamotest.Client(t), dynamotest.Client(t)
	if first != second {
		t.Error("a second call made another client")
	}
}

// TestEndpoint: the URL leads to the same engine as the client.
func TestEndpoint(t *testing.T) {
	client := dynamotest.Client(t)
	table := dynamotest.Table(t, client, onlyKey)
	there := dynamodb.New(client.Options(), func(o *dynamodb.Options) {
		o.BaseEndpoint, o.HTTPClient = aws.String(dynamotest.Endpoint(t)), http.DefaultClient
	})
	if got := tables(t, there); !slices.Contains(got, table) {
		t.Errorf("%s is not among the tables %q", table, got)
	}
}

// recorder is a testing.TB that notes how a test ended.
type recorder struct {
	testing.TB
	ended string
}

func (r *recorder) Helper() {}

func (r *recorder) Fatalf(format string, args ...any) { r.end("failed: ", format, args) }

func (r *recorder) Skipf(format string, args ...any) { r.end("skipped: ", format, args) }

func (r *recorder) end(how, format string, args []any) {
	r.ended = how + fmt.Sprintf(format, args...)
	runtime.Goexit()
}

// TestWhichEngine: a run for the engine in the process skips tests of DynamoDB Local. A run for DynamoDB
// Local fails if there is none, and so does a run for an unknown engine.
func TestWhichEngine(t *testing.T) {
	for _, test := range []struct{ engine, want string }{
		{"", "skipped: this test needs DynamoDB Local: run `make test-local`, which sets SLUICE_DYNAMODB=local"},
		{"local", ""},
		{"lokal", "failed: SLUICE_DYNAMODB=lokal: want local, or nothing for the engine in the process"},
	} {
		t.Run(test.engine, func(t *testing.T) {
			t.Setenv("SLUICE_DYNAMODB", test.engine)
			r := &recorder{TB: t}
			done := make(chan struct{})
			go func() {
				defer close(done)
				dynamotest.RequireLocal(r)
			}()
			<-done
			if r.ended != test.want {
				t.Errorf("the test %s\nwant it %s", r.ended, test.want)
			}
		})
	}
}
