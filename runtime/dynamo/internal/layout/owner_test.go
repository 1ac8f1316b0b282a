package layout_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go"

	limits "github.com/sluice-go/sluice/generated"
	"github.com/sluice-go/sluice/internal/test/dynamotest"
	"github.com/sluice-go/sluice/internal/test/errtext"
	"github.com/sluice-go/sluice/runtime"
	"github.com/sluice-go/sluice/runtime/dynamo"
	"github.com/sluice-go/sluice/runtime/dynamo/codec"
	"github.com/sluice-go/sluice/runtime/dynamo/operator"
	"github.com/sluice-go/sluice/runtime/internal/item"
	"github.com/sluice-go/sluice/runtime/memdynamo"
	"github.com/sluice-go/sluice/runtime/store"
)

func TestMain(m *testing.M) { dynamotest.Main(m) }

// newTable returns a table as `sluice table create` makes it.
func newTable(t *testing.T, client *dynamodb.Client) string {
	t.Helper()
	table := dynamotest.Table(t, client, operator.Table)
	if _, err := operator.CreateTable(t.Context(), client, table); err != nil {
		t.Fatal(err)
	}
	return table
}

// checked returns the error of Check on a table, as errtext describes it, or "".
func checked(t *testing.T, client *dynamodb.Client, table string) string {
	t.Helper()
	l, err := limits.New(dynamo.New(client, table))
	if err != nil {
		t.Fatal(err)
	}
	if err = l.Check(t.Context()); err == nil {
		return ""
	}
	return strings.ReplaceAll(errtext.Of(err), table, "TABLE")
}

// versionOf returns the version item of a table.
func versionOf(t *testing.T, client *dynamodb.Client, table string) codec.Item {
	t.Helper()
	out, err := client.GetItem(t.Context(), &dynamodb.GetItemInput{TableName: &table, Key: item.VersionKey()})
	if err != nil {
		t.Fatal(err)
	}
	return out.Item
}

// recordedOwner returns the owner that a table records, "" if it records none.
func recordedOwner(t *testing.T, client *dynamodb.Client, table string) string {
	t.Helper()
	d := codec.Decoder{Item: versionOf(t, client, table)}
	if _, ok := d.Item["owner"]; !ok {
		return ""
	}
	return d.Text("owner")
}

// ownedItem returns the version item of a table that records an owner.
func ownedItem(owner string) codec.Item {
	stored := item.VersionKey()
	stored["layout"], stored["revision"] = codec.N(1), codec.N(0)
	stored["owner"] = &types.AttributeValueMemberS{Value: owner}
	return stored
}

// TestOwner: Check records the owner of a table without one, beside what its version item says. It accepts
// the same owner from then on, and refuses another owner's table.
func TestOwner(t *testing.T) {
	client := dynamotest.Client(t)
	table := newTable(t, client)
	for range 2 {
		if text := checked(t, client, table); text != "" {
			t.Fatal(text)
		}
		if got := recordedOwner(t, client, table); got != "acme" {
			t.Errorf("the table records owner %q, want acme", got)
		}
	}
	d := codec.Decoder{Item: versionOf(t, client, table)}
	if layout, revision := d.Int("layout"), d.Int("revision"); layout != 1 || revision != 0 || d.Err() != nil {
		t.Errorf("layout %d, revision %d, %v, want 1 and 0", layout, revision, d.Err())
	}
	foreign := ownedItem("beta\x1b[2J")
	put := &dynamodb.PutItemInput{TableName: &table, Item: foreign}
	if _, err := client.PutItem(t.Context(), put); err != nil {
		t.Fatal(err)
	}
	const want = "setup: table TABLE belongs to owner \"beta\\x1b[2J\", and this limits.yaml has owner acme: " +
		"they would overwrite each other's buckets and overrides | use another table or a " +
		"dynamo.Namespace of your own (on Redis another Prefix), or write the same owner if both have one " +
		"limits.yaml"
	if text := checked(t, client, table); text != want {
		t.Errorf("got  %s\nwant %s", text, want)
	}
	if got := recordedOwner(t, client, table); got != "beta\x1b[2J" {
		t.Errorf("Check changed the owner to %q", got)
	}
}

// ownerWrites is a client whose writes of the version item run before or instead of the real ones.
type ownerWrites struct {
	*dynamodb.Client
	once   sync.Once
	before func()
	err    error
	hangs  bool // the real ones never answer
}

