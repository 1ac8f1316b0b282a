package cli_test

import (
	"context"
	"crypto/rand"
	"github.com/sluice-go/sluice/internal/test/storetest"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/sluice-go/sluice/cmd/sluice/cli"
	"github.com/sluice-go/sluice/cmd/sluice/internal/bucketstore"
	limits "github.com/sluice-go/sluice/generated"
	"github.com/sluice-go/sluice/internal/test/dynamotest"
	"github.com/sluice-go/sluice/runtime"
	"github.com/sluice-go/sluice/runtime/dynamo"
	"github.com/sluice-go/sluice/runtime/dynamo/codec"
	"github.com/sluice-go/sluice/runtime/dynamo/migrating/perlimit"
	"github.com/sluice-go/sluice/runtime/dynamo/operator"
	"github.com/sluice-go/sluice/runtime/memdynamo"
)

func TestMain(m *testing.M) { dynamotest.Main(m) }

// start is a multiple of every refill period, so that what refills since is whole.
var start = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// fixed is a clock that stands still.
type fixed struct{ time.Time }

func (f fixed) Now() time.Time                     { return f.Time }
func (fixed) After(time.Duration) <-chan time.Time { return nil }

// sluice runs the command line on the tests' engine at the given time, and returns the exit code and what it
// printed.
func sluice(t *testing.T, now time.Time, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, errs strings.Builder
	program := cli.Program{Stdout: &out, Stderr: &errs, Now: func() time.Time { return now }}
	code = program.Run(t.Context(), append(args, "--endpoint", dynamotest.Endpoint(t)))
	return code, out.String(), errs.String()
}

// expect fails the test where the command did not end as it should.
func expect(t *testing.T, code int, stdout, stderr string, wantCode int, wantOut, wantErr string) {
	t.Helper()
	if code != wantCode || stdout != wantOut || !sameFacts(stderr, wantErr) {
		t.Errorf("exit code %d, stdout\n%s\nstderr\n%s\nwant %d, stdout\n%s\nstderr\n%s",
			code, stdout, stderr, wantCode, wantOut, wantErr)
	}
}

// notStored is what peek prints of a bucket that is not there. TestPeek has its wording.
func notStored(entity, resource string) string { return bucketstore.NotStored(entity, resource) + "\n" }

// parts are what is said of a table that is as it should be, by the engine in the process.
func parts(table string) string {
	return `  ok  key PK, SK
  ok  index GSI1 on GSI1PK, GSI1SK projects KEYS_ONLY
  ok  index GSI2 on GSI2PK, GSI2SK projects KEYS_ONLY
  ok  stream of NEW_AND_OLD_IMAGES
  ok  TTL on ttl
note  billing is on demand
note  deletion protection is off; ` + "`aws dynamodb update-table --table-name " + table +
		" --deletion-protection-enabled` switches it on\n" +
		"note  point-in-time recovery is off; `sluice table create --table " + table +
		" --recoverable` switches it on, on AWS: " +
		"it brings back what a mistake deleted\n"
}

// partsHere are the parts on the engine of this run: DynamoDB Local does not say whether a table could be
// recovered.
func partsHere(t *testing.T, table string) string {
	t.Helper()
	text := parts(table)
	if dynamotest.OnLocal(t) {
		text, _, _ = strings.Cut(text, "note  point-in-time")
	}
	return text
}

func TestTable(t *testing.T) {
	sequential(t)
	client := dynamotest.Client(t)
	table := "cli-test-table-" + rand.Text()
	t.Cleanup(func() {
		_, _ = client.DeleteTable(context.WithoutCancel(t.Context()), &dynamodb.DeleteTableInput{TableName: &table})
	})
	missing := "sluice: table " + table + " does not exist: "
	code, out, errs := sluice(t, start, "table", "check", "--table", table)
	if code != 1 || out != "" || !hasFacts(errs, missing) ||
		!hasFacts(errs, "; run `sluice table create --table "+table+"`, or check region and endpoint\n") {
		t.Errorf("check of a missing table: exit code %d\n%s%s", code, out, errs)
	}
	creating := "creating table " + table + " in " + dynamotest.Endpoint(t) + "\n"
	code, out, errs = sluice(t, start, "table", "create", "--table", table)
	expect(t, code, out, errs, 0, "created table "+table+"\n"+partsHere(t, table), creating)
	code, out, errs = sluice(t, start, "table", "create", "--table", table)
	expect(t, code, out, errs, 0, "table "+table+" exists already\n"+partsHere(t, table), "")

	t.Setenv("SLUICE_TABLE", table)
	code, out, errs = sluice(t, start, "table", "check")
	expect(t, code, out, errs, 0, "table "+table+" in "+dynamotest.Endpoint(t)+"\n"+partsHere(t, table), "")
}

