package operator_test

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/sluice-go/sluice/internal/test/audited"
	"github.com/sluice-go/sluice/internal/test/dynamotest"
	"github.com/sluice-go/sluice/runtime/dynamo/internal/wire"
	"github.com/sluice-go/sluice/runtime/dynamo/operator"
	"github.com/sluice-go/sluice/runtime/internal/item"
	"github.com/sluice-go/sluice/runtime/internal/namespace"
	"github.com/sluice-go/sluice/runtime/memdynamo"
	"github.com/sluice-go/sluice/runtime/store"
)

// auditedTable returns an empty table. wrap changes the client of all calls.
func auditedTable(t *testing.T, n item.Namespace, wrap func(wire.API) wire.API) *audited.World {
	t.Helper()
	memory := memdynamo.New()
	client := memory.Client()
	api := wrap(namespace.New(client, n))
	retrier := wire.NewRetrier(dynamotest.Table(t, client, dynamotest.Streamless(operator.Table)))
	retrier.After = func(time.Duration) <-chan time.Time { // pauses take no time
		now := make(chan time.Time, 1)
		now <- time.Time{}
		return now
	}
	now := time.UnixMilli(1_800_000_000_000)
	clock := func() time.Time { now = now.Add(time.Second); return now }
	return &audited.World{
		Overrides: operator.OverridesWith(api, retrier, clock),
		Members:   operator.MembersWith(api, retrier, clock, func(string) {}),
		Catalog:   operator.CatalogWith(api, retrier, clock),
		Changes: func(ctx context.Context, of store.Audited, since time.Time) iter.Seq2[store.Change, error] {
			return operator.Changes(ctx, api, retrier.Table, of, since)
		},
		Kill: func(ctx context.Context, n int) (context.Context, func()) {
			ctx, cancel := context.WithCancel(ctx)
			memory.Faults().Script(func(memdynamo.Request) memdynamo.Fault {
				if n--; n > 0 {
					return memdynamo.None
				}
				cancel()
				if n == 0 {
					return memdynamo.LoseReply
				}
				return memdynamo.LoseRequest
			})
			return ctx, func() { cancel(); memory.Faults().Clear() }
		},
	}
}

// split sends the items of a transaction one by one.
type split struct{ wire.API }

func (s split) TransactWriteItems(
	ctx context.Context, in *dynamodb.TransactWriteItemsInput, opts ...func(*dynamodb.Options),
) (*dynamodb.TransactWriteItemsOutput, error) {
	for _, part := range in.TransactItems {
		var err error
		if part.Update != nil {
			_, err = s.UpdateItem(ctx, &dynamodb.UpdateItemInput{
				TableName: part.Update.TableName, Key: part.Update.Key, UpdateExpression: part.Update.UpdateExpression,
				ConditionExpression:       part.Update.ConditionExpression,
				ExpressionAttributeNames:  part.Update.ExpressionAttributeNames,
				ExpressionAttributeValues: part.Update.ExpressionAttributeValues,
			}, opts...)
		} else {
			_, err = s.PutItem(ctx, &dynamodb.PutItemInput{
				TableName: part.Put.TableName, Item: part.Put.Item, ConditionExpression: part.Put.ConditionExpression,
				ExpressionAttributeNames:  part.Put.ExpressionAttributeNames,
				ExpressionAttributeValues: part.Put.ExpressionAttributeValues,
			}, opts...)
		}
		if err != nil {
			return nil, err
		}
	}
	return &dynamodb.TransactWriteItemsOutput{}, nil
}

// TestAudited: each change has its record, whatever becomes of the process. Control: a record that is written
// in a second call.
func TestAudited(t *testing.T) {
	for _, n := range []item.Namespace{"", "acme"} {
		found := audited.Problems(t.Context(), func() *audited.World {
			return auditedTable(t, n, func(api wire.API) wire.API { return api })
		})
		for _, problem := range found {
			t.Errorf("namespace %q: %s", n, problem)
		}
	}
	found := audited.Problems(t.Context(), func() *audited.World {
		return auditedTable(t, "", func(api wire.API) wire.API { return split{api} })
	})
	for _, thing := range audited.Things() {
		if !slices.ContainsFunc(found, func(problem string) bool {
			return strings.HasPrefix(problem, "killed after ") && strings.Contains(problem, thing+": the records end ")
		}) {
			t.Errorf("%s: nobody noticed a record in a second call: %q", thing, found)
		}
	}
}

// TestRecord: a record names who signs the call, unless the caller says who it is. A change that fails or
// changes nothing has none. A reason that looks like a key stays as it is, and a long one is cut off.
func TestRecord(t *testing.T) {
	w := auditedTable(t, "acme", func(api wire.API) wire.API { return api })
	pro, free := "pro", "free"
	reasons := []string{"ENTITY#x", strings.Repeat("ä", 101)}
	for _, err := range []error{
		w.Members.SetPlan(store.ChangedBy(t.Context(), "alice", reasons[0]), "org-7", pro, nil),
		w.Members.SetPlan(t.Context(), "org-7", pro, nil),
		w.Members.SetPlan(store.ChangedBy(t.Context(), "", reasons[1]), "org-7", free, &pro),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Members.SetPlan(t.Context(), "org-7", "", &pro); err == nil {
		t.Error("a move from another plan did not fail")
	}
	var got []string
	for c, err := range w.Changes(t.Context(), store.Audited{Entity: "org-7"}, time.Time{}) {
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, fmt.Sprint(c.By, "|", c.Reason, "|", c.Before, " to ", c.After))
	}
	want := []string{
		"alice|ENTITY#x|map[] to map[plan:pro]",
		"access key memdynamo|" + strings.Repeat("ä", 100) + "|map[plan:pro] to map[plan:free]",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got\n%q\nwant\n%q", got, want)
	}
}

// TestUnitsOfSetPlan: the plan of an entity and its record are four write units, however long the id, the
// actor and the reason are. A call that changes nothing is one read.
func TestUnitsOfSetPlan(t *testing.T) {
	for _, filler := range []string{"", "a", "<"} { // JSON may write some characters as six
		memory := memdynamo.New()
		client := memory.Client()
		table := dynamotest.Table(t, client, dynamotest.Streamless(operator.Table))
		id, ctx := "org-7", store.ChangedBy(t.Context(), "arn:aws:iam::123456789012:user/alice", "invoice 7")
		if filler != "" {
			id = "org-" + strings.Repeat("x", 256)
			ctx = store.ChangedBy(t.Context(), strings.Repeat(filler, 300), strings.Repeat(filler, 300))
		}
		members := operator.NewMembers(client, table, func() time.Time { return time.UnixMilli(1_800_000_000_000) })
		if err := members.Put(ctx, store.Member{Entity: id}); err != nil {
			t.Fatal(err)
		}
		for i, plan := range []string{"pro", "free", "free"} {
			memory.ResetConsumed()
			if err := members.SetPlan(ctx, id, plan, nil); err != nil {
				t.Fatal(err)
			}
			used := memory.Consumed().Tables[table]
			read, write := used["GetItem"].Applied.Read, used["TransactWriteItems"].Applied.Write
			if want := []float64{4, 4, 0}[i]; read != 1 || write != want || len(used) > 2 {
				t.Errorf("%s: %v read and %v write units, want 1 and %v: %+v", plan, read, write, want, used)
			}
		}
	}
}
