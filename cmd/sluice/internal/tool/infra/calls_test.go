package infra_test

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/sluice-go/sluice/cmd/sluice/internal/tool/infra"
	"github.com/sluice-go/sluice/runtime/memdynamo"
)

// The table of these tests, and where the engine says that it is.
const (
	testTable = "rate_limits"
	testARN   = "arn:aws:dynamodb:us-east-1:000000000000:table/" + testTable
)

// service is the engine in the process, whose requests are noted as AWS would see them.
type service struct {
	url   string
	ahead time.Duration // how far the clock of commands is ahead
	space string        // the namespace of commands; empty for the default one
	mu    sync.Mutex
	seen  []request
}

// request is one that was sent.
type request struct {
	operation string
	asks      []ask // what it needs to be allowed
}

// ask is one action on one resource.
type ask struct {
	action, resource string
	keys             []string // hash keys of the items
}

// serve starts an engine.
func serve(t *testing.T) *service {
	t.Helper()
	s := &service{}
	engine := memdynamo.New()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		_, operation, _ := strings.Cut(r.Header.Get("X-Amz-Target"), ".")
		asks, err := asksOf(operation, body)
		if err != nil {
			t.Errorf("%s: %v", operation, err)
		}
		s.mu.Lock()
		s.seen = append(s.seen, request{operation, asks})
		s.mu.Unlock()
		r.Body = io.NopCloser(bytes.NewReader(body))
		engine.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	s.url = server.URL
	return s
}

// client returns a client of the engine.
func (s *service) client() *dynamodb.Client {
	return dynamodb.New(memdynamo.New().Client().Options(), func(o *dynamodb.Options) {
		o.BaseEndpoint, o.HTTPClient = aws.String(s.url),
			&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	})
}

// take returns what was seen since the last time.
func (s *service) take() []request {
	s.mu.Lock()
	defer s.mu.Unlock()
	seen := s.seen
	s.seen = nil
	return seen
}

// put adds to what is seen what was taken before.
func (s *service) put(before []request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.seen = append(before, s.seen...)
}

// action is a request about an item, or a part of a transaction.
type action struct {
	TableName, IndexName string
	Key, Item            map[string]map[string]any

	KeyConditionExpression    string
	ExpressionAttributeValues map[string]map[string]any

	StreamArn, ShardIterator string // which begins with the stream's ARN
}

// hashKey is the part of a key condition that is about the hash key, as ours are written.
var hashKey = regexp.MustCompile(`#?\w+ = (:\w+)`)

// queried returns the hash key of a query.
func (a action) queried() []string {
	value := hashKey.FindStringSubmatch(a.KeyConditionExpression)
	if value == nil {
		return nil
	}
	key, _ := a.ExpressionAttributeValues[value[1]]["S"].(string)
	return []string{key}
}

// keys returns the hash keys of items or their keys.
func keys(items ...map[string]map[string]any) []string {
	var all []string
	for _, item := range items {
		if key, ok := item["PK"]["S"].(string); ok {
			all = append(all, key)
		}
	}
	return all
}

// asksOf returns what AWS looks at before it serves a request. A transaction has no right of its own: each
// item in it needs that of its action.
func asksOf(operation string, body []byte) ([]ask, error) {
	var in struct {
		action
		RequestItems  map[string]struct{ Keys []map[string]map[string]any }
		TransactItems []map[string]action
	}
	if err := json.Unmarshal(body, &in); err != nil {
		return nil, err
	}
	var asks []ask
	switch operation {
	case "TransactWriteItems":
		for _, item := range in.TransactItems {
			for verb, a := range item {
				name := map[string]string{"Put": "PutItem", "Update": "UpdateItem", "Delete": "DeleteItem",
					"ConditionCheck": "ConditionCheckItem"}[verb]
				asks = append(asks, ask{name, arn(a.TableName, ""), keys(a.Key, a.Item)})
			}
		}
	case "BatchGetItem":
		for table, read := range in.RequestItems {
			asks = append(asks, ask{operation, arn(table, ""), keys(read.Keys...)})
		}
	case "DescribeStream", "GetShardIterator":
		asks = append(asks, ask{operation, in.StreamArn, nil})
	case "GetRecords":
		stream, _, _ := strings.Cut(in.ShardIterator, "|")
		asks = append(asks, ask{operation, stream, nil})
	case "Query":
		asks = append(asks, ask{operation, arn(in.TableName, in.IndexName), in.queried()})
	default:
		asks = append(asks, ask{operation, arn(in.TableName, in.IndexName), keys(in.Key, in.Item)})
	}
	return asks, nil
}

