package dynamo

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/google/go-cmp/cmp"

	limits "github.com/sluice-go/sluice/generated"
	"github.com/sluice-go/sluice/internal/test/dynamotest"
	"github.com/sluice-go/sluice/internal/test/errtext"
	"github.com/sluice-go/sluice/runtime"
	"github.com/sluice-go/sluice/runtime/dynamo/codec"
	"github.com/sluice-go/sluice/runtime/dynamo/internal/layout"
	"github.com/sluice-go/sluice/runtime/dynamo/operator"
	"github.com/sluice-go/sluice/runtime/internal/item"
	"github.com/sluice-go/sluice/runtime/memdynamo"
	"github.com/sluice-go/sluice/runtime/store"
)

// tableWith creates a table whose layout was changed.
func tableWith(t *testing.T, client *dynamodb.Client, change func(*dynamodb.CreateTableInput)) string {
	t.Helper()
	return dynamotest.Table(t, client, func(name string) *dynamodb.CreateTableInput {
		in := operator.Table(name)
		change(in)
		return in
	})
}

// checked calls Check on a table, with a clock that is so much ahead, and returns its error as errtext
// describes it, and what was logged.
func checked(t *testing.T, client *dynamodb.Client, table string, ahead time.Duration) (text, logged string) {
	t.Helper()
	var log bytes.Buffer
	l, err := limits.New(
		New(client, table),
		runtime.WithClock(offsetClock(ahead)),
		runtime.WithLogger(untimed(&log)),
	)
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Check(t.Context()); err != nil {
		text = strings.ReplaceAll(errtext.Of(err), table, "TABLE")
	}
	return text, strings.ReplaceAll(log.String(), table, "TABLE")
}

// untimed returns a logger whose lines have no time.
func untimed(to *bytes.Buffer) *slog.Logger {
	return slog.New(slog.NewTextHandler(to, &slog.HandlerOptions{
		ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
			if a.Key == slog.TimeKey {
				return slog.Attr{}
			}
			return a
		},
	}))
}

// ttlOn creates a table whose layout was changed, and enables its TTL.
func ttlOn(t *testing.T, client *dynamodb.Client, change func(*dynamodb.CreateTableInput)) string {
	t.Helper()
	table := tableWith(t, client, change)
	if _, err := client.UpdateTimeToLive(t.Context(),
		operator.Definition{Table: table}.TimeToLive()); err != nil {
		t.Fatal(err)
	}
	return table
}

