package memdynamo_test

import (
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

// TestManyOnOneItem: 64 goroutines count on one item, some on the condition that nobody came between.
func TestManyOnOneItem(t *testing.T) {
	t.Parallel()
	engine, client := setUp(t)
	must(t, ignore(client.UpdateItem(t.Context(), add("a"))))
	const writers, each = 64, 20
	var all sync.WaitGroup
	for i := range writers {
		all.Go(func() {
			for done := 0; done < each; {
				in := add("a")
				if i%2 == 0 { // read, and write if that is still so
					out, err := client.GetItem(t.Context(), &dynamodb.GetItemInput{TableName: in.TableName, Key: in.Key, ConsistentRead: aws.Bool(true)})
					if err != nil {
						t.Error(err)
						return
					}
					in.ConditionExpression, in.ExpressionAttributeValues[":seen"] = aws.String("n = :seen"), out.Item["n"]
				}
				_, err := client.UpdateItem(t.Context(), in)
				if _, raced := errors.AsType[*types.ConditionalCheckFailedException](err); raced {
					continue
				}
				if err != nil {
					t.Error(err)
					return
				}
				done++
			}
		})
	}
	all.Wait()
	equal(t, "counted", count(t, engine, "a"), strconv.Itoa(1+writers*each))
}

// TestOpposingTransactions move money between two accounts, both ways at once, and conflict: none is lost or made, and every
// transaction that was not cancelled counts.
func TestOpposingTransactions(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		engine, client := setUp(t)
		engine.Faults().HoldTransactions(time.Millisecond)
		move := func(from, to string) error {
			in := transaction(from, to)
			in.TransactItems[0].Update.ExpressionAttributeValues = item{":one": n("-1")}
			return ignore(client.TransactWriteItems(t.Context(), in))
		}
		var all sync.WaitGroup
		var mu sync.Mutex
		moved, conflicts := 0, 0
		for i := range 16 {
			from, to, by := "a", "b", 1
			if i%2 == 0 {
				from, to, by = "b", "a", -1
			}
			all.Go(func() {
				for range 50 {
					err := move(from, to)
					mu.Lock()
					if cancelled, ok := errors.AsType[*types.TransactionCanceledException](err); ok {
						conflicts++
						if aws.ToString(cancelled.CancellationReasons[0].Code) != "TransactionConflict" {
							t.Error(err)
						}
					} else if err != nil {
						t.Error(err)
					} else {
						moved += by
					}
					mu.Unlock()
					time.Sleep(time.Duration(i) * time.Millisecond) //nolint:forbidigo // on the bubble's clock
				}
			})
		}
		all.Wait()
		equal(t, "moved from a", count(t, engine, "a"), strconv.Itoa(-moved))
		equal(t, "moved to b", count(t, engine, "b"), strconv.Itoa(moved))
		if conflicts == 0 {
			t.Error("no two transactions met")
		}
	})
}