// arn returns the ARN of a table, or of an index of it.
func arn(table, index string) string {
	arn := strings.TrimSuffix(testARN, testTable) + table
	if index != "" {
		arn += "/index/" + index
	}
	return arn
}

// The condition on hash keys. Of no key at all it is true, as in IAM.
const (
	conditionOperator = "ForAllValues:StringLike"
	leading           = "dynamodb:LeadingKeys"
)

// policy is a policy document as IAM reads it.
type policy struct {
	Version   string
	Statement []struct {
		Sid, Effect string
		Action      []string
		Resource    string
		Condition   map[string]map[string][]string
	}
}

func parsePolicy(t *testing.T, text []byte) policy {
	t.Helper()
	var p policy
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&p); err != nil {
		t.Fatal(err)
	}
	return p
}

// policyOf returns a role's policy for the tests' table.
func policyOf(t *testing.T, role infra.Role) policy {
	t.Helper()
	return policyIn(t, role, "")
}

// policyIn is policyOf for a namespace.
func policyIn(t *testing.T, role infra.Role, namespace string) policy {
	t.Helper()
	text, err := infra.Policy(role, infra.Place{Table: testTable, Region: "us-east-1", Account: "000000000000",
		Snapshots: snapshots, Namespace: namespace})
	if err != nil {
		t.Fatal(err)
	}
	return parsePolicy(t, text)
}

// like reports that text is what pattern, with '*' for anything, says.
func like(pattern, text string) bool {
	return regexp.MustCompile("^" + strings.ReplaceAll(regexp.QuoteMeta(pattern), `\*`, ".*") +
		"$").MatchString(text)
}

// named returns an action as policies name it: one without a service is DynamoDB's.
func named(action string) string {
	if strings.Contains(action, ":") {
		return action
	}
	return "dynamodb:" + action
}

// allows reports that the policy allows what is asked, and notes what it was allowed by.
func (p policy) allows(a ask, used map[string]bool) bool {
	for _, s := range p.Statement {
		if s.Effect != "Allow" || !slices.Contains(s.Action, named(a.action)) || !like(s.Resource, a.resource) {
			continue
		}
		patterns := s.Condition[conditionOperator][leading]
		if patterns != nil && slices.ContainsFunc(a.keys, func(key string) bool {
			return !slices.ContainsFunc(patterns, func(pattern string) bool { return like(pattern, key) })
		}) {
			continue
		}
		used[s.Sid+" "+a.action] = true
		return true
	}
	return false
}

// granted returns all that the policy allows, as allows notes it.
func (p policy) granted() []string {
	var all []string
	for _, s := range p.Statement {
		for _, action := range s.Action {
			all = append(all, s.Sid+" "+strings.TrimPrefix(action, "dynamodb:"))
		}
	}
	return all
}

// without returns the policy less what granted calls so.
func (p policy) without(grant string) policy {
	less := policy{Version: p.Version, Statement: slices.Clone(p.Statement)}
	for i, s := range less.Statement {
		less.Statement[i].Action = slices.DeleteFunc(slices.Clone(s.Action), func(action string) bool {
			return s.Sid+" "+strings.TrimPrefix(action, "dynamodb:") == grant
		})
	}
	return less
}