func TestCheck(t *testing.T) {
	const again = "create it anew: run `sluice table create` with another name"
	version := func(layout, revision int64) codec.Item {
		stored := item.VersionKey()
		stored["layout"], stored["revision"] = codec.N(layout), codec.N(revision)
		return stored
	}
	torn := version(1, 1)
	delete(torn, "layout")
	for name, test := range map[string]struct {
		change      func(*dynamodb.CreateTableInput)
		withoutTTL  bool
		version     codec.Item
		err, logged string
	}{
		"as it should be":        {version: version(1, 1)},
		"without a version item": {},
		"keys by other names": {
			change: func(in *dynamodb.CreateTableInput) {
				in.KeySchema[0].AttributeName, in.AttributeDefinitions[0].AttributeName = aws.String("Id"),
					aws.String("Id")
			},
			err: "setup: table TABLE: its key is not PK (S, hash) and SK (S, range) | " + again,
		},
		"a key of another type": {
			change: func(in *dynamodb.CreateTableInput) {
				in.AttributeDefinitions[1].AttributeType = types.ScalarAttributeTypeN
			},
			err: "setup: table TABLE: its key is not PK (S, hash) and SK (S, range) | " + again,
		},
		"no sort key": {
			change: func(in *dynamodb.CreateTableInput) {
				in.KeySchema = in.KeySchema[:1]
				in.AttributeDefinitions = append(in.AttributeDefinitions[:1], in.AttributeDefinitions[2:]...)
			},
			err: "setup: table TABLE: its key is not PK (S, hash) and SK (S, range) | " + again,
		},
		"an index that projects ALL": {
			change: func(in *dynamodb.CreateTableInput) {
				in.GlobalSecondaryIndexes[1].Projection.ProjectionType = types.ProjectionTypeAll
			},
			err: "setup: table TABLE: index GSI2 projects ALL, not KEYS_ONLY | " +
				"delete the index and add it with KEYS_ONLY: as it is, every acquire costs twice",
		},
		"an index that includes attributes": {
			change: func(in *dynamodb.CreateTableInput) {
				in.GlobalSecondaryIndexes[0].Projection = &types.Projection{
					ProjectionType: types.ProjectionTypeInclude, NonKeyAttributes: []string{"rf", "ttl"},
				}
			},
			err: "setup: table TABLE: index GSI1 projects INCLUDE (rf, ttl), not KEYS_ONLY | " +
				"delete the index and add it with KEYS_ONLY: as it is, every acquire that writes one of these costs " +
				"twice",
		},
		"no stream, which acquires do not need": {
			change: func(in *dynamodb.CreateTableInput) { in.StreamSpecification = nil },
		},
		"an index with other keys": {
			change: func(in *dynamodb.CreateTableInput) {
				in.GlobalSecondaryIndexes[0].KeySchema[1].AttributeName = aws.String("GSI2SK")
				in.AttributeDefinitions = append(in.AttributeDefinitions[:3], in.AttributeDefinitions[4:]...)
			},
			err: "setup: table TABLE: the keys of index GSI1 are not GSI1PK (S, hash) and GSI1SK (S, range) | " +
				"delete the index and add it with these",
		},
		"an index is missing": {
			change: func(in *dynamodb.CreateTableInput) {
				in.GlobalSecondaryIndexes = in.GlobalSecondaryIndexes[1:]
				in.AttributeDefinitions = append(in.AttributeDefinitions[:2], in.AttributeDefinitions[4:]...)
			},
			err: "setup: table TABLE: index GSI1 (GSI1PK, GSI1SK) is missing | add it, projecting KEYS_ONLY",
		},
		"no TTL": {
			withoutTTL: true,
			err: "setup: table TABLE: TTL is not enabled on attribute ttl | " +
				"enable it, as `sluice table create` does: else buckets that nobody uses stay for ever",
		},
		"all at once": {
			change: func(in *dynamodb.CreateTableInput) {
				in.GlobalSecondaryIndexes = nil
				in.AttributeDefinitions = in.AttributeDefinitions[:2]
			},
			withoutTTL: true,
			err: "setup: table TABLE: index GSI1 (GSI1PK, GSI1SK) is missing | add it, projecting KEYS_ONLY\n" +
				"setup: table TABLE: index GSI2 (GSI2PK, GSI2SK) is missing | add it, projecting KEYS_ONLY\n" +
				"setup: table TABLE: TTL is not enabled on attribute ttl | " +
				"enable it, as `sluice table create` does: else buckets that nobody uses stay for ever",
		},
		"a newer layout": {
			version: version(3, 1),
			err:     "setup: table TABLE has layout 3, this program knows 2 | upgrade sluice",
		},
		"a layout with per-limit items": {
			version: version(2, 1),
			err: "setup: table TABLE holds per-limit items, which this program would make full buckets beside | " +
				"use migrating.New instead of dynamo.New, until `sluice migrate --cleanup` has removed the last of them",
		},
		"a torn version item": {
			version: torn,
			err: "setup: the version item of table TABLE is malformed | attribute layout missing | " +
				"restore SYSTEM# / #VERSION, or delete it",
		},
		"a higher revision": {
			version: version(1, 7),
			logged: `level=WARN msg="sluice: the table has seen a higher revision of limits.yaml: its numbers stay ` +
				`in force" ` +
				"table=TABLE seen=7 own=1\n",
		},
	} {
		t.Run(name, func(t *testing.T) {
			client := dynamotest.Client(t)
			if test.change == nil {
				test.change = func(*dynamodb.CreateTableInput) {}
			}
			create := ttlOn
			if test.withoutTTL {
				create = tableWith
			}
			e := &engine{client: client, table: create(t, client, test.change)}
			if test.version != nil {
				e.put(t, test.version)
			}
			err, logged := checked(t, client, e.table, 0)
			if err != test.err {
				t.Errorf("got\n%s\nwant\n%s", err, test.err)
			}
			if logged != test.logged {
				t.Errorf("logged %q, want %q", logged, test.logged)
			}
		})
	}
}

func TestCheckMissingTable(t *testing.T) {
	got, _ := checked(t, dynamotest.Client(t), "nobody-made-this", 0)
	why := "Requested resource not found: Table: TABLE not found"
	if dynamotest.OnLocal(t) {
		why = "Cannot do operations on a non-existent table"
	}
	got = withoutRequest(strings.ReplaceAll(got, "nobody-made-this", "TABLE"))
	for _, want := range []string{"setup: ", "TABLE", " | ResourceNotFoundException: " + why + " | ",
		"`sluice table create --table TABLE`"} { // TestSetupErrors has the wording
		if !strings.Contains(got, want) {
			t.Errorf("nothing of %q in\n%s", want, got)
		}
	}
}