func (c *ownerWrites) UpdateItem(
	ctx context.Context, in *dynamodb.UpdateItemInput, opts ...func(*dynamodb.Options),
) (*dynamodb.UpdateItemOutput, error) {
	if c.before != nil {
		c.once.Do(c.before)
	}
	if c.err != nil {
		return nil, c.err
	}
	if c.hangs {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	return c.Client.UpdateItem(ctx, in, opts...)
}

// TestOwnerRace: of two owners that check a new table at once, the one whose write comes second fails. A
// process that lost to one of the same owner does not.
func TestOwnerRace(t *testing.T) {
	client := dynamotest.Client(t)
	for winner, fails := range map[string]bool{"acme": false, "beta": true} {
		table := newTable(t, client)
		first := ownedItem(winner)
		l, err := limits.New(dynamo.New(&ownerWrites{Client: client, before: func() {
			if _, err := client.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: &table,
				Item: first}); err != nil {
				t.Error(err)
			}
		}}, table))
		if err != nil {
			t.Fatal(err)
		}
		_, refused := errors.AsType[*store.SetupError](l.Check(t.Context()))
		if refused != fails {
			t.Errorf("after %s: refused %t, want %t", winner, refused, fails)
		}
		if got := recordedOwner(t, client, table); got != winner {
			t.Errorf("the table records owner %q, want %s", got, winner)
		}
	}
}

// TestOwnerUnwritten: a role that may not write the record passes Check with a warning. Another error of the
// write fails it.
func TestOwnerUnwritten(t *testing.T) {
	client := dynamotest.Client(t)
	for code, want := range map[string]bool{"AccessDeniedException": false, "ValidationException": true} {
		table := newTable(t, client)
		var log bytes.Buffer
		l, err := limits.New(dynamo.New(&ownerWrites{Client: client,
			err: &smithy.GenericAPIError{Code: code, Message: "no"}}, table),
			runtime.WithLogger(slog.New(slog.NewTextHandler(&log, nil))))
		if err != nil {
			t.Fatal(err)
		}
		err = l.Check(t.Context())
		warned := log.Len() > 0
		if _, refused := errors.AsType[*store.SetupError](err); refused != want || warned == refused {
			t.Errorf("%s: %v, warned %t: %s", code, errtext.Of(err), warned, log.String())
		}
	}
}

// TestOwnerHangs: a service that answers all calls of Check but the write of the owner does not stop Check
// for ever.
func TestOwnerHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := memdynamo.New().Client()
		if _, err := operator.CreateTable(t.Context(), client, "limits"); err != nil {
			t.Fatal(err)
		}
		l, err := limits.New(dynamo.New(&ownerWrites{Client: client, hangs: true}, "limits"))
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		began := time.Now()
		err = l.Check(ctx)
		_, down := errors.AsType[*runtime.UnavailableError](err)
		if took := time.Since(began); !down || !errors.Is(err, context.DeadlineExceeded) || took != 10*time.Second {
			t.Errorf("after %v, want 10s: %v", took, err)
		}
	})
}

// TestCheckOwner: a table fits its owner, and everyone while it records none. A caller without an owner gets
// an error of its own. Nothing is written.
func TestCheckOwner(t *testing.T) {
	client := dynamotest.Client(t)
	table := newTable(t, client)
	check := func(own string) string {
		err := operator.CheckOwner(t.Context(), client, table, own)
		if err == nil {
			return ""
		}
		return strings.ReplaceAll(errtext.Of(err), table, "TABLE")
	}
	for _, own := range []string{"", "acme"} {
		if text := check(own); text != "" || recordedOwner(t, client, table) != "" {
			t.Errorf("%q on a table without an owner: %s", own, text)
		}
	}
	put := &dynamodb.PutItemInput{TableName: &table, Item: ownedItem("beta")}
	if _, err := client.PutItem(t.Context(), put); err != nil {
		t.Fatal(err)
	}
	for own, want := range map[string]string{
		"beta": "",
		"acme": errtext.Of(store.OtherOwner("table TABLE", "beta", "acme")),
		"": "setup: table TABLE belongs to owner beta, and there is no limits.yaml to compare it with | " +
			"name the limits.yaml of that owner, or the owner",
	} {
		if text := check(own); text != want {
			t.Errorf("%q: got  %s\nwant %s", own, text, want)
		}
	}
}
