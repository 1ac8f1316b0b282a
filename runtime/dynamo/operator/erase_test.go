package operator_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/sluice-go/sluice/internal/test/dynamotest"
	"github.com/sluice-go/sluice/internal/test/errtext"
	"github.com/sluice-go/sluice/runtime/dynamo/codec"
	"github.com/sluice-go/sluice/runtime/dynamo/internal/wire"
	"github.com/sluice-go/sluice/runtime/dynamo/operator"
	"github.com/sluice-go/sluice/runtime/internal/item"
	"github.com/sluice-go/sluice/runtime/memdynamo"
	"github.com/sluice-go/sluice/runtime/store"
)

// customer is a table with items of user-1 of each kind, and with items of others.
type customer struct {
	memory  *memdynamo.Engine
	client  *dynamodb.Client
	table   string
	members *operator.Members
}

// ofUser1 is what there is of user-1 in a table of customers.
var ofUser1 = store.Erased{Buckets: 2, Overrides: 2, Usage: 3, Other: 3}

func newCustomer(t *testing.T) *customer {
	t.Helper()
	c := &customer{memory: memdynamo.New()}
	c.client = c.memory.Client()
	c.table = dynamotest.Table(t, c.client, dynamotest.Streamless(operator.Table))
	retrier := wire.NewRetrier(c.table)
	retrier.After = func(time.Duration) <-chan time.Time { // pauses take no time
		now := make(chan time.Time, 1)
		now <- time.Time{}
		return now
	}
	c.members = operator.MembersWith(c.client, retrier, time.Now, func(string) {})
	for _, m := range []store.Member{
		{Entity: "user-1", Parent: "project-a", Cascade: true},
		{Entity: "user-12", Parent: "project-a", Cascade: true},
	} {
		if err := c.members.Put(t.Context(), m); err != nil {
			t.Fatal(err)
		}
	}
	for _, key := range []codec.Item{
		item.BucketKey("user-1", "api"), item.BucketKey("user-1", "gpt-4"),
		item.BucketKey("user-1", "gpt-4#rpm"), // a predecessor's
		item.OverrideKey("api", "user-1"), item.OverrideKey("gone", "user-1"),
		item.UsageKey("user-1", "api", "hour", "2026-11-19T14"),
		item.UsageKey("user-1", "api", "day", "2026-11-19"),
		item.UsageKey("user-1", "gone", "day", "2026-11-19"),
		{"PK": codec.S("ENTITY#user-1"), "SK": codec.S("#LATER")},
		item.BucketKey("user-12", "api"), item.OverrideKey("api", "user"), item.OverrideKey("api", "user-12"),
	} {
		if _, err := c.client.PutItem(t.Context(),
			&dynamodb.PutItemInput{TableName: &c.table, Item: key}); err != nil {
			t.Fatal(err)
		}
	}
	return c
}

// keys returns the keys that the table has with this hash key, or all.
func (c *customer) keys(t *testing.T, hash string) (keys []string) {
	t.Helper()
	out, err := c.client.Scan(t.Context(), &dynamodb.ScanInput{TableName: &c.table})
	if err != nil {
		t.Fatal(err)
	}
	for _, found := range out.Items {
		if key := item.KeyOf(found); hash == "" || key.PK == hash {
			keys = append(keys, key.String())
		}
	}
	slices.Sort(keys)
	return keys
}

// TestErase: a dry run counts, an erase deletes what it counted, and nothing of others.
func TestErase(t *testing.T) {
	c := newCustomer(t)
	before := c.keys(t, "")
	got, err := c.members.Erase(t.Context(), "user-1", store.Erasing{DryRun: true})
	if got != ofUser1 || err != nil {
		t.Errorf("dry run: %+v, %v, want %+v", got, err, ofUser1)
	}
	if after := c.keys(t, ""); !slices.Equal(before, after) {
		t.Errorf("the dry run has changed %q to %q", before, after)
	}
	got, err = c.members.Erase(t.Context(), "user-1", store.Erasing{})
	if got != ofUser1 || err != nil {
		t.Errorf("%+v, %v, want %+v", got, err, ofUser1)
	}
	if left := c.keys(t, "ENTITY#user-1"); len(left) > 0 {
		t.Errorf("left are %q", left)
	}
	if after := c.keys(t, ""); len(after) != len(before)-10 {
		t.Errorf("%d items of %d are left", len(after), len(before))
	}
	for child, err := range c.members.Children(t.Context(), "project-a") {
		if child != "user-12" || err != nil {
			t.Errorf("child %s, %v", child, err)
		}
	}
	got, err = c.members.Erase(t.Context(), "user-1", store.Erasing{})
	if got != (store.Erased{}) || err != nil {
		t.Errorf("erased again: %+v, %v", got, err)
	}
}