// TestCheckClock compares this host's clock, which the engine has as well, with the engine's Date. That has
// whole seconds, so that the difference is known to within one and the time that the call took.
func TestCheckClock(t *testing.T) {
	client := dynamotest.Client(t)
	table := ttlOn(t, client, func(*dynamodb.CreateTableInput) {})
	for ahead, want := range map[time.Duration]string{
		-500 * time.Millisecond: "",
		500 * time.Millisecond:  "",
		time.Hour:               "ahead of",
		-time.Hour:              "behind",
	} {
		err, _ := checked(t, client, table, ahead)
		if want == "" {
			if err != "" {
				t.Errorf("%v ahead: %s", ahead, err)
			}
			continue
		}
		var off time.Duration
		what, tail, _ := strings.Cut(err, " "+want+" ")
		if tail != "DynamoDB's | set it by NTP: refill goes by it" {
			t.Errorf("%v ahead: %s", ahead, err)
		}
		text, ok := strings.CutPrefix(what, "setup: this host's clock is at least ")
		off, parse := time.ParseDuration(text)
		if !ok || parse != nil || off > time.Hour || off < time.Hour-time.Minute {
			t.Errorf("%v ahead: %s", ahead, err)
		}
	}
}

// TestSkewIsObserved shows that serving notices a clock that is off too, once a minute.
func TestSkewIsObserved(t *testing.T) {
	e := newEngine(t)
	var seen []time.Duration
	clock := &handClock{} // stands years ahead
	l, err := limits.New(New(dynamotest.Client(t), e.table), runtime.WithClock(clock),
		runtime.WithObserver(&store.Observer{Skew: func(d time.Duration) { seen = append(seen, d) }}),
		runtime.WithLogger(slog.New(slog.DiscardHandler)), runtime.WithCallDefaults(runtime.Budget(time.Minute)))
	if err != nil {
		t.Fatal(err)
	}
	for _, at := range []int64{0, 59_999, 60_000} {
		clock.set(at)
		if _, err := l.Embeddings.Acquire(t.Context(), limits.Project{ID: "1"},
			limits.EmbeddingsCost{}); err != nil {
			t.Fatal(err)
		}
	}
	if len(seen) != 2 || seen[0] < time.Hour {
		t.Errorf("reported %v, want two clocks far ahead", seen)
	}
}

