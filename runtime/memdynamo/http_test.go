package memdynamo_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams"

	"github.com/sluice-go/sluice/runtime/memdynamo"
)

const signature = "AWS4-HMAC-SHA256 Credential=me/20261121/us-east-1/dynamodb/aws4_request, " +
	"SignedHeaders=host, Signature=x"

// rawRequest is a request without the SDK.
func rawRequest(ctx context.Context, operation, body string) *http.Request {
	r := httptest.NewRequestWithContext(ctx, http.MethodPost, "/", strings.NewReader(body))
	r.Header.Set("X-Amz-Target", "DynamoDB_20120810."+operation)
	r.Header.Set("Content-Type", "application/x-amz-json-1.0")
	r.Header.Set("Authorization", signature)
	return r
}

// answer is a reply that was read.
type answer struct {
	status int
	length int64
	header http.Header
	body   string
}

// read reads a reply.
func read(r *http.Response) (answer, error) {
	body, err := io.ReadAll(r.Body)
	return answer{r.StatusCode, r.ContentLength, r.Header, string(body)}, errors.Join(err, r.Body.Close())
}

// serve has the engine answer a request as over a socket.
func serve(engine *memdynamo.Engine, r *http.Request) (answer, error) {
	w := httptest.NewRecorder()
	engine.ServeHTTP(w, r)
	return read(w.Result())
}

// carry has it answer as it does its clients.
func carry(engine *memdynamo.Engine, r *http.Request) (answer, error) {
	response, err := engine.HTTPClient().Do(r)
	if err != nil {
		return answer{}, err
	}
	return read(response)
}