// TestEraseGoesOn: an erase that fails at any of its deletions says what it deleted, and the next one deletes
// the rest.
func TestEraseGoesOn(t *testing.T) {
	for fails := range 10 {
		t.Run(fmt.Sprint(fails), func(t *testing.T) {
			c := newCustomer(t)
			ctx, cancel := context.WithCancel(t.Context())
			var deletions atomic.Int64 // several are under way at once
			c.memory.Faults().Script(func(r memdynamo.Request) memdynamo.Fault {
				if r.Operation == "DeleteItem" && deletions.Add(1) > int64(fails) {
					cancel()
					return memdynamo.LoseRequest
				}
				return memdynamo.None
			})
			first, err := c.members.Erase(ctx, "user-1", store.Erasing{})
			if err == nil {
				t.Fatal("no error of the erase that failed")
			}
			c.memory.Faults().Clear()
			left := len(c.keys(t, "ENTITY#user-1"))
			rest, err := c.members.Erase(t.Context(), "user-1", store.Erasing{})
			if err != nil || total(rest) != left || total(first)+total(rest) < total(ofUser1)-left ||
				total(first) > total(ofUser1)-left {
				t.Errorf("first %+v, then %+v of %d, %v", first, rest, left, err)
			}
			if left := c.keys(t, "ENTITY#user-1"); len(left) > 0 {
				t.Errorf("left are %q", left)
			}
		})
	}
}

func total(n store.Erased) int { return n.Buckets + n.Overrides + n.Usage + n.Other }

// TestEraseOrder: the link goes first, then overrides, then buckets, each before the first of the next.
func TestEraseOrder(t *testing.T) {
	c := newCustomer(t)
	for _, step := range []struct{ prefix, none string }{
		{"#CONFIG#", "#META"}, {"#BUCKET#", "#CONFIG#"}, {"#USAGE#", "#BUCKET#api"},
	} {
		ctx, cancel := context.WithCancel(t.Context())
		recorder := &deletions{API: c.client, before: step.prefix, cancel: cancel}
		members := operator.NewMembers(recorder, c.table, store.SystemClock().Now)
		if _, err := members.Erase(ctx, "user-1", store.Erasing{}); err == nil {
			t.Errorf("no deletion of %s", step.prefix)
		}
		for _, key := range c.keys(t, "ENTITY#user-1") {
			if strings.Contains(key, step.none) {
				t.Errorf("%s is still there when those of %s go", key, step.prefix)
			}
		}
	}
}

// deletions is an API that refuses to delete items with a prefix, and cancels.
type deletions struct {
	wire.API
	before string
	cancel func()
}

func (d *deletions) DeleteItem(
	ctx context.Context, in *dynamodb.DeleteItemInput, opts ...func(*dynamodb.Options),
) (*dynamodb.DeleteItemOutput, error) {
	if strings.HasPrefix(item.KeyOf(in.Key).SK, d.before) {
		d.cancel()
		return nil, ctx.Err()
	}
	return d.API.DeleteItem(ctx, in, opts...)
}

// TestEraseParent: an entity with children is refused, by name, also in a dry run; LeaveChildren leaves them.
func TestEraseParent(t *testing.T) {
	c := newCustomer(t)
	for _, id := range []string{"user-2", "user-3"} {
		if err := c.members.Put(t.Context(), store.Member{Entity: id, Parent: "project-a"}); err != nil {
			t.Fatal(err)
		}
	}
	if err := c.members.Put(t.Context(), store.Member{Entity: "project-a"}); err != nil {
		t.Fatal(err)
	}
	for _, how := range []store.Erasing{{}, {DryRun: true}} {
		got, err := c.members.Erase(t.Context(), "project-a", how)
		if _, ok := errors.AsType[*store.InvalidError](err); !ok || got != (store.Erased{}) {
			t.Errorf("%+v: %+v, %T", how, got, err)
		}
		const want = `invalid entity "project-a" is the parent of user-1, user-12, user-2, others: nothing was ` +
			"erased, since their look-ups would fail; store another parent for them, or leave the children as they are"
		if got := errtext.Reason(err); got != want {
			t.Errorf("%s\nwant %s", got, want)
		}
	}
	got, err := c.members.Erase(t.Context(), "project-a", store.Erasing{LeaveChildren: true})
	if want := (store.Erased{Other: 1}); got != want || err != nil {
		t.Errorf("%+v, %v, want %+v", got, err, want)
	}
	m, found, err := c.members.Get(t.Context(), "user-2")
	if m.Parent != "project-a" || !found || err != nil {
		t.Errorf("child %+v, %t, %v", m, found, err)
	}
}