// TestRevisionIsRecorded shows that the first reshape of a revision leaves it in the table, for Check.
func TestRevisionIsRecorded(t *testing.T) {
	e := newEngine(t)
	gpt4, _ := generated(t)
	e.put(t, row{CV: 1, Op: "before", Limits: holds(50_000, 50_000, 10_000_000, 5_000_000)}.Item(t))
	for _, revision := range []int64{3, 2} { // the second is too late: it reshapes nothing
		d := e.desk(t, e.client, withNumbers(gpt4, revision, userRPM, userTPM))
		for range 2 {
			if _, err := d.Acquire(t.Context(), "1", tokens{1, 0}); err != nil {
				t.Fatal(err)
			}
		}
		if err := d.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	want := map[string]string{"PK": "S SYSTEM#", "SK": "S #VERSION", "layout": "N 1", "revision": "N 3"}
	if diff := cmp.Diff(want, plain(e.get(t, item.VersionKey()))); diff != "" {
		t.Errorf("the version item, - wanted, + stored:\n%s", diff)
	}
}

// interrupted is a client whose first calls fail at one step of CreateTable.
type interrupted struct {
	*dynamodb.Client
	ttl, put bool
}

var errInterrupted = fmt.Errorf("interrupted")

func (c *interrupted) UpdateTimeToLive(
	ctx context.Context,
	in *dynamodb.UpdateTimeToLiveInput,
	opts ...func(*dynamodb.Options),
) (*dynamodb.UpdateTimeToLiveOutput, error) {
	if c.ttl {
		return nil, errInterrupted
	}
	return c.Client.UpdateTimeToLive(ctx, in, opts...)
}

func (c *interrupted) PutItem(
	ctx context.Context,
	in *dynamodb.PutItemInput,
	opts ...func(*dynamodb.Options),
) (*dynamodb.PutItemOutput, error) {
	if c.put {
		return nil, errInterrupted
	}
	return c.Client.PutItem(ctx, in, opts...)
}

// TestCreateTable interrupts CreateTable after each step and calls it again: it completes the table, and then
// changes nothing.
func TestCreateTable(t *testing.T) {
	client := dynamotest.Client(t)
	table := dynamotest.Table(t, client, operator.Table) // for the name, and to have it deleted
	if _, err := client.DeleteTable(t.Context(), &dynamodb.DeleteTableInput{TableName: &table}); err != nil {
		t.Fatal(err)
	}
	for _, step := range []struct {
		client  *interrupted
		created bool
		err     string
	}{
		{&interrupted{Client: client, ttl: true}, true, "enable the TTL of table TABLE: interrupted"},
		{&interrupted{Client: client, put: true}, false, "write the version item of table TABLE: interrupted"},
		{&interrupted{Client: client}, false, ""},
		{&interrupted{Client: client}, false, ""},
	} {
		created, err := operator.CreateTable(t.Context(), step.client, table)
		text := ""
		if err != nil {
			text = strings.ReplaceAll(err.Error(), table, "TABLE")
		}
		if created != step.created || text != step.err {
			t.Errorf("got %t, %q; want %t, %q", created, text, step.created, step.err)
		}
	}
	if err, logged := checked(t, client, table, 0); err+logged != "" {
		t.Errorf("check: %s%s", err, logged)
	}
	e := &engine{client: client, table: table}
	want := map[string]string{
		"PK": "S SYSTEM#", "SK": "S #VERSION", "layout": "N 1", "revision": "N 0",
		"owner": "S acme", // Check records it
	}
	if diff := cmp.Diff(want, plain(e.get(t, item.VersionKey()))); diff != "" {
		t.Errorf("the version item, - wanted, + stored:\n%s", diff)
	}
	described, err := client.DescribeTable(t.Context(), &dynamodb.DescribeTableInput{TableName: &table})
	if err != nil {
		t.Fatal(err)
	}
	if s := described.Table.StreamSpecification; s == nil ||
		s.StreamViewType != types.StreamViewTypeNewAndOldImages {
		t.Errorf("stream %+v, want NEW_AND_OLD_IMAGES", s)
	}
	if b := described.Table.BillingModeSummary; b == nil || b.BillingMode != types.BillingModePayPerRequest {
		t.Errorf("billing %+v, want PAY_PER_REQUEST", b)
	}
	// An item written meanwhile, by the first reshape of a revision, stays.
	stored := item.VersionKey()
	stored["layout"], stored["revision"] = codec.N(1), codec.N(9)
	e.put(t, stored)
	if created, err := operator.CreateTable(t.Context(), client, table); created || err != nil {
		t.Errorf("got %t, %v", created, err)
	}
	if got := plain(e.get(t, item.VersionKey()))["revision"]; got != "N 9" {
		t.Errorf("the revision became %s", got)
	}
}

// TestCreateTableWithout what it needs says what that is, at each step as any other call does.
func TestCreateTableWithout(t *testing.T) {
	e, memory := newFaulty(t)
	o := e.client.Options()
	o.Retryer = aws.NopRetryer{} // its pauses take real time
	bare := o.Copy()
	bare.Credentials = aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
		return aws.Credentials{}, errors.New("none here")
	})
	_, err := operator.CreateTable(t.Context(), dynamodb.New(bare), e.table)
	if !isA[*store.SetupError](err) {
		t.Errorf("got a %T", err)
	}
	wantErr(t, err, "setup: no AWS credentials | get identity: get credentials: none here | "+
		"set AWS_PROFILE, or AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or run with a role")

	for _, step := range []string{"DescribeTable", "DescribeTimeToLive", "UpdateTimeToLive", "PutItem"} {
		memory.Faults().Script(func(r memdynamo.Request) memdynamo.Fault {
			if r.Operation == step {
				return memdynamo.InternalError
			}
			return memdynamo.None
		})
		_, err := operator.CreateTable(t.Context(), dynamodb.New(o), e.table)
		if !isA[*store.UnavailableError](err) {
			t.Errorf("%s: got a %T", step, err)
		}
		wantErr(t, err, "unavailable table "+e.table+": InternalServerError: Internal server error")
	}
	memory.Faults().Clear()
	over, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := operator.CreateTable(over, dynamodb.New(o), e.table); !errors.Is(err, context.Canceled) ||
		isA[*store.UnavailableError](err) {
		t.Errorf("cancelled: got %v", err)
	}
}

// TestCreateTableLeavesOthersAlone: a table of another layout is somebody else's, and a typo away.
func TestCreateTableLeavesOthersAlone(t *testing.T) {
	client := dynamotest.Client(t)
	table := dynamotest.Table(t, client, func(name string) *dynamodb.CreateTableInput {
		in := operator.Table(name)
		in.GlobalSecondaryIndexes, in.AttributeDefinitions = nil, in.AttributeDefinitions[:2]
		return in
	})
	created, err := operator.CreateTable(t.Context(), client, table)
	if !isA[*store.SetupError](err) || created {
		t.Fatalf("created %v, error %v", created, err)
	}
	ttl, err := client.DescribeTimeToLive(t.Context(), &dynamodb.DescribeTimeToLiveInput{TableName: &table})
	if err != nil {
		t.Fatal(err)
	}
	if layout.TTLEnabled(ttl.TimeToLiveDescription) {
		t.Error("its TTL was switched on")
	}
	items, err := client.Scan(t.Context(), &dynamodb.ScanInput{TableName: &table})
	if err != nil {
		t.Fatal(err)
	}
	if len(items.Items) > 0 {
		t.Errorf("it was written to: %v", items.Items)
	}
}