func TestProtocol(t *testing.T) {
	t.Parallel()
	const (
		amz     = "application/x-amz-json-1.0"
		unknown = `{"__type":"com.amazon.coral.service#UnknownOperationException"}`
		garbled = `{"__type":"com.amazon.coral.service#SerializationException"}`
		noToken = `{"__type":"com.amazon.coral.service#MissingAuthenticationTokenException","message":"Request ` +
			`is missing Authentication Token"}`
		none   = "<UnknownOperationException/>\n"
		tables = `{"TableNames":[]}`
	)
	header := func(pairs ...string) func(*http.Request) {
		return func(r *http.Request) {
			for i := 0; i < len(pairs); i += 2 {
				r.Header.Set(pairs[i], pairs[i+1])
				if pairs[i+1] == "" {
					r.Header.Del(pairs[i])
				}
			}
		}
	}
	unserved := func(operation string) string {
		return `{"__type":"com.amazon.coral.service#UnknownOperationException","message":"memdynamo does not ` +
			`serve ` + operation + `"}`
	}
	target := func(name string) func(*http.Request) { return header("X-Amz-Target", name) }
	method := func(name string) func(*http.Request) { return func(r *http.Request) { r.Method = name } }
	for name, test := range map[string]struct {
		body   string
		change func(*http.Request)
		status int
		kind   string
		want   string
	}{
		"a good request": {"{}", header(), 200, amz, tables},
		"plain JSON": {"{}", header("Content-Type", "application/json; charset=utf-8"), 200, "application/json",
			tables},
		"signed in the URL": {"{}", func(r *http.Request) {
			r.Header.Del("Authorization")
			r.URL.RawQuery = "X-Amz-Algorithm=AWS4-HMAC-SHA256"
		}, 200, amz, tables},
		"streams": {"{}", target("DynamoDBStreams_20120810.ListStreams"), 200, amz,
			`{"Streams":[]}`},
		"health":               {"", method("GET"), 200, "", "healthy: dynamodb.us-east-1.amazonaws.com "},
		"another method":       {"{}", method("PUT"), 404, "", none},
		"another content type": {"{}", header("Content-Type", "application/x-amz-json-1.1"), 200, amz, tables},
		"no content type":      {"{}", header("Content-Type", ""), 200, amz, tables},
		"no target":            {"{}", target(""), 400, amz, unknown},
		"no service":           {"{}", target("ListTables"), 400, amz, unknown},
		"no operation":         {"{}", target("DynamoDB_20120810."), 400, amz, unknown},
		"unknown operation": {"{}", target("DynamoDB_20120810.ListTablez"), 400, amz,
			unserved("ListTablez")},
		"unknown service": {"{}", target("DynamoDB_20111205.ListTables"), 400, amz, unknown},
		"an operation too much": {"{}", target("DynamoDB_20120810.ListTables.ListTables"), 400, amz,
			unserved("ListTables.ListTables")},
		"streams of tables": {"{}", target("DynamoDB_20120810.ListStreams"), 400, amz, unknown},
		"tables of streams": {"{}", target("DynamoDBStreams_20120810.ListTables"), 400, amz, unknown},
		"no signature":      {"{}", header("Authorization", ""), 400, amz, noToken},
		"another signature": {"{}", header("Authorization", "Bearer x"), 400, amz, noToken},
		"half a signature": {"{}", header("Authorization", "AWS4-HMAC-SHA256 Credential=\"x\""), 200, amz,
			tables},
		"bad JSON":               {"{", header(), 400, amz, garbled},
		"bad JSON, no target":    {"{", target(""), 400, amz, garbled},
		"bad JSON, no signature": {"{", header("Authorization", ""), 400, amz, garbled},
		"nothing, no target":     {"", target(""), 400, amz, unknown},
		"JSON that is no object": {"[]", header(), 400, amz, garbled},
		"an exception of a table": {`{"TableName":"none"}`, target("DynamoDB_20120810.DescribeTable"), 400, amz,
			`{"__type":"com.amazonaws.dynamodb.v20120810#ResourceNotFoundException","message":"Requested resource ` +
				`not found: Table: none not found"}`},
		"a validation that fails": {`{"TableName":"x"}`, target("DynamoDB_20120810.DescribeTable"), 400, amz,
			`{"__type":"com.amazon.coral.validate#ValidationException",`},
		"more bytes than the most": {strings.Repeat(" ", 16<<20+1), header(), 413, "", ""},
		"the most bytes":           {strings.Repeat(" ", 16<<20-2) + "{}", header(), 200, amz, tables},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			engine := memdynamo.New()
			for how, ask := range map[string]func(*memdynamo.Engine, *http.Request) (answer, error){"socket": serve,
				"client": carry} {
				r := rawRequest(t.Context(), "ListTables", test.body)
				test.change(r)
				got, err := ask(engine, r)
				must(t, err)
				equal(t, how+": status", got.status, test.status)
				equal(t, how+": content type", got.header.Get("Content-Type"), test.kind)
				equal(t, how+": length", got.length, int64(len(got.body)))
				equal(t, how+": crc32", got.header.Get("X-Amz-Crc32"), fmt.Sprint(crc32.ChecksumIEEE([]byte(got.body))))
				if got := got.body; got != test.want &&
					!(strings.HasSuffix(test.want, ",") && strings.HasPrefix(got, test.want)) {
					t.Errorf("%s: body\n\t%s\nwant\n\t%s", how, got, test.want)
				}
				if id := got.header.Get("X-Amzn-Requestid"); !regexp.MustCompile(`^[A-Z0-9]{52}$`).MatchString(id) {
					t.Errorf("%s: request id %q", how, id)
				}
			}
		})
	}
}

// TestExceptionFields: what an exception carries beside its message arrives in the SDK's types.
func TestExceptionFields(t *testing.T) {
	engine, client := setUp(t)
	must(t, ignore(client.PutItem(t.Context(), put("a"))))
	again := put("a")
	again.ReturnValuesOnConditionCheckFailure = types.ReturnValuesOnConditionCheckFailureAllOld
	failed := as[*types.ConditionalCheckFailedException](t, ignore(client.PutItem(t.Context(), again)))
	equal(t, "the item", failed.Item["id"].(*types.AttributeValueMemberS).Value, "a")
	equal(t, "the message", failed.ErrorMessage(), "The conditional request failed")

	p := put("a")
	_, err := engine.Client().TransactWriteItems(t.Context(),
		&dynamodb.TransactWriteItemsInput{TransactItems: []types.TransactWriteItem{
			{Put: &types.Put{TableName: p.TableName, Item: item{"id": s("b")}}},
			{Put: &types.Put{TableName: p.TableName, Item: p.Item, ConditionExpression: p.ConditionExpression}},
		}})
	cancelled := as[*types.TransactionCanceledException](t, err)
	equal(t, "the message", cancelled.ErrorMessage(),
		"Transaction cancelled, please refer cancellation reasons for specific reasons [None, "+
			"ConditionalCheckFailed]")
	equal(t, "reasons", len(cancelled.CancellationReasons), 2)
	equal(t, "second reason", aws.ToString(cancelled.CancellationReasons[1].Code), "ConditionalCheckFailed")
}