// creating is an engine whose table is still being created when first asked about.
func creating(t *testing.T, table string) *httptest.Server {
	t.Helper()
	engine := memdynamo.New()
	if _, err := operator.CreateTable(t.Context(), engine.Client(), table); err != nil {
		t.Fatal(err)
	}
	var asked atomic.Bool
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !strings.HasSuffix(r.Header.Get("X-Amz-Target"), ".DescribeTable") || asked.Swap(true) {
			engine.ServeHTTP(w, r)
			return
		}
		reply := httptest.NewRecorder()
		engine.ServeHTTP(reply, r)
		_, _ = io.WriteString(w, strings.Replace(reply.Body.String(), `"TableStatus":"ACTIVE"`,
			`"TableStatus":"CREATING"`, 1))
	}))
	t.Cleanup(server.Close)
	return server
}

func TestTableCreateWaits(t *testing.T) {
	server := creating(t, "rate_limits")
	var out, errs strings.Builder
	now := start
	program := cli.Program{Stdout: &out, Stderr: &errs,
		Now: func() time.Time { now = now.Add(time.Second); return now }}
	code := program.Run(t.Context(), []string{"table", "create", "--endpoint", server.URL})
	expect(t, code, out.String(), errs.String(), 0, "table rate_limits exists already\n"+parts("rate_limits"),
		"waiting for table rate_limits (1s)\n")
}

func TestTableOfSomebodyElse(t *testing.T) {
	sequential(t)
	client := dynamotest.Client(t)
	table := dynamotest.Table(t, client, func(name string) *dynamodb.CreateTableInput {
		return &dynamodb.CreateTableInput{
			TableName:   &name,
			BillingMode: types.BillingModePayPerRequest,
			KeySchema:   []types.KeySchemaElement{{AttributeName: aws.String("id"), KeyType: types.KeyTypeHash}},
			AttributeDefinitions: []types.AttributeDefinition{{AttributeName: aws.String("id"),
				AttributeType: types.ScalarAttributeTypeS}},
		}
	})
	name := "sluice: table " + table + ": "
	const cure = "; create it anew: run `sluice table create` with another name\n"
	common := name + "its key is not PK (S, hash) and SK (S, range)" + cure +
		name + "index GSI1 (GSI1PK, GSI1SK) is missing; add it, projecting KEYS_ONLY\n" +
		name + "index GSI2 (GSI2PK, GSI2SK) is missing; add it, projecting KEYS_ONLY\n"
	code, out, errs := sluice(t, start, "table", "check", "--table", table)
	expect(t, code, out, errs, 1, "", common+
		name+"TTL is not enabled on attribute ttl; enable it, as `sluice table create` does: else buckets that "+
		"nobody uses stay for ever\n"+
		name+"it has no stream; run `aws dynamodb update-table --table-name "+table+
		" --stream-specification StreamEnabled=true,StreamViewType=NEW_AND_OLD_IMAGES`: usage and regional sync "+
		"read it\n")
	code, out, errs = sluice(t, start, "table", "create", "--table", table)
	expect(t, code, out, errs, 1, "", common)
}

func TestPeek(t *testing.T) {
	sequential(t)
	client := dynamotest.Client(t)
	table := dynamotest.Table(t, client, operator.Table)
	lim, err := limits.New(dynamo.New(storetest.Dated(client, fixed{start}), table),
		runtime.WithClock(fixed{start}))
	if err != nil {
		t.Fatal(err)
	}
	user := limits.User{ID: "123", Project: limits.Project{ID: "7"}}
	code, out, errs := sluice(t, start, "peek", "user-123", "gpt-4", "--table", table)
	expect(t, code, out, errs, 0, "user-123 on gpt-4: no bucket is stored: it was never used, it has "+
		"expired, or a name is wrong; an unused bucket is full\n", "")

	lease, err := lim.GPT4.Acquire(t.Context(), user, limits.GPT4Cost{RPM: 35, TPM: 14_000})
	if err != nil {
		t.Fatal(err)
	}
	code, out, errs = sluice(t, start.Add(time.Second), "peek", "user-123", "gpt-4", "--table", table)
	expect(t, code, out, errs, 0, `user-123 on gpt-4
  LIMIT  AVAILABLE  CAPACITY   BURST  REFILL           FULL IN
  rpm         66.6       100     100  100 every 1m     20s
  tpm      1,166.6    10,000  15,000  10,000 every 1m  1m23s
`, "")

	// In debt, and full again.
	if err := lease.Settle(t.Context(), limits.GPT4Cost{RPM: 35, TPM: 15_100}); err != nil {
		t.Fatal(err)
	}
	code, out, errs = sluice(t, start, "peek", "user-123", "gpt-4", "--table", table)
	expect(t, code, out, errs, 0, `user-123 on gpt-4
  LIMIT  AVAILABLE  CAPACITY   BURST  REFILL           FULL IN
  rpm           65       100     100  100 every 1m     21s
  tpm         -100    10,000  15,000  10,000 every 1m  1m30.6s
`, "")
	code, out, errs = sluice(t, start.Add(time.Hour), "peek", "user-123", "gpt-4", "--table", table)
	expect(t, code, out, errs, 0, `user-123 on gpt-4
  LIMIT  AVAILABLE  CAPACITY   BURST  REFILL           FULL IN
  rpm          100       100     100  100 every 1m     now
  tpm       15,000    10,000  15,000  10,000 every 1m  now
`, "")
}

