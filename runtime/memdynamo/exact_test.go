package memdynamo_test

import (
	"context"
	"errors"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// increment adds 1 to n of item a in two steps, a read and a write, and calls between after the first. If
// compare is set, the write has the condition that n did not change since, and both steps are repeated until
// it holds.
func increment(ctx context.Context, client *dynamodb.Client, compare bool, between func()) error {
	table, key := aws.String(things), item{"id": s("a")}
	for {
		out, err := client.GetItem(ctx, &dynamodb.GetItemInput{TableName: table, Key: key,
			ConsistentRead: aws.Bool(true)})
		between()
		if err != nil {
			return err
		}
		in := &dynamodb.UpdateItemInput{
			TableName: table, Key: key, UpdateExpression: aws.String("SET n = :seen + :one"),
			ExpressionAttributeValues: item{":seen": out.Item["n"], ":one": n("1")},
		}
		if compare {
			in.ConditionExpression = aws.String("n = :seen")
		}
		_, err = client.UpdateItem(ctx, in)
		if _, failed := errors.AsType[*types.ConditionalCheckFailedException](err); !failed {
			return err
		}
	}
}

// TestManyOnOneItem: 64 goroutines count on one item, some in one step, some on the condition that nobody
// came between, some in transactions with another item.
func TestManyOnOneItem(t *testing.T) {
	t.Parallel()
	engine, client := setUp(t)
	must(t, ignore(client.UpdateItem(t.Context(), add("a"))))
	ways := []func() error{
		func() error { return increment(t.Context(), client, true, func() {}) },
		func() error { return ignore(client.UpdateItem(t.Context(), add("a"))) },
		func() error { return ignore(client.TransactWriteItems(t.Context(), transaction("a", "b"))) },
		func() error { return ignore(client.TransactWriteItems(t.Context(), transaction("b", "a"))) },
	}
	const writers, each = 64, 20
	var all sync.WaitGroup
	for i := range writers {
		all.Go(func() {
			for range each {
				if err := ways[i%len(ways)](); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	equal(t, "counted", count(t, engine, "a"), strconv.Itoa(1+writers*each))
	equal(t, "counted by transactions", count(t, engine, "b"), strconv.Itoa(writers*each/2))
}

// TestManyOnOneItemNegativeControl: who writes whatever came between undoes it, and the count shows that.
func TestManyOnOneItemNegativeControl(t *testing.T) {
	t.Parallel()
	engine, client := setUp(t)
	must(t, ignore(client.UpdateItem(t.Context(), add("a"))))
	const writers = 64
	var all, read sync.WaitGroup
	read.Add(writers)
	for range writers {
		all.Go(func() {
			err := increment(t.Context(), client, false, func() {
				read.Done()
				read.Wait()
			})
			if err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	equal(t, "counted", count(t, engine, "a"), "2")
}

// balanced reports whether accounts have that much together, and none owes.
func balanced(total int, accounts ...item) bool {
	for _, account := range accounts {
		has, ok := account["n"].(*types.AttributeValueMemberN)
		if !ok {
			return false
		}
		amount, err := strconv.Atoi(has.Value)
		if err != nil || amount < 0 {
			return false
		}
		total -= amount
	}
	return total == 0
}

func TestBalancedNegativeControl(t *testing.T) {
	account := func(amount string) item { return item{"n": n(amount)} }
	for _, test := range []struct {
		a, b string
		want bool
	}{{"10", "10", true}, {"20", "0", true}, {"9", "10", false}, {"21", "-1", false}} {
		equal(t, test.a+" and "+test.b, balanced(20, account(test.a), account(test.b)), test.want)
	}
}

// TestOpposingTransactions move money between two accounts, both ways at once: none is lost or made, every
// transaction that was not cancelled counts, and none is ever seen by half. If they hold their items, they
// conflict; if not, they never do.
func TestOpposingTransactions(t *testing.T) {
	t.Parallel()
	for _, hold := range []time.Duration{0, time.Millisecond} {
		t.Run(hold.String(), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) { oppose(t, hold) })
		})
	}
}

func oppose(t *testing.T, hold time.Duration) {
	t.Helper()
	engine, client := setUp(t)
	engine.Faults().HoldTransactions(hold)
	const start = 10
	keys := types.KeysAndAttributes{ConsistentRead: aws.Bool(true)}
	for _, id := range []string{"a", "b"} {
		account := put(id)
		account.Item["n"] = n(strconv.Itoa(start))
		must(t, ignore(client.PutItem(t.Context(), account)))
		keys.Keys = append(keys.Keys, item{"id": s(id)})
	}
	var all sync.WaitGroup
	var mu sync.Mutex
	moved, conflicts, seen := 0, 0, 0
	move := func(from, to string, by int) {
		in := transaction(from, to)
		out := in.TransactItems[0].Update
		out.ExpressionAttributeValues = item{":one": n("-1"), ":least": n("1")}
		out.ConditionExpression = aws.String("n >= :least")
		_, err := client.TransactWriteItems(t.Context(), in)
		cancelled, _ := errors.AsType[*types.TransactionCanceledException](err)
		mu.Lock()
		defer mu.Unlock()
		switch {
		case err == nil:
			moved += by
		case cancelled == nil:
			t.Error(err)
		case aws.ToString(cancelled.CancellationReasons[0].Code) == "TransactionConflict":
			conflicts++
		case aws.ToString(cancelled.CancellationReasons[0].Code) != "ConditionalCheckFailed":
			t.Error(err)
		}
	}
	read := func() { // the engine reads all keys of a batch at one moment
		out, err := client.BatchGetItem(t.Context(), &dynamodb.BatchGetItemInput{
			RequestItems: map[string]types.KeysAndAttributes{things: keys},
		})
		mu.Lock()
		defer mu.Unlock()
		seen++
		if err != nil || len(out.Responses[things]) != 2 || !balanced(2*start, out.Responses[things]...) {
			t.Errorf("half a transaction is seen: %v, %v", out, err)
		}
	}
	for i := range 16 {
		from, to, by := "a", "b", 1
		if i%2 == 0 {
			from, to, by = "b", "a", -1
		}
		all.Go(func() {
			for range 50 {
				move(from, to, by)
				read()
				time.Sleep(time.Duration(i) * time.Millisecond) //nolint:forbidigo // on the bubble's clock
			}
		})
	}
	all.Wait()
	equal(t, "a", count(t, engine, "a"), strconv.Itoa(start-moved))
	equal(t, "b", count(t, engine, "b"), strconv.Itoa(start+moved))
	equal(t, "conflicts", conflicts > 0, hold > 0)
	equal(t, "reads", seen > 0, true)
}