// socket serves the engine over one, and returns a client of it that tries once.
func socket(t *testing.T, engine *memdynamo.Engine) *dynamodb.Client {
	t.Helper()
	server := httptest.NewServer(engine)
	t.Cleanup(server.Close)
	return engine.Client(once, func(o *dynamodb.Options) {
		o.BaseEndpoint, o.HTTPClient = aws.String(server.URL), server.Client()
	})
}

func TestOverASocket(t *testing.T) {
	engine := memdynamo.New()
	client := socket(t, engine)
	createThings(t, client)
	out, err := client.UpdateItem(t.Context(), add("a"))
	must(t, err)
	equal(t, "reply", out.Attributes["n"].(*types.AttributeValueMemberN).Value, "1")

	for name, test := range map[string]struct {
		begin   func(*memdynamo.Faults)
		applied string
	}{
		"lost request": {func(f *memdynamo.Faults) { f.LoseRequests(1) }, "0"},
		"lost reply":   {func(f *memdynamo.Faults) { f.LoseReplies(1) }, "1"},
		"down":         {func(f *memdynamo.Faults) { f.Down(true) }, "0"},
	} {
		test.begin(engine.Faults())
		_, err := client.UpdateItem(t.Context(), add(name))
		if !errors.Is(err, io.EOF) {
			t.Errorf("%s: %v, want a connection that ended", name, err)
		}
		engine.Faults().Clear()
		equal(t, name+": applied", count(t, engine, name), test.applied)
	}
}

func TestStreamsClient(t *testing.T) {
	engine, client := setUp(t)
	must(t, ignore(client.PutItem(t.Context(), put("a"))))
	streams := engine.Streams()
	out, err := streams.ListStreams(t.Context(),
		&dynamodbstreams.ListStreamsInput{TableName: aws.String(things)})
	must(t, err)
	equal(t, "streams", len(out.Streams), 1)
	shards := func() (open, closed int) {
		out, err := streams.DescribeStream(t.Context(),
			&dynamodbstreams.DescribeStreamInput{StreamArn: out.Streams[0].StreamArn})
		must(t, err)
		for _, shard := range out.StreamDescription.Shards {
			if shard.SequenceNumberRange.EndingSequenceNumber != nil {
				closed++
			} else {
				open++
			}
		}
		return open, closed
	}
	open, closed := shards()
	must(t, engine.SplitShards(things))
	openAfter, closedAfter := shards()
	equal(t, "open shards after a split", openAfter, 2*open)
	equal(t, "closed shards after a split", closedAfter, closed+open)
	if err := engine.SplitShards("none"); err == nil ||
		!strings.Contains(err.Error(), "split the shards of table none: ResourceNotFoundException") {
		t.Errorf("split of a table that is not there: %v", err)
	}
}

// TestClientThatLostItsTransport fails, and does not reach AWS.
func TestClientThatLostItsTransport(t *testing.T) {
	engine := memdynamo.New()
	client := engine.Client(once)
	const nowhere = "http://memdynamo.invalid" // no name below .invalid resolves
	equal(t, "endpoint", aws.ToString(client.Options().BaseEndpoint), nowhere)
	equal(t, "endpoint of streams", aws.ToString(engine.Streams().Options().BaseEndpoint), nowhere)
}

// TestHTTPClient: a client made elsewhere, of which the engine knows nothing.
func TestHTTPClient(t *testing.T) {
	engine := memdynamo.New()
	client := dynamodb.NewFromConfig(aws.Config{
		Region: "eu-west-1", HTTPClient: engine.HTTPClient(),
		Credentials: aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
			return aws.Credentials{AccessKeyID: "a", SecretAccessKey: "b", SessionToken: "c"}, nil
		}),
	})
	must(t, ignore(client.ListTables(t.Context(), &dynamodb.ListTablesInput{})))

	r := rawRequest(t.Context(), "ListTables", "{}")
	r.ContentLength = -1 // unknown
	got, err := carry(engine, r)
	must(t, err)
	equal(t, "tables", got.body, `{"TableNames":[]}`)
	broken := errors.New("broken")
	r.Body = io.NopCloser(failing{broken})
	if _, err := carry(engine, r); !errors.Is(err, broken) {
		t.Errorf("a body that cannot be read: %v", err)
	}
}