// TestPerLimit: per-limit items without a bucket are shown as the bucket that they will become, not as a full
// one. Items whose bucket was converted and has expired are not shown.
func TestPerLimit(t *testing.T) {
	sequential(t)
	client := dynamotest.Client(t)
	table := dynamotest.Table(t, client, operator.Table)
	put := func(limit string, tokens, migrated int64) {
		t.Helper()
		item := codec.Item{
			"PK": codec.S("ENTITY#user-123"), "SK": codec.S("#BUCKET#gpt-4#" + limit),
			perlimit.Tokens: codec.N(tokens), perlimit.Refilled: codec.N(start.UnixMilli() - 3000),
			perlimit.Capacity: codec.N(100_000), perlimit.Burst: codec.N(150_000), perlimit.Refill: codec.N(100_000),
			perlimit.Period: codec.N(60_000),
		}
		if migrated != 0 {
			item[perlimit.Migrated] = codec.N(migrated)
		}
		if _, err := client.PutItem(t.Context(),
			&dynamodb.PutItemInput{TableName: &table, Item: item}); err != nil {
			t.Fatal(err)
		}
	}
	put("rpm", 40_000, 0)
	put("tpm", 150_000, 1)
	code, out, errs := sluice(t, start, "peek", "user-123", "gpt-4", "--table", table)
	expect(
		t,
		code,
		out,
		errs,
		0,
		`user-123 on gpt-4: in per-limit items, which its next acquire or `+"`sluice migrate`"+
			` converts into a bucket
  LIMIT  AVAILABLE  CAPACITY  BURST  REFILL        FULL IN
  rpm           45       100    150  100 every 1m  1m3s
`,
		"",
	)
	code, out, errs = sluice(t, start, "override", "explain", "user-123", "gpt-4", "--table", table, "--file",
		demo)
	expect(t, code, out, errs, 0, `user-123 on gpt-4
  LIMIT  LEVEL     CAPACITY   BURST  REFILL
  rpm    user-123         -       -  -
         user             -       -  -
         schema         100     100  100 every 1m     in force
  tpm    user-123         -       -  -
         user             -       -  -
         schema      10,000  15,000  10,000 every 1m  in force
in per-limit items, which its next acquire or `+"`sluice migrate`"+
		` converts into a bucket, with the limits in force
  LIMIT  AVAILABLE  CAPACITY  BURST  REFILL        FULL IN
  rpm           45       100    150  100 every 1m  1m3s
`+above, "")
	code, out, errs = sluice(t, start, "reset", "user-123", "gpt-4", "--table", table)
	expect(t, code, out, errs, 1, "", "sluice: user-123 on gpt-4: in per-limit items, which its next acquire "+
		"or `sluice migrate` converts into a bucket: run this again after that\n")
	put("rpm", 40_000, 1)
	code, out, errs = sluice(t, start, "peek", "user-123", "gpt-4", "--table", table)
	expect(t, code, out, errs, 0, notStored("user-123", "gpt-4"), "")
}

func TestPeekFails(t *testing.T) {
	sequential(t)
	client := dynamotest.Client(t)
	code, out, errs := sluice(t, start, "peek", "user-123", "gpt-4", "--table", "cli-test-none")
	if code != 1 || out != "" || !hasFacts(errs, "sluice: table cli-test-none does not exist: ") {
		t.Errorf("peek into a missing table: exit code %d\n%s%s", code, out, errs)
	}

	table := dynamotest.Table(t, client, operator.Table)
	bad := limits.GPT4Bucket{Entity: "user-123"}
	for _, test := range []struct {
		attr, wrong string
		value       types.AttributeValue
	}{
		{"rf", "of type S, want an integer of 64 bits", &types.AttributeValueMemberS{Value: "yesterday"}},
		{"b_a.b_tk", "of no limit, want a name such as b_rpm_tk, with a-z, 0-9 and _",
			&types.AttributeValueMemberN{Value: "1"}},
	} {
		spoilt := bad.MarshalItem()
		spoilt[test.attr] = test.value
		_, err := client.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: &table, Item: spoilt})
		if err != nil {
			t.Fatal(err)
		}
		for _, command := range []string{"peek", "reset"} {
			code, out, errs = sluice(t, start, command, "user-123", "gpt-4", "--table", table)
			expect(t, code, out, errs, 1, "", "sluice: the bucket of user-123 on gpt-4 is malformed: "+
				"attribute "+test.attr+": "+test.wrong+"; fix or delete the item: a missing bucket is a full one\n")
		}
	}
}