type failing struct{ error }

func (f failing) Read([]byte) (int, error) { return 0, f.error }

// stopped is a clock that stands still.
type stopped struct{ time.Time }

func (s stopped) Now() time.Time                     { return s.Time }
func (stopped) After(time.Duration) <-chan time.Time { return nil }

func TestClock(t *testing.T) {
	at := time.Date(2031, 2, 3, 4, 5, 6, 0, time.FixedZone("east", 3600))
	engine, client := setUp(t, memdynamo.WithClock(stopped{at}))
	out, err := client.DescribeTable(t.Context(), &dynamodb.DescribeTableInput{TableName: aws.String(things)})
	must(t, err)
	if !out.Table.CreationDateTime.Equal(at) {
		t.Errorf("created at %v, want %v", out.Table.CreationDateTime, at)
	}
	date := func(t *testing.T, engine *memdynamo.Engine) string {
		t.Helper()
		got, err := serve(engine, rawRequest(t.Context(), "ListTables", "{}"))
		must(t, err)
		return got.header.Get("Date")
	}
	equal(t, "Date", date(t, engine), "Mon, 03 Feb 2031 03:05:06 GMT")
	memdynamo.New(nil, memdynamo.WithClock(nil)) // change nothing

	synctest.Test(t, func(t *testing.T) { // the default is the bubble's
		equal(t, "Date", date(t, memdynamo.New()), "Sat, 01 Jan 2000 00:00:00 GMT")
	})
}

// FuzzProtocol: whatever comes in, there is one reply, and it is what its header says it is.
func FuzzProtocol(f *testing.F) {
	for _, body := range []string{
		`{}`, `{"TableName":"things","Key":{"id":{"S":"a"}}}`, `[[[[[[`, `{"TableName":1e999999999}`, `"`, `null`,
		"\xff",
		`{"TableName":"things","Item":{"id":{"S":"a"},"n":{"N":"1e125"},"l":{"L":[{"M":{}}]}},
			"ConditionExpression":"attribute_not_exists(id) AND (n < :n)",
			"ExpressionAttributeValues":{":n":{"N":"1"}}}`,
		`{"TableName":"things","Key":{"id":{"S":"a"}},"UpdateExpression":"SET #a.b[0] = if_not_exists(c, :v) ` +
			`REMOVE d ADD e :v","ExpressionAttributeNames":{"#a":"a"},"ExpressionAttributeValues":{":v":{"N":"1"}}}`,
		`{"TableName":"things","KeyConditionExpression":"id = ` +
			`:v","ExpressionAttributeValues":{":v":{"S":"a"}},"Limit":1}`,
		`{"TransactItems":[{"Put":{"TableName":"things","Item":{"id":{"S":"a"}}}}]}`,
		`{"RequestItems":{"things":[{"PutRequest":{"Item":{"id":{"S":"a"}}}}]}}`,
	} {
		for _, target := range []string{
			"DynamoDB_20120810.PutItem", "DynamoDB_20120810.GetItem", "DynamoDB_20120810.UpdateItem",
			"DynamoDB_20120810.DeleteItem",
			"DynamoDB_20120810.Query", "DynamoDB_20120810.Scan", "DynamoDB_20120810.TransactWriteItems",
			"DynamoDB_20120810.BatchWriteItem",
			"DynamoDB_20120810.CreateTable", "DynamoDBStreams_20120810.GetRecords", "", ".",
		} {
			f.Add(target, "application/x-amz-json-1.0", []byte(body))
		}
	}
	f.Fuzz(func(t *testing.T, target, kind string, body []byte) {
		engine, _ := setUp(t)
		r := rawRequest(t.Context(), "", string(body))
		r.Header["X-Amz-Target"], r.Header["Content-Type"] = []string{target}, []string{kind}
		got, err := serve(engine, r)
		must(t, err)
		switch got.status {
		case http.StatusOK, http.StatusBadRequest:
			if !json.Valid([]byte(got.body)) {
				t.Errorf("the reply is no JSON: %q", got.body)
			}
		case http.StatusNotFound:
			equal(t, "reply", got.body, "<UnknownOperationException/>\n")
		default:
			t.Errorf("status %d", got.status)
		}
	})
}
